"""Client certificates judged without TLS: when there is more than one authority, or the authority has changed since.

TLS trusts all authorities alike; which of them signed a certificate decides whether its owner is a user or a proxy that
speaks for users. A connection lives longer than the authority's file may stay the same.
"""

from __future__ import annotations

import datetime
import logging
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .watched_files import Watched

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

log = logging.getLogger(__name__)

_DEPTH = 8  # certificates in a chain


class Trust:
    """The authorities in a file, read again when it changes; `generation` then grows."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError or OSError."""
        self.path = path
        self.generation = 1
        self.pem = _certificates(path)
        self._watched = Watched([path])
        self._roots: list[Certificate] | None = None
        self._ders: frozenset[bytes] | None = None

    @property
    def roots(self) -> frozenset[bytes]:
        """The authorities in DER."""
        if self._ders is None:
            end = "-----END CERTIFICATE-----"
            blocks = [each[each.index("-----BEGIN CERTIFICATE-----") :] + end for each in self.pem.split(end)[:-1]]
            self._ders = frozenset(ssl.PEM_cert_to_DER_cert(each) for each in blocks)
        return self._ders

    def refresh(self) -> None:
        """Read the file if it has changed; an unreadable one is logged, and the old authorities stay."""
        if not self._watched.changed():
            return
        try:
            pem = _certificates(self.path)
        except (OSError, ValueError) as error:
            log.error("%s has changed and cannot be read, the old authorities stay: %s", self.path, error)
            return
        self.pem = pem
        self._roots = self._ders = None
        self.generation += 1

    def problem(self, chain: list[bytes], now: float) -> str:
        """The reason not to trust the first certificate (DER, with its chain); "" if it is trusted."""
        from cryptography import x509

        if self._roots is None:
            self._roots = x509.load_pem_x509_certificates(self.pem.encode())
        try:
            certificates = [x509.load_der_x509_certificate(each) for each in chain]
        except ValueError as error:
            return f"x509: {error}"
        moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
        leaf = certificates[0]
        if not _valid(leaf, moment):
            return "x509: certificate has expired or is not yet valid"
        if not _for_clients(leaf):
            return "x509: certificate specifies an incompatible key usage"
        if not _leads_to(leaf, self._roots, certificates[1:], moment, _DEPTH):
            return "x509: certificate signed by unknown authority"
        return ""


def _certificates(path: Path) -> str:
    pem = path.read_text()
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"{path}: data does not contain any valid RSA or ECDSA certificates") from error
    return pem


def presented(connection: Any) -> list[bytes]:
    """The certificates that a client presented, its own first, in DER."""
    tls = connection.transport.get_extra_info("ssl_object")
    if tls is None:
        return []
    if hasattr(tls, "get_unverified_chain"):  # Python 3.13
        return [bytes(each) for each in tls.get_unverified_chain()]
    own = tls.getpeercert(True)
    chain = [each.public_bytes(2) for each in tls._sslobj.get_unverified_chain() or ()]  # 2: DER
    return [own, *(each for each in chain if each != own)] if own else []


def verified_root(tls: Any) -> bytes:
    """The authority at which the chain ends that TLS has verified, in DER; empty if it is unknown."""
    if hasattr(tls, "get_verified_chain"):  # Python 3.13
        chain = [bytes(each) for each in tls.get_verified_chain()]
    else:
        chain = [each.public_bytes(2) for each in tls._sslobj.get_verified_chain() or ()]  # 2: DER
    return chain[-1] if chain else b""


def _leads_to(
    certificate: Certificate,
    roots: list[Certificate],
    others: list[Certificate],
    now: datetime.datetime,
    depth: int,
    below: int = 0,
) -> bool:
    if any(_signed(certificate, root, now, below) for root in roots):
        return True
    return depth > 0 and any(
        _signed(certificate, other, now, below)
        and _for_clients(other)
        and _leads_to(other, roots, [each for each in others if each is not other], now, depth - 1, below + 1)
        for other in others
    )


def _signed(certificate: Certificate, issuer: Certificate, now: datetime.datetime, below: int) -> bool:
    """Whether an issuer, who may sign certificates and has `below` authorities under it, signed a certificate."""
    from cryptography import x509

    if certificate == issuer:
        return below == 0 and _valid(issuer, now)  # a certificate that is itself trusted
    if certificate.issuer != issuer.subject or not _valid(issuer, now):
        return False
    try:
        constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
        if not constraints.ca or (constraints.path_length is not None and constraints.path_length < below):
            return False
        usage = issuer.extensions.get_extension_for_class(x509.KeyUsage).value
        if not usage.key_cert_sign:
            return False
    except x509.ExtensionNotFound:
        if issuer.version is x509.Version.v3 and not _has_constraints(issuer):
            return False
    try:
        certificate.verify_directly_issued_by(issuer)
    except Exception:  # ValueError, TypeError or InvalidSignature: all mean no
        return False
    return True


def _has_constraints(certificate: Certificate) -> bool:
    from cryptography import x509

    return any(each.oid == x509.BasicConstraints.oid for each in certificate.extensions)


def _valid(certificate: Certificate, now: datetime.datetime) -> bool:
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _for_clients(certificate: Certificate) -> bool:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages
