"""Capacity for the scheduler, health of volumes, and their VolumeAttributesClasses, with a real API server."""

from __future__ import annotations

from typing import Any

import msgspec
from csi.controllers import NAME, ZONE, Cluster, Disk, becomes

from pybernetes.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim
from pybernetes.api.storage.v1 import CSINode, CSIStorageCapacity, VolumeAttributesClass
from pybernetes.csi import v1
from pybernetes.csi.controller.capacities import Capacities
from pybernetes.csi.controller.health import HealthMonitor
from pybernetes.csi.controller.modifier import Modifier
from pybernetes.csi.errors import CSIError


class Full(Disk):
    """Knows how much is left, whether volumes are sick, and modifies them."""

    volume_condition = True

    def __init__(self) -> None:
        super().__init__()
        self.left = 10 << 30
        self.sick: dict[str, str] = {}

    async def get_capacity(self, request: Any) -> Any:
        await self.noted("GetCapacity", request)
        return v1.GetCapacityResponse(available_capacity=self.left, maximum_volume_size={"value": 1 << 30})

    async def list_volumes(self, request: Any) -> Any:
        response = v1.ListVolumesResponse()
        names = sorted(self.volumes)
        start = names.index(request.starting_token) if request.starting_token else 0
        for name in names[start : start + 1]:  # a page has one
            text = self.sick.get(name, "")
            response.entries.add(
                volume={"volume_id": name}, status={"volume_condition": {"abnormal": bool(text), "message": text}}
            )
        response.next_token = names[start + 1] if start + 1 < len(names) else ""
        return response

    async def controller_modify_volume(self, request: Any) -> Any:
        await self.noted("ControllerModifyVolume", request)
        return v1.ControllerModifyVolumeResponse()


async def _in_zone(cluster: Cluster) -> None:
    name = f"n-{cluster.space}"
    node = {"metadata": {"name": name, "labels": {ZONE: "east"}}}
    await cluster.client.create(msgspec.convert(node, Node))
    drivers = [{"name": NAME, "nodeID": name, "topologyKeys": [ZONE]}]
    await cluster.client.create(msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CSINode))


async def test_the_scheduler_learns_how_much_is_left_and_where(start: Any) -> None:
    driver = Full()
    async with start(driver, more=lambda context: [Capacities(context, "default")]) as cluster:

        async def amounts() -> list[tuple[object, ...]]:
            return [
                (each.node_topology.match_labels, str(each.capacity), str(each.maximum_volume_size))
                for each in (await cluster.client.list(CSIStorageCapacity, "default")).items
                if each.storage_class_name == cluster.cls
            ]

        await cluster.make_class(volumeBindingMode="WaitForFirstConsumer", parameters={"color": "red"})
        await becomes([], amounts)  # the driver is on no node
        await _in_zone(cluster)
        await becomes([({ZONE: "east"}, "10Gi", "1Gi")], amounts)
        asked = driver.last("GetCapacity")
        assert dict(asked.parameters) == {"color": "red"}
        assert dict(asked.accessible_topology.segments) == {ZONE: "east"}

        # A volume takes some of it.
        driver.left = 3 << 30
        await cluster.volume(await cluster.claim("data", node=f"n-{cluster.space}"))
        await becomes([({ZONE: "east"}, "3Gi", "1Gi")], amounts)

        await cluster.client.delete(CSINode, f"n-{cluster.space}")
        await becomes([], amounts)


async def test_a_sick_volume_is_an_event_of_its_claim_until_it_recovers(start: Any) -> None:
    driver = Full()
    async with start(driver, more=lambda context: [HealthMonitor(context, interval=0.05)]) as cluster:
        await cluster.make_class()
        for name in ("well", "sick"):
            claim = await cluster.claim(name)
            volume = await cluster.volume(claim)
            await cluster.bind(claim, volume)
        driver.sick[volume.metadata.name] = "a disk is missing"
        assert await cluster.events("VolumeConditionAbnormal") == ["a disk is missing"]
        driver.sick.clear()
        assert await cluster.events("VolumeConditionNormal") == ["The Volume returns to the healthy state"]


async def test_a_claim_of_another_attributes_class_has_its_volume_modified(start: Any) -> None:
    driver = Full()
    async with start(driver, more=lambda context: [Modifier(context)]) as cluster:
        await cluster.make_class()
        claim = await cluster.claim("data")
        volume = await cluster.volume(claim)
        await cluster.bind(claim, volume)
        driver.failing["ControllerModifyVolume"] = [
            CSIError("Unavailable", "busy"),
            CSIError("InvalidArgument", "iops: too many"),
        ]

        async def state() -> tuple[object, ...]:
            live = await cluster.client.get(PersistentVolumeClaim, "data", cluster.space)
            status = live.status
            under_way = status.modify_volume_status
            return (
                status.current_volume_attributes_class_name,
                (under_way.target_volume_attributes_class_name, under_way.status) if under_way else None,
                [each.type for each in status.conditions or ()],
            )

        fast, other = f"fast-{cluster.space}", f"other-{cluster.space}"

        async def choose(name: str | None) -> None:
            patch = {"spec": {"volumeAttributesClassName": name}}
            await cluster.client.patch(PersistentVolumeClaim, "data", patch, cluster.space)

        async def make(name: str, driver: str) -> None:
            made = {"metadata": {"name": name}, "driverName": driver, "parameters": {"iops": "100"}}
            await cluster.client.create(msgspec.convert(made, VolumeAttributesClass))

        # A class that does not exist, then exists, and is refused by the driver after a failure that passes.
        await choose(fast)
        await becomes((None, (fast, "Pending"), []), state)
        await make(fast, NAME)
        await becomes((None, (fast, "Infeasible"), ["ModifyVolumeError"]), state)
        assert any("does not exist" in each for each in await cluster.events("VolumeModifyFailed"))
        # Back, and again: now the driver agrees.
        await choose(None)
        await becomes((None, None, []), state)
        await choose(fast)
        await becomes((fast, None, []), state)
        assert dict(driver.last("ControllerModifyVolume").mutable_parameters) == {"iops": "100"}
        live = await cluster.client.get(PersistentVolume, volume.metadata.name)
        assert live.spec.volume_attributes_class_name == fast
        # A class of another driver.
        await make(other, "other.example.com")
        await choose(other)
        await becomes((fast, (other, "Pending"), []), state)
        for name in (fast, other):
            await cluster.client.patch(VolumeAttributesClass, name, {"metadata": {"finalizers": None}})
            await cluster.client.delete(VolumeAttributesClass, name)
