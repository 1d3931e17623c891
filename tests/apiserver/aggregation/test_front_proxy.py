"""The authority of proxies is none of clients: its certificates may name users in headers, and are no users
themselves."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from apiserver.client import Client

from pybernetes import pki

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def ask(admin: Client, certificate: Path, **headers: str) -> tuple[int, Any]:
    """Who the server says that the owner of a certificate is."""
    address = urlsplit(admin.server.url)
    context = ssl.create_default_context(cafile=str(admin.server.ca_file))
    context.load_cert_chain(certificate)
    assert address.hostname
    connection = http.client.HTTPSConnection(address.hostname, address.port, context=context, timeout=20)
    try:
        sent = {
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        connection.request("POST", WHO, b"{}", sent)
        answer = connection.getresponse()
        body = json.loads(answer.read())
        return answer.status, body.get("status", {}).get("userInfo") if answer.status == 201 else body
    finally:
        connection.close()


def signed(admin: Client, folder: Path, authority: str, name: str, *groups: str) -> Path:
    keys = admin.server.folder / "pki"
    issuer = pki.load((keys / f"{authority}.key").read_bytes(), (keys / f"{authority}.crt").read_bytes())
    made = pki.issue_client(issuer, name, groups)
    path = folder / f"{authority}-{name}.pem"
    path.write_bytes(made.key_pem + made.certificate_pem)
    return path


def test_a_client_is_known_while_there_is_an_authority_of_proxies(admin: Client, tmp_path: Path) -> None:
    status, user = ask(admin, signed(admin, tmp_path, "ca", "jane", "developers"))
    assert (status, user["username"]) == (201, "jane")
    status, user = ask(admin, signed(admin, tmp_path, "ca", "front-proxy-client"), X_Remote_User="root")
    assert status == 401 or user["username"] == "front-proxy-client"


def test_who_the_authority_of_proxies_has_signed_is_not_a_user(admin: Client, tmp_path: Path) -> None:
    status, _ = ask(admin, signed(admin, tmp_path, "front-proxy-ca", "front-proxy-client", "system:masters"))
    assert status == 401


def test_a_proxy_speaks_for_others_and_only_the_one_that_is_allowed(admin: Client, tmp_path: Path) -> None:
    proxy = signed(admin, tmp_path, "front-proxy-ca", "front-proxy-client")
    status, user = ask(admin, proxy, X_Remote_User="jane", X_Remote_Group="developers", X_Remote_Uid="7")
    assert (status, user["username"], user["uid"]) == (201, "jane", "7")
    other = signed(admin, tmp_path, "front-proxy-ca", "somebody-else")
    assert ask(admin, other, X_Remote_User="jane")[0] == 401
