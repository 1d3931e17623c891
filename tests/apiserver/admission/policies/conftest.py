"""An API server of its own, and policies that hold for one test."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from apiserver.client import Client

import tools

API = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
]
DEPLOYMENTS = [
    {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}
]
Policy = Callable[..., str]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with tools.api_server(tmp_path_factory.mktemp("policies"), "--authorization-mode=RBAC") as server:
        yield Client(server)


@pytest.fixture
def place(api: Client) -> str:
    return api.namespace()


@pytest.fixture
def policy(api: Client, place: str) -> Iterator[Policy]:
    """Makes a policy and its binding for this test's namespace; gone afterwards."""
    made: list[str] = []

    def add(
        kind: str, spec: dict[str, Any], binding: dict[str, Any] | None = None, *, bind: bool = True, **more: Any
    ) -> str:
        name = f"p-{secrets.token_hex(4)}"
        rules = spec.pop("rules", CONFIG_MAPS)
        spec = {"matchConstraints": {"resourceRules": rules}, **spec}
        plural = f"{kind}admissionpolicies"
        answer = api.post(f"{API}/{plural}", {"metadata": {"name": name}, "spec": spec})
        assert answer.status == 201, answer.body
        made.append(f"{API}/{plural}/{name}")
        if bind:
            where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place}}}
            bound: dict[str, Any] = {"policyName": name, "matchResources": where, **(binding or {})}
            if kind == "validating":
                bound.setdefault("validationActions", ["Deny"])
            answer = api.post(f"{API}/{kind}admissionpolicybindings", {"metadata": {"name": name}, "spec": bound})
            assert answer.status == 201, answer.body
            made.append(f"{API}/{kind}admissionpolicybindings/{name}")
        return name

    yield add
    for path in reversed(made):
        api.delete(path)


def deployment(name: str, replicas: int = 1, **meta: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, **meta}, "spec": spec}
