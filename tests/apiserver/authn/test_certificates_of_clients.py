"""Client certificates, and proxies that speak for others."""

from __future__ import annotations

import datetime
import http.client
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from apiserver.authn.conftest import WHO, World
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from pybernetes import pki

NOW = datetime.datetime.now(datetime.UTC)
HOUR = datetime.timedelta(hours=1)
UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")


def certificate(
    authority: pki.Identity,
    *names: tuple[ObjectIdentifier, str],
    begin: datetime.datetime = NOW - HOUR,
    end: datetime.datetime = NOW + HOUR,
    usage: ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
    is_authority: bool = False,
) -> pki.Identity:
    """A certificate as an authority might make it."""
    key = pki.new_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(kind, value) for kind, value in names]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if not is_authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return pki.Identity(key, builder.sign(authority.key, hashes.SHA256()))


class Refused(Exception):
    """By a 401."""


def who(world: World, folder: Path, identity: pki.Identity, *chain: pki.Identity, **headers: str) -> dict[str, Any]:
    """Whom the server takes the owner of a certificate for."""
    pem = folder / "client.pem"
    pem.write_bytes(identity.key_pem + identity.certificate_pem + b"".join(each.certificate_pem for each in chain))
    context = ssl.create_default_context(cafile=str(world.server.ca_file))
    context.load_cert_chain(pem)
    address = world.admin.address
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context, timeout=30)
    sent = {name.replace("_", "-"): value for name, value in headers.items()} | {"Content-Type": "application/json"}
    try:
        connection.request("POST", WHO, b"{}", sent)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status == 401:
        raise Refused(body.decode())
    if answer.status == 403:
        raise PermissionError(body.decode())
    assert answer.status == 201, body
    found: dict[str, Any] = json.loads(body)["status"]["userInfo"]
    return found


def test_the_common_name_is_the_user_and_the_organizations_are_the_groups(world: World, tmp_path: Path) -> None:
    names = (
        (NameOID.ORGANIZATION_NAME, "dev"),
        (NameOID.ORGANIZATION_NAME, "ops"),
        (NameOID.COMMON_NAME, "jane"),
        (UID, "42"),
    )
    identity = certificate(world.client_authority, *names)
    fingerprint = identity.certificate.fingerprint(hashes.SHA256()).hex()
    assert who(world, tmp_path, identity) == {
        "username": "jane",
        "uid": "42",
        "groups": ["dev", "ops", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"X509SHA256={fingerprint}"]},
    }


def test_an_authority_may_have_others_sign(world: World, tmp_path: Path) -> None:
    middle = certificate(world.client_authority, (NameOID.COMMON_NAME, "middle"), is_authority=True)
    identity = certificate(middle, (NameOID.COMMON_NAME, "jane"))
    assert who(world, tmp_path, identity, middle)["username"] == "jane"
    no_authority = certificate(world.client_authority, (NameOID.COMMON_NAME, "user"))
    with pytest.raises(Refused):
        who(world, tmp_path, certificate(no_authority, (NameOID.COMMON_NAME, "jane")), no_authority)


@pytest.mark.parametrize(
    "what", ["expired", "not yet valid", "for servers", "of a stranger", "of the proxies' CA", "no name"]
)
def test_bad_certificates(world: World, tmp_path: Path, what: str) -> None:
    jane = (NameOID.COMMON_NAME, "jane")
    ours = world.client_authority
    identity = {
        "expired": lambda: certificate(ours, jane, begin=NOW - 3 * HOUR, end=NOW - HOUR),
        "not yet valid": lambda: certificate(ours, jane, begin=NOW + HOUR, end=NOW + 2 * HOUR),
        "for servers": lambda: certificate(ours, jane, usage=ExtendedKeyUsageOID.SERVER_AUTH),
        "of a stranger": lambda: certificate(pki.create_authority("kubernetes"), jane),
        "of the proxies' CA": lambda: certificate(world.proxy_authority, jane),
        "no name": lambda: certificate(ours, (NameOID.ORGANIZATION_NAME, "system:masters")),
    }[what]()
    with pytest.raises(Refused):
        who(world, tmp_path, identity)
    with pytest.raises(Refused):
        who(world, tmp_path, identity, X_Remote_User="admin", X_Remote_Group="system:masters")
    token = f"Bearer {world.admin.token}"
    assert who(world, tmp_path, identity, Authorization=token)["username"] == "kubernetes-admin"


def test_a_certificate_is_not_good_because_another_was_where_it_is_now(world: World, tmp_path: Path) -> None:
    """What is known of a handshake is kept by the place of its object, and places are used again."""
    good = certificate(world.client_authority, (NameOID.COMMON_NAME, "jane"))
    bad = certificate(pki.create_authority("kubernetes"), (NameOID.COMMON_NAME, "jane"))
    for _ in range(20):
        assert who(world, tmp_path, good)["username"] == "jane"
        with pytest.raises(Refused):
            who(world, tmp_path, bad)


def test_a_proxy_speaks_for_others(world: World, tmp_path: Path) -> None:
    proxy = certificate(world.proxy_authority, (NameOID.COMMON_NAME, "front-proxy"))
    headers = {
        "X_Remote_User": "jane",
        "X_Remote_Uid": "7",
        "X_Remote_Group": "dev,ops",
        "X_Remote_Extra_Acme.io%2Fscope": "x",
    }
    assert who(world, tmp_path, proxy, **headers) == {
        "username": "jane",
        "uid": "7",
        "groups": ["dev,ops", "system:authenticated"],
        "extra": {"acme.io/scope": ["x"]},
    }
    with pytest.raises(Refused):
        who(world, tmp_path, proxy)
    headers["X_Remote_User"] = " josé ".encode().decode("latin-1")
    assert who(world, tmp_path, proxy, **headers)["username"] == "josé"


def test_whom_a_proxy_does_not_know_is_not_authenticated(world: World, tmp_path: Path) -> None:
    proxy = certificate(world.proxy_authority, (NameOID.COMMON_NAME, "front-proxy"))
    with pytest.raises(PermissionError):
        who(world, tmp_path, proxy, X_Remote_User="system:anonymous")


def test_only_proxies_may_name_users_in_headers(world: World, tmp_path: Path) -> None:
    masters = {"X_Remote_User": "admin", "X_Remote_Group": "system:masters"}
    user = certificate(world.client_authority, (NameOID.COMMON_NAME, "jane"))
    assert who(world, tmp_path, user, **masters)["username"] == "jane"
    named = certificate(world.client_authority, (NameOID.COMMON_NAME, "front-proxy"))
    assert who(world, tmp_path, named, **masters)["username"] == "front-proxy"
    other = certificate(world.proxy_authority, (NameOID.COMMON_NAME, "some-proxy"))
    with pytest.raises(Refused):
        who(world, tmp_path, other, **masters)
    assert world.who("", X_Remote_User="admin").status == 401
    answer = world.who(f"Bearer {world.admin.token}", X_Remote_User="jane")
    assert answer.json["status"]["userInfo"]["username"] == "kubernetes-admin"
