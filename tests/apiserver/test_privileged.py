"""`--allow-privileged`: without it no privileged container is admitted, by whichever way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from apiserver.client import Client

from tools import api_server

PODS = "/api/v1/namespaces/default/pods"
REFUSED = "securityContext.privileged: Forbidden: disallowed by cluster policy"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with api_server(tmp_path_factory.mktemp("strict"), "--allow-privileged=false") as server:
        yield Client(server)


def pod(name: str, privileged: bool) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "securityContext": {"privileged": privileged}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def test_privileged_containers_are_refused(strict: Client) -> None:
    refused = strict.post(PODS, pod("bad", True))
    assert refused.status == 422
    assert refused.message == f'Pod "bad" is invalid: spec.containers[0].{REFUSED}'


def test_privileged_containers_do_not_come_in_later(strict: Client) -> None:
    assert strict.post(PODS, pod("good", False)).status == 201
    late = {"name": "e", "image": "i", "securityContext": {"privileged": True}}
    refused = strict.patch(f"{PODS}/good/ephemeralcontainers", {"spec": {"ephemeralContainers": [late]}}, "strategic")
    assert refused.status == 422
    assert REFUSED in refused.message


def test_templates_are_judged_as_pods(strict: Client) -> None:
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": pod("", True)["spec"]}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    refused = strict.post("/apis/apps/v1/namespaces/default/deployments", body)
    assert refused.status == 422
    assert REFUSED in refused.message


def test_who_may_bind_in_one_namespace_binds_in_no_other(strict: Client) -> None:
    body = {"metadata": {"name": "good", "namespace": "kube-system"}, "target": {"name": "n"}}
    refused = strict.post("/api/v1/namespaces/default/bindings", body)
    assert refused.status == 400
    assert refused.message.startswith("the namespace of the provided object does not match")
