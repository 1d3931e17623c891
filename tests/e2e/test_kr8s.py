"""kr8s: the life of objects, watches, waiting, and server-side apply by hand, for it has none of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import kr8s
import kr8s.asyncio
import pytest
from kr8s.objects import APIObject, ConfigMap, Deployment, Pod, Service, new_class

from tools import ApiServer

# It has not heard of 1.36 yet.
pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported")


@pytest.fixture
def api(cluster: ApiServer) -> Any:
    return kr8s.api(kubeconfig=str(cluster.kubeconfig))


@pytest.fixture
def space(api: Any, request: pytest.FixtureRequest) -> str:
    name = "kr8s-" + request.node.name.removeprefix("test_").replace("_", "-")[:50].strip("-")
    _make(api, kr8s.objects.Namespace, {"metadata": {"name": name}})
    return name


def _make(api: Any, kind: Any, document: dict[str, Any]) -> Any:
    made = kind(document, api=api)
    made.create()
    return made


def _deployment(space: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"metadata": {"name": "web", "namespace": space}, "spec": spec}


def test_create_get_list_patch_delete(api: Any, space: str) -> None:
    made = _make(
        api, ConfigMap, {"metadata": {"name": "a", "namespace": space, "labels": {"x": "1"}}, "data": {"k": "v"}}
    )
    assert made.metadata.uid
    assert made.exists()
    made.patch({"data": {"k": "w"}})
    assert made.raw["data"] == {"k": "w"}
    made.patch([{"op": "add", "path": "/data/l", "value": "m"}], type="json")
    assert ConfigMap.get("a", namespace=space, api=api).raw["data"] == {"k": "w", "l": "m"}
    made.label({"y": "2"})
    made.annotate({"n": "o"})
    selected = list(api.get("configmaps", namespace=space, label_selector={"x": "1", "y": "2"}))
    assert [each.name for each in selected] == ["a"]
    assert selected[0].annotations == {"n": "o"}
    assert [each.name for each in api.get("configmaps", namespace=space, field_selector="metadata.name=nope")] == []
    made.remove_label("y")
    assert "y" not in ConfigMap.get("a", namespace=space, api=api).labels
    made.delete()
    made.wait("delete", timeout=60)
    assert not made.exists()
    with pytest.raises(kr8s.NotFoundError):
        ConfigMap.get("a", namespace=space, api=api, timeout=0)


def test_errors_of_the_server_are_reported(api: Any, space: str) -> None:
    with pytest.raises(kr8s.ServerError, match="Invalid value") as refused:
        _make(api, ConfigMap, {"metadata": {"name": "A_b", "namespace": space}})
    assert refused.value.status["reason"] == "Invalid"
    assert refused.value.status["details"]["causes"][0]["field"] == "metadata.name"


def test_workloads_scale_and_status(api: Any, space: str) -> None:
    made = _make(api, Deployment, _deployment(space))
    made.scale(3)
    assert made.replicas == 3
    made.patch({"status": {"replicas": 3, "readyReplicas": 3, "observedGeneration": 2}}, subresource="status")
    made.refresh()
    assert made.status.readyReplicas == 3
    assert made.spec.replicas == 3
    service = _make(api, Service, {"metadata": {"name": "s", "namespace": space}, "spec": {"ports": [{"port": 80}]}})
    assert service.spec.clusterIP.count(".") == 3


def test_conditions_are_waited_for(api: Any, space: str) -> None:
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    pod = _make(api, Pod, {"metadata": {"name": "p", "namespace": space}, "spec": spec})
    waiting = threading.Thread(target=lambda: pod.wait("condition=Ready", timeout=60))
    waiting.start()
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
    status = {"phase": "Running", "conditions": conditions}
    Pod.get("p", namespace=space, api=api).patch({"status": status}, subresource="status")
    waiting.join(70)
    assert not waiting.is_alive()
    pod.refresh()
    assert pod.ready()


def test_watch(api: Any, space: str) -> None:
    made = _make(api, ConfigMap, {"metadata": {"name": "w", "namespace": space}})
    events = api.watch("configmaps", namespace=space)
    seen = [next(events)]
    made.patch({"data": {"k": "v"}})
    seen.append(next(events))
    made.delete()
    seen.append(next(events))
    assert [(kind, each.name) for kind, each in seen] == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]
    assert seen[1][1].raw["data"] == {"k": "v"}


def test_any_kind_by_its_name(api: Any, space: str) -> None:
    lease = new_class("Lease", "coordination.k8s.io/v1", namespaced=True)
    _make(api, lease, {"metadata": {"name": "l", "namespace": space}, "spec": {"holderIdentity": "me"}})
    found = list(api.get("leases.coordination.k8s.io", namespace=space))
    assert [each.raw["spec"]["holderIdentity"] for each in found] == ["me"]
    assert any(each["kind"] == "Deployment" and each["version"] == "apps/v1" for each in api.api_resources())
    assert api.version()["minor"] == "36"


def test_server_side_apply(cluster: ApiServer, api: Any, space: str) -> None:
    async def apply(document: dict[str, Any], manager: str, force: bool = False) -> dict[str, Any]:
        client = await kr8s.asyncio.api(kubeconfig=str(cluster.kubeconfig))
        async with client.call_api(
            "PATCH",
            version="v1",
            url="configmaps/a",
            namespace=space,
            content=json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **document}),
            headers={"Content-Type": "application/apply-patch+yaml"},
            params={"fieldManager": manager, **({"force": "true"} if force else {})},
        ) as response:
            return dict(response.json())

    assert asyncio.run(apply({"data": {"k": "1", "l": "1"}}, "one"))["data"] == {"k": "1", "l": "1"}
    with pytest.raises(kr8s.ServerError, match=r'conflict with "one": \.data\.k') as refused:
        asyncio.run(apply({"data": {"k": "2"}}, "two"))
    assert refused.value.response.status_code == 409
    assert asyncio.run(apply({"data": {"k": "2"}}, "two", force=True))["data"] == {"k": "2", "l": "1"}
    # What the first manager says no more goes, what the second has taken stays.
    assert asyncio.run(apply({}, "one"))["data"] == {"k": "2"}
    found: APIObject = ConfigMap.get("a", namespace=space, api=api)
    assert {entry["manager"]: entry["operation"] for entry in found.raw["metadata"]["managedFields"]} == {
        "two": "Apply"
    }
