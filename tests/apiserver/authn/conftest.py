"""One API server that knows every kind of credential, and those who issue them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from apiserver.authn.forge import HTTPSServer, Issuer
from apiserver.client import Answer, Client
from backends import kubeconfig_of

import tools
from pybernetes import pki

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@dataclass(frozen=True)
class World:
    server: tools.ApiServer
    admin: Client
    issuer: Issuer
    webhook: HTTPSServer
    proxy_authority: pki.Identity
    client_authority: pki.Identity
    folder: Path

    def who(self, authorization: str, **headers: str) -> Answer:
        """Ask the server who presents this."""
        without_token = Client(self.server, "")
        return without_token("POST", WHO, {}, **({"Authorization": authorization} if authorization else {}), **headers)

    def name(self, authorization: str) -> str:
        """The user's name, or the status of the refusal."""
        answer = self.who(authorization)
        return str(answer.json["status"]["userInfo"]["username"]) if answer.status == 201 else str(answer.status)

    def log(self) -> str:
        return (self.server.folder / "apiserver.log").read_text()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("authn")
    authority = pki.create_authority("others")
    issuer, webhook = Issuer(authority), HTTPSServer(authority)
    (folder / "others.crt").write_bytes(authority.certificate_pem)
    proxies = pki.create_authority("proxies")
    (folder / "proxies.crt").write_bytes(proxies.certificate_pem)
    (folder / "passwords.csv").write_text('secret,bob,7,"dev,ops"\nx:y,carol,8\n')
    (folder / "authentication.json").write_text(json.dumps(configuration(issuer, authority)))
    (folder / "webhook.kubeconfig").write_text(
        json.dumps(kubeconfig_of(f"{webhook.url}/review", folder / "others.crt"))
    )
    flags = [
        "--authorization-mode=RBAC",
        f"--basic-auth-file={folder}/passwords.csv",
        "--enable-bootstrap-token-auth",
        f"--authentication-config={folder}/authentication.json",
        f"--authentication-token-webhook-config-file={folder}/webhook.kubeconfig",
        "--authentication-token-webhook-version=v1",
        "--authentication-token-webhook-cache-ttl=1h",
        f"--requestheader-client-ca-file={folder}/proxies.crt",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-uid-headers=X-Remote-Uid",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--api-audiences=https://kubernetes.default.svc.cluster.local,api",
    ]
    webhook.answer = lambda *_: (200, {}, review())
    try:
        with tools.api_server(folder / "server", *flags) as server:
            clients = pki.load((server.folder / "pki/ca.key").read_bytes(), (server.folder / "pki/ca.crt").read_bytes())
            yield World(server, Client(server), issuer, webhook, proxies, clients, folder)
    finally:
        issuer.close()
        webhook.close()


def review(**status: object) -> dict[str, object]:
    """What a webhook answers."""
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}


def configuration(issuer: Issuer, authority: pki.Identity) -> dict[str, object]:
    """The configuration of the issuer: names with a prefix, groups by a claim, the rest by expressions."""
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {
                    "url": issuer.url,
                    "certificateAuthority": authority.certificate_pem.decode(),
                    "audiences": ["kube", "other"],
                    "audienceMatchPolicy": "MatchAny",
                },
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "oidc:"},
                    "groups": {"claim": "groups", "prefix": "oidc:"},
                    "uid": {"expression": "has(claims.uid) ? string(claims.uid) : ''"},
                    "extra": [{"key": "acme.io/tenant", "valueExpression": "claims.?org.tenant.orValue('')"}],
                },
                "claimValidationRules": [
                    {"expression": "!has(claims.hd) || claims.hd == 'acme.io'", "message": "wrong domain"}
                ],
                "userValidationRules": [
                    {"expression": "!user.username.startsWith('oidc:system:')", "message": "reserved name"}
                ],
            }
        ],
        "anonymous": {"enabled": True, "conditions": [{"path": "/readyz"}, {"path": "/version"}]},
    }
