"""TLS: versions, ciphers, certificates by name, and that what is replaced is used."""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from apiserver.client import Client

import tools
from pybernetes import pki
from pybernetes.net import tls, tls_curves


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    folder = tmp_path_factory.mktemp("tls")
    authority = pki.create_authority("named")
    (folder / "named-ca.crt").write_bytes(authority.certificate_pem)
    certificates = {"given": ["x.example"], "found": ["in.example", "*.wild.example", "127.0.0.1"], "addressed": []}
    for name, names in certificates.items():
        identity = pki.issue_server(authority, name, names)
        (folder / f"{name}.crt").write_bytes(identity.certificate_pem)
        (folder / f"{name}.key").write_bytes(identity.key_pem)
    flags = [
        f"--tls-sni-cert-key={folder}/given.crt,{folder}/given.key:given.example,*.given.example",
        f"--tls-sni-cert-key={folder}/found.crt,{folder}/found.key",
        f"--tls-sni-cert-key={folder}/addressed.crt,{folder}/addressed.key:127.0.0.2,::2",
        "--bind-address=0.0.0.0",
    ]
    with tools.api_server(folder, *flags) as server:
        yield server


def handshake(
    server: tools.ApiServer, context: ssl.SSLContext, name: str | None = None, host: str = "127.0.0.1"
) -> ssl.SSLSocket:
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    port = Client(server).address.port
    return context.wrap_socket(socket.create_connection((host, port), 10), server_hostname=name)


def subject(connection: ssl.SSLSocket) -> str:
    from cryptography import x509

    der = connection.getpeercert(True)
    assert der
    return x509.load_der_x509_certificate(der).subject.rfc4514_string()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (None, "CN=kube-apiserver"),
        ("localhost", "CN=kube-apiserver"),
        ("given.example", "CN=given"),
        ("a.given.example", "CN=given"),
        ("GIVEN.example", "CN=given"),
        ("x.example", "CN=kube-apiserver"),
        ("in.example", "CN=found"),
        ("a.wild.example", "CN=found"),
        ("wild.example", "CN=kube-apiserver"),
        ("found", "CN=found"),
    ],
)
def test_certificates_by_name(server: tools.ApiServer, name: str | None, expected: str) -> None:
    with handshake(server, ssl.create_default_context(), name) as connection:
        assert subject(connection) == expected


def test_who_names_no_host_gets_the_certificate_of_the_address(server: tools.ApiServer) -> None:
    for name, expected in ((None, "CN=addressed"), ("in.example", "CN=found"), ("elsewhere", "CN=kube-apiserver")):
        with handshake(server, ssl.create_default_context(), name, "127.0.0.2") as connection:
            assert subject(connection) == expected


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_versions_and_ciphers_are_upstreams_defaults_without_cbc(server: tools.ApiServer) -> None:
    with handshake(server, ssl.create_default_context()) as connection:
        assert connection.version() == "TLSv1.3"
    context = ssl.create_default_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    for name in tls.CIPHERS.values():
        if "ECDSA" in name:
            context.set_ciphers(name)
            with handshake(server, context) as connection:
                assert connection.cipher()[0] == name  # type: ignore[index]
    for name in (
        "ECDHE-ECDSA-AES128-SHA",
        "ECDHE-ECDSA-AES256-SHA",
        "ECDHE-ECDSA-AES128-SHA256",
        "DHE-RSA-AES128-GCM-SHA256",
        "AES128-GCM-SHA256",
    ):
        context.set_ciphers(name)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handshake(server, context)
    old = ssl.create_default_context()
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(server, old)


