"""A server with Node and RBAC, and clients of several users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from apiserver.client import Answer, Client

from tools import ApiServer, api_server

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class User(Client):
    """A client of a user that the administrator impersonates."""

    def __init__(self, server: ApiServer, name: str, *groups: str) -> None:
        super().__init__(server)
        self.name = name
        self.groups = groups

    def _headers(self, body: Any, extra: dict[str, str]) -> dict[str, str]:
        headers = {**super()._headers(body, extra), "Impersonate-User": self.name}
        if self.groups:
            headers["Impersonate-Group"] = self.groups[0]
        return headers


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with api_server(tmp_path_factory.mktemp("guarded"), "--authorization-mode=Node,RBAC") as server:
        yield server


@pytest.fixture(scope="session")
def admin(guarded: ApiServer) -> Client:
    return Client(guarded)


@pytest.fixture
def as_user(guarded: ApiServer) -> Callable[..., User]:
    return lambda name, *groups: User(guarded, name, *groups)


@pytest.fixture
def place(admin: Client) -> str:
    return admin.namespace("authz-")


def rule(verbs: str, groups: str, resources: str, names: str = "") -> dict[str, list[str]]:
    """Commas between the values."""
    made = {"verbs": verbs.split(","), "apiGroups": groups.split(","), "resources": resources.split(",")}
    return {**made, "resourceNames": names.split(",")} if names else made


def grant(admin: Client, user: str, *rules: dict[str, list[str]], namespace: str = "") -> None:
    """Let a user do what the rules say, everywhere or in a namespace."""
    where = f"{RBAC}/namespaces/{namespace}/" if namespace else f"{RBAC}/cluster"
    kind = "Role" if namespace else "ClusterRole"
    role = f"{user}-{namespace or 'all'}"
    check(admin.post(f"{where}roles", {"metadata": {"name": role}, "rules": list(rules)}), 201)
    check(admin.post(f"{where}rolebindings", binding(role, role, user, kind)), 201)


def binding(name: str, role: str, user: str, kind: str = "ClusterRole") -> dict[str, Any]:
    """A binding of a role to one user."""
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
    }


def check(answer: Answer, status: int) -> Answer:
    assert answer.status == status, answer.body
    return answer
