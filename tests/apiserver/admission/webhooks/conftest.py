"""An API server of its own, and webhook servers for it to call."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from apiserver.admission.webhooks.server import WebhookServer
from apiserver.client import Client

import tools

API = "/apis/admissionregistration.k8s.io/v1"
Register = Callable[..., str]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with tools.api_server(tmp_path_factory.mktemp("webhooks")) as server:
        yield Client(server)


@pytest.fixture(scope="module")
def hooks() -> Iterator[WebhookServer]:
    server = WebhookServer()
    yield server
    server.close()


@pytest.fixture
def place(api: Client) -> str:
    return api.namespace()


@pytest.fixture
def register(api: Client, hooks: WebhookServer, place: str) -> Iterator[Register]:
    """Registers a webhook for this test's namespace; gone afterwards."""
    made: list[str] = []

    def add(kind: str, path: str, rules: list[dict[str, Any]] | None = None, **more: Any) -> str:
        name = f"{path.strip('/')}-{secrets.token_hex(3)}"
        webhook: dict[str, Any] = {
            "name": f"{path.strip('/')}.example.com",
            "clientConfig": {"url": hooks.url(path), "caBundle": hooks.bundle},
            "rules": rules
            or [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place}},
            **more,
        }
        plural = f"{kind}webhookconfigurations"
        body = {"metadata": {"name": name}, "webhooks": [webhook]}
        answer = api.post(f"{API}/{plural}", body)
        assert answer.status == 201, answer.body
        made.append(f"{API}/{plural}/{name}")
        return made[-1]

    yield add
    for path in made:
        api.delete(path)