def replace(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def test_a_new_certificate_and_a_new_authority_are_used_without_a_restart(tmp_path: Path) -> None:
    with tools.api_server(tmp_path) as server:
        folder = tmp_path / "pki"
        old_authority = pki.load((folder / "ca.key").read_bytes(), (folder / "ca.crt").read_bytes())
        old = client_of(server, tmp_path / "old.pem", old_authority)
        assert get(old) == 200

        fresh = pki.issue_server(old_authority, "fresh", ["127.0.0.1"])
        replace(folder / "apiserver.key", fresh.key_pem)
        replace(folder / "apiserver.crt", fresh.certificate_pem)

        def renewed() -> bool:
            with handshake(server, ssl.create_default_context()) as connection:
                return subject(connection) == "CN=fresh"

        tools.wait_until(renewed, "the new certificate is shown", every=0.1)
        assert get(old) == 200, "connections stay"

        other = pki.create_authority("other")
        replace(folder / "ca.crt", other.certificate_pem)
        tools.wait_until(lambda: get(old) == 401, "the authority is ours no more", every=0.1)
        assert get(client_of(server, tmp_path / "new.pem", other, old_authority)) == 200
        assert get(client_of(server, tmp_path / "old.pem", old_authority)) == 401

        replace(folder / "ca.crt", b"no certificate")
        tools.wait_until(
            lambda: (get(client_of(server, tmp_path / "new.pem", other, old_authority)), cannot_be_read(server))[1],
            "the error is logged",
            every=0.1,
        )
        assert get(client_of(server, tmp_path / "new.pem", other, old_authority)) == 200


def test_a_session_taken_up_again_does_not_outlive_the_authority(tmp_path: Path) -> None:
    with tools.api_server(tmp_path) as server:
        folder = tmp_path / "pki"
        authority = pki.load((folder / "ca.key").read_bytes(), (folder / "ca.crt").read_bytes())
        identity = pki.issue_client(authority, "jane", ["system:masters"])
        (tmp_path / "jane.pem").write_bytes(identity.key_pem + identity.certificate_pem)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
            context.load_cert_chain(tmp_path / "jane.pem")
            context.maximum_version = version
            replace(folder / "ca.crt", authority.certificate_pem)
            tools.wait_until(lambda context=context: ask(server, context)[0] == 200, "known", every=0.1)
            session = ask(server, context)[1]
            assert ask(server, context, session)[::2] == (200, True), "taken up again"
            replace(folder / "ca.crt", pki.create_authority("other").certificate_pem)
            tools.wait_until(
                lambda context=context, session=session: ask(server, context, session)[0] != 200, "forgotten", every=0.1
            )


def ask(
    server: tools.ApiServer, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[int, ssl.SSLSession | None, bool | None]:
    """The status of a request (0 = TLS refused), the session, and whether it was an older one."""
    address = Client(server).address
    plain = socket.create_connection((address.hostname, address.port), 10)
    try:
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as connection:
            connection.sendall(b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = connection.recv(65536)
            return int(head.split()[1] if head else 0), connection.session, connection.session_reused
    except (ssl.SSLError, ConnectionError):
        return 0, None, None


def cannot_be_read(server: tools.ApiServer) -> bool:
    return "cannot be read, the old authorities stay" in (server.folder / "apiserver.log").read_text()


def client_of(
    server: tools.ApiServer, file: Path, authority: pki.Identity, server_authority: pki.Identity | None = None
) -> http.client.HTTPSConnection:
    identity = pki.issue_client(authority, "jane", ["system:masters"])
    file.write_bytes(identity.key_pem + identity.certificate_pem)
    trusted = (server_authority or authority).certificate_pem.decode()
    context = ssl.create_default_context(cadata=trusted)
    context.load_cert_chain(file)
    address = Client(server).address
    return http.client.HTTPSConnection(address.hostname or "", address.port, context=context, timeout=30)


def get(connection: http.client.HTTPSConnection) -> int:
    connection.request("GET", "/api/v1/namespaces")
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_only_what_is_asked_for_is_offered(tmp_path: Path) -> None:
    flags = ["--tls-min-version=VersionTLS12", "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]
    with tools.api_server(tmp_path, *flags) as server:
        context = ssl.create_default_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with handshake(server, context) as connection:
            assert connection.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"  # type: ignore[index]


def test_only_the_key_exchanges_that_are_asked_for_are_taken_part_in(tmp_path: Path) -> None:
    authority = pki.create_authority("curves")
    identity = pki.issue_server(authority, "curves", ["localhost"])
    (tmp_path / "c.crt").write_bytes(identity.certificate_pem)
    (tmp_path / "c.key").write_bytes(identity.key_pem)
    serving = tls.ServingTLS(tmp_path / "c.crt", tmp_path / "c.key", curves=(24, 23))
    for curve, works in ((23, True), (24, True), (25, False), (29, False)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        tls_curves.restrict(context, (curve,))  # Debian's Python knows no X25519
        assert greets(context, serving.context) == works, tls_curves.NAMES[curve]


def greets(client: ssl.SSLContext, server: ssl.SSLContext) -> bool:
    """Whether a handshake between the two comes to an end; all in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    try:
        for _ in range(4):
            for side in list(sides):
                try:
                    side.do_handshake()
                    sides.remove(side)
                except ssl.SSLWantReadError:
                    pass
    except ssl.SSLError:
        return False
    return not sides


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="Cipher suite TLS_NULL not supported"):
        tls.cipher_suites("TLS_NULL")
    with pytest.raises(argparse.ArgumentTypeError, match="no such file"):
        tls.named_certificate(f"{tmp_path}/a,{tmp_path}/b")
    with pytest.raises(argparse.ArgumentTypeError, match="comma separated"):
        tls.named_certificate("a.crt")
    (tmp_path / "a").write_text("")
    found = tls.named_certificate(f"{tmp_path}/a,{tmp_path}/a:10.0.0.1,0:0::1,*.X.example")
    assert found.names == ("10.0.0.1", "::1", "*.x.example")
