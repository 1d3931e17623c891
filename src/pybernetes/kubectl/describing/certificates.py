"""`kubectl describe csr`."""

from __future__ import annotations

from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.text import joined, when
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest


def signing_request(this: Description) -> None:
    """A CertificateSigningRequest: who asks for what, and what became of it."""
    from binascii import a2b_base64

    from cryptography import x509

    spec = this.obj.get("spec") or {}
    try:
        request = x509.load_pem_x509_csr(a2b_base64(spec.get("request") or ""))
    except ValueError as error:
        pem = b"-----BEGIN CERTIFICATE REQUEST-----" in a2b_base64(spec.get("request") or "")
        what = str(error).splitlines()[0] if pem else "PEM block type must be CERTIFICATE REQUEST"
        raise CLIError(f"Error parsing CSR: {what}") from None
    metadata = this.obj.get("metadata") or {}
    this.write(0, f"Name:\t{this.info.name}\n")
    this.write(0, f"Labels:\t{joined(metadata.get('labels'))}\n")
    this.write(0, f"Annotations:\t{joined(metadata.get('annotations'))}\n")
    this.write(0, f"CreationTimestamp:\t{when(metadata.get('creationTimestamp'))}\n")
    this.write(0, f"Requesting User:\t{spec.get('username', '')}\n")
    if spec.get("signerName"):
        this.write(0, f"Signer:\t{spec['signerName']}\n")
    if spec.get("expirationSeconds") is not None:
        from pybernetes.kubectl.ages import human

        this.write(0, f"Requested Duration:\t{human(spec['expirationSeconds'])}\n")
    this.write(0, f"Status:\t{_status(this)}\n")
    _subject(this, request)
    _names(this, request)
    this.events()


def _status(this: Description) -> str:
    types = [each.get("type") for each in this.get("status", "conditions", default=[])]
    status = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        status += ",Failed"
    return status + ",Issued" if this.get("status", "certificate") else status


def _subject(this: Description, request: CertificateSigningRequest) -> None:
    from cryptography.x509.oid import NameOID

    def values(oid: object) -> list[str]:
        return [str(each.value) for each in request.subject.get_attributes_for_oid(oid)]  # type: ignore[arg-type]

    this.write(0, "Subject:\n")
    this.write(0, f"\tCommon Name:\t{''.join(values(NameOID.COMMON_NAME)[-1:])}\n")
    this.write(0, f"\tSerial Number:\t{''.join(values(NameOID.SERIAL_NUMBER)[-1:])}\n")
    for title, oid in (
        ("Organization", NameOID.ORGANIZATION_NAME),
        ("Organizational Unit", NameOID.ORGANIZATIONAL_UNIT_NAME),
        ("Country", NameOID.COUNTRY_NAME),
        ("Locality", NameOID.LOCALITY_NAME),
        ("Province", NameOID.STATE_OR_PROVINCE_NAME),
        ("StreetAddress", NameOID.STREET_ADDRESS),
        ("PostalCode", NameOID.POSTAL_CODE),
    ):
        _list(this, title, values(oid))


def _names(this: Description, request: CertificateSigningRequest) -> None:
    from cryptography import x509

    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return
    this.write(0, "Subject Alternative Names:\n")
    _list(this, "DNS Names", found.get_values_for_type(x509.DNSName))
    _list(this, "Email Addresses", found.get_values_for_type(x509.RFC822Name))
    _list(this, "URIs", found.get_values_for_type(x509.UniformResourceIdentifier))
    _list(this, "IP Addresses", [str(each) for each in found.get_values_for_type(x509.IPAddress)])


def _list(this: Description, title: str, values: list[str]) -> None:
    if values:
        lines = "\n\t\t".join(values)
        this.write(0, f"\t{title}:\t{lines}\n")
