"""Pods leave devices with a NoExecute taint."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from controllers.conftest import Harness, MakeHarness

from pybernetes.api.core.v1 import Pod
from pybernetes.api.resource.v1 import DeviceTaint, ResourceClaim, ResourceSlice
from pybernetes.api.times import rfc3339
from pybernetes.controllers.devicetainteviction import claim_due, device_taints

EVICTION = "device-taint-eviction-controller"
TAINT = {"key": "sick", "effect": "NoExecute"}
T0 = "2026-01-01T00:00:00Z"
AT = 1767225600.0


def claim(*devices: dict[str, Any]) -> ResourceClaim:
    results = [{"request": "r", "driver": "d", "pool": "p", "device": "gpu", **each} for each in devices]
    return msgspec.convert({"status": {"allocation": {"devices": {"results": results}}}}, ResourceClaim)


def toleration(**more: Any) -> dict[str, Any]:
    return {"operator": "Exists", "effect": "NoExecute", **more}


def tolerated(**more: Any) -> dict[str, Any]:
    return {"tolerations": [toleration(**more)]}


class TestDue:
    @pytest.mark.parametrize(
        ("device", "due"),
        [
            ({}, AT),
            (tolerated(), None),
            (tolerated(tolerationSeconds=30), AT + 30),
            (tolerated(tolerationSeconds=-5), AT),
            (tolerated(key="another"), AT),
            (tolerated(key="sick", operator="Equal", value="x"), AT),
            (tolerated(effect="NoSchedule"), AT),
            (tolerated(effect=None), AT),
            (
                {
                    "tolerations": [
                        *tolerated(tolerationSeconds=9)["tolerations"],
                        *tolerated(tolerationSeconds=5)["tolerations"],
                    ]
                },
                AT + 5,
            ),
        ],
    )
    def test_of_one_taint(self, device: dict[str, Any], due: float | None) -> None:
        taint = DeviceTaint(key="sick", effect="NoExecute", time_added=T0)
        assert claim_due(claim(device), lambda _: [taint]) == due

    def test_is_that_of_the_first_taint(self) -> None:
        early = DeviceTaint(key="sick", effect="NoExecute", time_added=T0)
        late = DeviceTaint(key="sick", effect="NoExecute", time_added="2026-01-01T00:01:00Z")
        assert claim_due(claim({}), lambda _: [late, early]) == AT
        assert claim_due(claim({}), lambda _: []) is None
        assert claim_due(ResourceClaim(), lambda _: [early]) is None


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    def piece(generation: int, *taints: dict[str, Any]) -> ResourceSlice:
        pool = {"name": "p", "generation": generation, "resourceSliceCount": 1}
        devices = [{"name": "gpu", "taints": list(taints)}]
        return msgspec.convert({"spec": {"driver": "d", "pool": pool, "devices": devices}}, ResourceSlice)

    assert device_taints([piece(1, TAINT)], "gpu") == [DeviceTaint(key="sick", effect="NoExecute")]
    assert device_taints([piece(1, TAINT), piece(2)], "gpu") == []
    assert device_taints([piece(1, {**TAINT, "effect": "NoSchedule"})], "gpu") == []
    assert device_taints([piece(1, TAINT)], "another") == []


class World:
    def __init__(self, h: Harness) -> None:
        self.h = h
        self.driver = f"{h.namespace}.example.com"

    async def slice(self, *taints: dict[str, Any]) -> None:
        spec = {
            "driver": self.driver,
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu", "taints": list(taints)}],
        }
        body = {"metadata": {"name": self.h.namespace}, "spec": spec}
        await self.h.client.call("POST", "/apis/resource.k8s.io/v1/resourceslices", body)

    async def taint(self, *taints: dict[str, Any]) -> None:
        patch = {"spec": {"devices": [{"name": "gpu", "taints": list(taints)}]}}
        await self.h.client.patch(ResourceSlice, self.h.namespace, patch)

    async def pod(self, tolerations: list[dict[str, Any]] | None = None) -> Pod:
        where = f"/api/v1/namespaces/{self.h.namespace}/pods"
        spec = {
            "nodeName": "n",
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
        }
        await self.h.client.call("POST", where, {"metadata": {"name": "user"}, "spec": spec})
        pod = await self.h.client.get(Pod, "user", self.h.namespace)
        request = {"name": "r", "exactly": {"deviceClassName": "any", "tolerations": tolerations}}
        wanted = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
        claims = f"/apis/resource.k8s.io/v1/namespaces/{self.h.namespace}/resourceclaims"
        await self.h.client.call("POST", claims, wanted)
        result = {
            "request": "r",
            "driver": self.driver,
            "pool": "p",
            "device": "gpu",
            "tolerations": tolerations,
        }
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "user", "uid": pod.metadata.uid if pod.metadata else None}],
        }
        await self.h.client.patch(ResourceClaim, "c", {"status": status}, self.h.namespace, subresource="status")
        return pod

    async def going(self) -> None:
        async def check() -> bool:
            found = await self.h.get(Pod, "user")
            return found is None or bool(found.metadata and found.metadata.deletion_timestamp)

        await self.h.until(check, "the pod is evicted")

    async def said(self, message: str) -> None:
        async def check() -> bool:
            return any(each.message == message for each in await self.h.events("DeviceTaintManagerEviction"))

        await self.h.until(check, message)


async def test_a_pod_is_evicted_when_its_device_is_tainted(harness: MakeHarness) -> None:
    async with harness(EVICTION, kubelet=False) as h:
        world = World(h)
        await world.slice()
        await world.pod()
        await h.until(lambda: h.live(ResourceClaim), "the claim is seen")
        await h.settled()
        found = await h.get(Pod, "user")
        assert found is not None
        assert found.metadata is not None
        assert not found.metadata.deletion_timestamp
        await world.taint({**TAINT, "effect": "NoSchedule"})
        await h.settled()
        assert not h.cached(Pod)[0].metadata.deletion_timestamp
        await world.taint(TAINT)
        await world.going()
        await world.said("Marking for deletion")
        metrics = h.manager.context.metrics.render().decode()
        assert "device_taint_eviction_controller_pod_deletions_total 1" in metrics


async def test_what_is_tolerated_for_a_while_waits_and_may_be_taken_back(harness: MakeHarness) -> None:
    async with harness(EVICTION, kubelet=False) as h:
        world = World(h)
        await world.slice({**TAINT, "timeAdded": rfc3339(time.time())})
        await world.pod([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}])
        controller: Any = h.controller(EVICTION)
        await h.until(lambda: controller._scheduled, "the eviction is planned")
        await world.taint()
        await world.said("Cancelling deletion")
        h.clock.advance(400)
        await h.settled()
        assert not h.cached(Pod)[0].metadata.deletion_timestamp
        await world.taint({**TAINT, "timeAdded": rfc3339(h.clock.now())})
        await h.until(lambda: controller._scheduled, "the eviction is planned again")
        h.clock.advance(250)
        await h.settled()
        assert not h.cached(Pod)[0].metadata.deletion_timestamp
        h.clock.advance(60)
        await world.going()


async def test_the_condition_says_why(harness: MakeHarness) -> None:
    async with harness(EVICTION, kubelet=False) as h:
        world = World(h)
        await world.slice(TAINT)
        seen: list[Any] = []
        h.manager.context.informers.informer(Pod).add_handler(
            on_update=lambda _, new: seen.extend((new.status.conditions if new.status else None) or ())
        )
        await world.pod()
        await world.going()
        await h.until(lambda: seen, "the condition is seen")
        told = next(each for each in seen if each.type == "DisruptionTarget")
        assert (told.status, told.reason) == ("True", "DeletionByDeviceTaintManager")
        assert told.message == "Device Taint manager: deleting due to NoExecute taint"
