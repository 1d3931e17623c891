from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.aggregation.extension import GROUP, VERSION, Extension, extension, own_address
from apiserver.client import Answer, Client

import tools
from pybernetes.cluster import components

NAME = f"{VERSION}.{GROUP}"
PATH = f"/apis/apiregistration.k8s.io/v1/apiservices/{NAME}"


AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "RequestResponse", "resources": [{"group": GROUP}]}],
}


@pytest.fixture(scope="session")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The administrator of a server that is known to extension servers, with RBAC."""
    folder = tmp_path_factory.mktemp("aggregation")
    policy = folder / "policy.json"
    policy.write_text(json.dumps(AUDIT))
    audit = (f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}")
    flags = [*components.front_proxy(folder / "pki"), *audit]
    with tools.api_server(folder, *flags, "--authorization-mode=RBAC") as server:
        yield Client(server)


class Registered:
    """A Service in a namespace of its own, its endpoints, and an APIService for it."""

    def __init__(self, admin: Client, server: Extension, namespace: str) -> None:
        self.admin = admin
        self.server = server
        self.namespace = namespace

    def service(self, **spec: Any) -> None:
        body = {"metadata": {"name": "ext"}, "spec": {"ports": [{"name": "https", "port": 443}], **spec}}
        assert self.admin.post(f"/api/v1/namespaces/{self.namespace}/services", body).status == 201

    def slice(self, ready: bool = True, name: str = "ext-1", address: str = "") -> Answer:
        body = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "ext"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address or own_address()], "conditions": {"ready": ready}}],
            "ports": [{"name": "https", "port": self.server.port}],
        }
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"
        self.admin.delete(f"{path}/{name}")
        return self.admin.post(path, body)

    def api_service(self, **spec: Any) -> None:
        body = {
            "metadata": {"name": NAME},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "service": {"namespace": self.namespace, "name": "ext"},
                "groupPriorityMinimum": 2000,
                "versionPriority": 15,
                "caBundle": self.server.bundle,
                **spec,
            },
        }
        made = self.admin.post("/apis/apiregistration.k8s.io/v1/apiservices", body)
        assert made.status == 201, made.body

    def condition(self) -> dict[str, Any]:
        conditions = self.admin.get(PATH).json["status"].get("conditions") or [{}]
        return dict(conditions[0])

    def wait_for(self, reason: str) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            found = self.condition()
            return found if found.get("reason") == reason else None

        return tools.wait_until(reached, f"{reason}, not {self.condition()}")


@pytest.fixture
def registered(admin: Client, tmp_path: Path) -> Iterator[Registered]:
    """Nothing is made yet; all is gone at the end."""
    namespace = f"t-{secrets.token_hex(4)}"
    assert admin.post("/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    proxies = admin.server.folder / "pki" / "front-proxy-ca.crt"
    with extension(tmp_path, proxies, f"ext.{namespace}.svc") as server:
        yield Registered(admin, server, namespace)
        admin.delete(PATH)


@pytest.fixture
def available(registered: Registered) -> Registered:
    registered.service()
    registered.slice()
    registered.api_service()
    registered.wait_for("Passed")
    return registered
