"""Evictions and budgets: what a budget is charged, what it says when it is spent, and whom it does not concern."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from apiserver.client import Client

from pybernetes.api.core.v1 import Pod
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.api.meta.v1.labelselector import LabelSelectorRequirement
from pybernetes.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from pybernetes.apiserver.subresources import eviction

SPEC = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
MANY = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
MET = {"currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3, "observedGeneration": 1}


def pod(client: Client, namespace: str, status: dict[str, Any], name: str = "p") -> str:
    """The path of a pod in this state."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    assert client.post(path, {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": SPEC}).status == 201
    assert client.patch(f"{path}/{name}/status", {"status": status}).status == 200
    return f"{path}/{name}"


def budget(client: Client, namespace: str, status: dict[str, Any], name: str = "x", **spec: Any) -> str:
    """The path of a budget for the pods."""
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    selector = {"matchLabels": {"a": "b"}}
    body = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector, **spec}}
    assert client.post(path, body).status == 201
    assert client.patch(f"{path}/{name}/status", {"status": {"disruptionsAllowed": 0, **status}}).status == 200
    return f"{path}/{name}"


def evict(client: Client, path: str, query: str = "", **options: Any) -> Any:
    name = path.rpartition("/")[2]
    return client.post(f"{path}/eviction{query}", {"metadata": {"name": name}, "deleteOptions": options or None})


def test_the_last_eviction_says_that_nothing_is_left(client: Client, namespace: str) -> None:
    first, second = (pod(client, namespace, READY, name) for name in ("p", "q"))
    where = budget(client, namespace, {**MET, "disruptionsAllowed": 1})
    assert evict(client, first, "?dryRun=All").status == 201
    assert client.get(where).json["status"]["disruptionsAllowed"] == 1
    assert evict(client, first).status == 201
    status = client.get(where).json["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    (condition,) = status["conditions"]
    assert condition.pop("lastTransitionTime")
    expected = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}
    assert condition == {**expected, "observedGeneration": 1}
    refused = evict(client, second)
    assert (refused.status, refused.message) == (429, VIOLATES)
    (cause,) = refused.json["details"]["causes"]
    assert cause["message"] == "The disruption budget x does not allow evicting pods currently"


def test_the_server_owns_what_an_eviction_writes_into_a_budget(client: Client, namespace: str) -> None:
    evicted = pod(client, namespace, READY)
    where = budget(client, namespace, {**MET, "disruptionsAllowed": 2})
    assert evict(client, evicted).status == 201
    owners = {each["manager"]: each for each in client.get(where).json["metadata"]["managedFields"]}
    entry = owners["kube-apiserver"]
    assert (entry["operation"], entry["subresource"]) == ("Update", "status")
    assert entry["fieldsV1"] == {"f:status": {"f:disruptedPods": {".": {}, "f:p": {}}, "f:disruptionsAllowed": {}}}


def condition(reason: str, message: str) -> dict[str, Any]:
    when = "2024-01-01T00:00:00Z"
    known = {"type": "DisruptionAllowed", "status": "False", "lastTransitionTime": when}
    return {"conditions": [{**known, "reason": reason, "message": message}]}


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({**MET, "observedGeneration": 0}, "is still being processed by the server."),
        ({**MET, "currentHealthy": 1}, "needs 1 healthy pods and has 1 currently"),
        (
            {**MET, **condition("SyncFailed", "no scale")},
            "does not allow evicting pods currently because it failed sync: no scale",
        ),
        ({**MET, **condition("Odd", "so")}, "does not allow evicting pods currently (Odd): so"),
    ],
)
def test_a_budget_that_allows_nothing_says_why(
    client: Client, namespace: str, status: dict[str, Any], why: str
) -> None:
    path = pod(client, namespace, READY)
    budget(client, namespace, status)
    refused = evict(client, path)
    assert (refused.status, refused.message) == (429, VIOLATES)
    assert refused.json["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": f"The disruption budget x {why}"}
    ]


@pytest.mark.parametrize(
    ("state", "spec", "status"),
    [
        ({"phase": "Succeeded"}, {}, {}),
        ({"phase": "Pending"}, {}, {}),
        ({"phase": "Running"}, {}, MET),
        ({"phase": "Running"}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, {}),
    ],
)
def test_who_disrupts_nothing_costs_nothing(
    client: Client, namespace: str, state: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]
) -> None:
    path = pod(client, namespace, state)
    where = budget(client, namespace, status, **spec)
    before = client.get(where).json
    assert evict(client, path).status == 201
    assert client.get(where).json == before


def test_two_budgets_for_one_pod_are_an_error_without_a_reason(client: Client, namespace: str) -> None:
    path = pod(client, namespace, READY)
    for name in ("x", "y"):
        budget(client, namespace, {**MET, "disruptionsAllowed": 1}, name)
    answer = evict(client, path)
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": MANY, "code": 500}
    assert (answer.status, answer.json) == (500, status)


def test_a_pod_that_cannot_be_read_is_not_evicted_blindly(client: Client, namespace: str) -> None:
    answer = evict(client, pod(client, namespace, READY), ignoreStoreReadErrorWithClusterBreakingPotential=True)
    assert answer.status == 422
    assert answer.message.endswith("true: can not be set for pod eviction, try after removing the option")


async def test_many_budgets_hold_up_no_other_request_and_one_that_cannot_be_read_selects_nothing() -> None:
    """The store of budgets is a fake: the API refuses what cannot be read."""
    odd = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="Odd")])
    selectors = [odd, *[LabelSelector(match_labels={"a": "c"})] * 20, LabelSelector(match_labels={"a": "b"})]
    kept = {
        str(number): PodDisruptionBudget(spec=PodDisruptionBudgetSpec(selector=each))
        for number, each in enumerate(selectors)
    }

    async def consistent() -> None: ...

    store = SimpleNamespace(
        consistent=consistent,
        scope=lambda namespace: namespace,
        partition=SimpleNamespace(scan=lambda scope: list(kept), items={key: SimpleNamespace(key=key) for key in kept}),
        decode_all=lambda items: ((item, kept[item.key]) for item in items),
    )
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    registry: Any = SimpleNamespace(store=lambda *names: store)
    found = await eviction._budget(registry, Pod(metadata=ObjectMeta(namespace="n", labels={"a": "b"})))
    beside.cancel()
    assert found is store.partition.items["21"]
    assert turns >= 20
