"""What the server remembers of requests that begin alike holds only as long as it is true.

Each question here is the same bytes each time; what is around it changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from apiserver.client import Client

from tools import wait_until

GROUP = "heads.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"


def definition(scope: str, plural: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


class Kind:
    """A kind that can be defined, and forgotten again."""

    def __init__(self, client: Client, plural: str) -> None:
        self.client, self.plural = client, plural
        self.definition = f"{DEFINITIONS}/{plural}.{GROUP}"

    def define(self, scope: str) -> None:
        made = self.client.post(DEFINITIONS, definition(scope, self.plural))
        assert made.status == 201, made.body

    def forget(self) -> None:
        self.client.delete(self.definition)
        wait_until(lambda: self.client.get(self.definition).status == 404 or None, "the definition is gone")


@pytest.fixture
def kind(client: Client, request: pytest.FixtureRequest) -> Iterator[Kind]:
    """One for each test, so that it was never there before."""
    made = Kind(client, request.node.name.split("_")[-1])
    yield made
    made.forget()


def test_a_kind_that_comes_and_goes_and_comes_back_in_another_form(client: Client, kind: Kind) -> None:
    inside, outside = (f"/apis/{GROUP}/v1/{where}{kind.plural}" for where in ("namespaces/default/", ""))

    def statuses() -> list[int]:
        return [client.get(path).status for path in (inside, outside, f"{inside}/x", f"{outside}/x")]

    def become(wanted: list[int]) -> None:
        wait_until(lambda: statuses() == wanted or None, f"{wanted}, but {statuses()}")

    assert statuses() == [404] * 4
    for _ in range(2):
        kind.define("Namespaced")
        become([200, 200, 404, 404])
        assert (
            client.post(
                inside, {"kind": kind.plural.title(), "apiVersion": f"{GROUP}/v1", "metadata": {"name": "x"}}
            ).status
            == 201
        )
        become([200, 200, 200, 404])
        kind.forget()
        become([404] * 4)
        kind.define("Cluster")
        become([404, 200, 404, 404])
        kind.forget()
        become([404] * 4)


def test_a_version_that_is_deprecated_warns_from_then_on(client: Client, kind: Kind) -> None:
    path = f"/apis/{GROUP}/v1/{kind.plural}"
    kind.define("Cluster")
    wait_until(lambda: client.get(path).status == 200 or None, "the kind is served")
    assert client.get(path).warnings == []
    changed = client.get(kind.definition).json
    changed["spec"]["versions"][0]["deprecated"] = True
    assert client.put(kind.definition, changed).status == 200
    wait_until(lambda: client.get(path).warnings or None, "a warning")
    assert len(client.get(path).warnings) == 1  # each time, and not once more each time


def test_requests_are_counted_where_they_belong_once_there_is_their_kind(client: Client, kind: Kind) -> None:
    path, query = f"/apis/{GROUP}/v1/{kind.plural}", "fieldManager=counted"

    def counted() -> int:
        text = client.get("/metrics").body.decode()
        labels = rf'code="(?:200|404)",[^}}]*resource="{kind.plural}",[^}}]*verb="LIST"[^}}]*'
        return sum(int(float(each)) for each in re.findall(rf"apiserver_request_total{{{labels}}} (\S+)", text))

    def ask(status: int) -> None:
        assert client.get(f"{path}?{query}").status == status

    ask(404)
    assert counted() == 0
    kind.define("Cluster")
    wait_until(lambda: client.get(path).status == 200 or None, "the kind is served")
    before = counted()
    ask(200)
    ask(200)
    assert counted() == before + 2


def test_a_new_flow_schema_counts_for_requests_that_came_before_it(client: Client) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps"
    token = client.post("/api/v1/namespaces/kube-system/serviceaccounts/default/token", {"spec": {}})
    if token.status == 404:
        made = client.post("/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": "default"}})
        assert made.status in (201, 409), made.body
        token = client.post("/api/v1/namespaces/kube-system/serviceaccounts/default/token", {"spec": {}})
    account = Client(client.server, token.json["status"]["token"])

    def schema() -> str:
        return account.get(path).headers["X-Kubernetes-PF-FlowSchema-UID"]

    usual = schema()
    assert schema() == usual
    subject = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "default"}}
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    made = client.post(
        FLOWS,
        {
            "metadata": {"name": "heads"},
            "spec": {
                "matchingPrecedence": 2,
                "priorityLevelConfiguration": {"name": "workload-low"},
                "rules": [{"subjects": [subject], "resourceRules": [rule]}],
            },
        },
    )
    assert made.status == 201, made.body
    try:
        assert schema() == made.json["metadata"]["uid"]
    finally:
        client.delete(f"{FLOWS}/heads")
    assert schema() == usual
