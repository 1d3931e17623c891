"""Registries over HTTPS: whom the runtime trusts, and whom it shows a certificate."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cri.embedded.images.registries import FakeRegistry, layer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pybernetes.cri.embedded.images.pulling import PullError, pull
from pybernetes.cri.embedded.images.store import ImageStore


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of its own authority, with its key: server.pem; the certificate alone: ca.crt."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lab")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "ca.crt").write_bytes(pem)
    (folder / "server.pem").write_bytes(pem + secret)
    (folder / "server.key").write_bytes(secret)
    return folder


def serving(certificate: Path, *, asks: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "server.pem")
    if asks:
        context.load_verify_locations(certificate / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture
def registry(certificate: Path) -> Iterator[FakeRegistry]:
    with FakeRegistry().serving(serving(certificate)) as made:
        made.add("1", layer(name="x"))
        yield made


def settings(tmp_path: Path, host: str, text: str) -> Path:
    folder = tmp_path / "certs.d" / host
    folder.mkdir(parents=True)
    (folder / "hosts.toml").write_text(text)
    return tmp_path / "certs.d"


def test_a_registry_with_an_untrusted_certificate_is_refused(registry: FakeRegistry, tmp_path: Path) -> None:
    with pytest.raises(PullError, match="tls: failed to verify certificate") as caught:
        pull(ImageStore(tmp_path / "images"), [], f"{registry.host}/a/b:1")
    assert f'Head "https://{registry.host}/v2/a/b/manifests/1"' in caught.value.message
    assert registry.requests == []  # above all not in plain HTTP instead


@pytest.mark.parametrize("text", ['ca = "{ca}"', 'ca = ["{ca}"]', "skip_verify = true"])
def test_an_authority_of_hosts_toml_vouches_for_it(
    registry: FakeRegistry, certificate: Path, tmp_path: Path, text: str
) -> None:
    table = f'[host."https://{registry.host}"]\n' + text.format(ca=certificate / "ca.crt")
    folders = [settings(tmp_path, registry.host, table)]
    assert pull(ImageStore(tmp_path / "images"), folders, f"{registry.host}/a/b:1").names
    # a mirror's authority vouches for the mirror, not for the registry
    assert {path.partition("?")[2] for _, path, _ in registry.requests} == {""}


def test_an_authority_in_dockers_place_vouches_for_it(
    registry: FakeRegistry, certificate: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "certs.d" / f"{registry.host.replace(':', '_')}_"
    folder.mkdir(parents=True)
    (folder / "ca.crt").write_bytes((certificate / "ca.crt").read_bytes())
    assert pull(ImageStore(tmp_path / "images"), [tmp_path / "certs.d"], f"{registry.host}/a/b:1").names


def test_a_certificate_is_shown_to_a_registry_that_asks(certificate: Path, tmp_path: Path) -> None:
    with FakeRegistry().serving(serving(certificate, asks=True)) as registry:
        registry.add("1", layer(name="x"))
        table = f'server = "https://{registry.host}"\nca = "{certificate}/ca.crt"\n'
        folders = [settings(tmp_path, registry.host, table)]
        with pytest.raises(PullError, match="failed to do request"):
            pull(ImageStore(tmp_path / "images"), folders, f"{registry.host}/a/b:1")
        shown = f'client = [["{certificate}/ca.crt", "{certificate}/server.key"]]\n'
        (folders[0] / registry.host / "hosts.toml").write_text(table + shown)
        assert pull(ImageStore(tmp_path / "images"), folders, f"{registry.host}/a/b:1").names


def test_an_authority_that_cannot_be_read_is_reported(registry: FakeRegistry, tmp_path: Path) -> None:
    folders = [settings(tmp_path, registry.host, f'server = "https://{registry.host}"\nca = "missing.crt"\n')]
    with pytest.raises(PullError, match=r"missing.crt: no certificates of authorities"):
        pull(ImageStore(tmp_path / "images"), folders, f"{registry.host}/a/b:1")


def test_a_registry_does_not_lead_from_https_to_plain_http(
    registry: FakeRegistry, certificate: Path, tmp_path: Path
) -> None:
    from cri.embedded.images.registries import send

    def before(handler: object) -> bool:
        send(handler, 307, b"", {"Location": "http://127.0.0.1:1/x"})
        return True

    registry.before = before
    folders = [settings(tmp_path, registry.host, f'server = "https://{registry.host}"\nskip_verify = true\n')]
    with pytest.raises(PullError, match="leads from https to http: refused"):
        pull(ImageStore(tmp_path / "images"), folders, f"{registry.host}/a/b:1")
