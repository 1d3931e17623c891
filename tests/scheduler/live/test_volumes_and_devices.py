"""Pods with volumes, devices and affinity to other pods, on a real API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pybernetes.api.core.v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Pod,
    PodResourceClaim,
    Volume,
)
from pybernetes.api.core.v1.affinity import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
)
from pybernetes.api.core.v1.persistentvolume import CSIPersistentVolumeSource, VolumeNodeAffinity
from pybernetes.api.core.v1.persistentvolumeclaim import VolumeResourceRequirements
from pybernetes.api.core.v1.volumesource import HostPathVolumeSource, PersistentVolumeClaimVolumeSource
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.api.resource.v1 import (
    CELDeviceSelector,
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from pybernetes.api.storage.v1 import StorageClass

if TYPE_CHECKING:
    from conftest import Live, MakeLive

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


async def storage_class(live: Live, provisioner: str) -> str:
    name = f"class-{live.namespace}"
    mode = "WaitForFirstConsumer"
    await live.client.create(
        StorageClass(metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode=mode)
    )
    return name


async def claim(live: Live, name: str, storage_class: str) -> PersistentVolumeClaim:
    return await live.client.create(
        PersistentVolumeClaim(
            metadata=ObjectMeta(name=name, namespace=live.namespace),
            spec=PersistentVolumeClaimSpec(
                storage_class_name=storage_class,
                access_modes=["ReadWriteOnce"],
                resources=VolumeResourceRequirements(requests={"storage": "1Gi"}),
            ),
        )
    )


def volume_spec(storage_class: str, **more: Any) -> PersistentVolumeSpec:
    return PersistentVolumeSpec(
        capacity={"storage": "2Gi"}, access_modes=["ReadWriteOnce"], storage_class_name=storage_class, **more
    )


def using(name: str) -> list[Volume]:
    return [Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))]


async def complete(live: Live, name: str, volume: str) -> None:
    """What the controller of volumes does in the end."""
    patch = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": volume}}
    await live.client.patch(PersistentVolumeClaim, name, patch, live.namespace)


async def test_a_pod_goes_to_the_node_of_a_volume_that_suits_its_claim(live: MakeLive) -> None:
    async with live() as running:
        for name in ("a", "b"):
            await running.node(name, labels={HOSTNAME: name})
        local = await storage_class(running, "kubernetes.io/no-provisioner")
        await claim(running, "data", local)
        await running.pod("web", volumes=using("data"))
        assert "2 node(s) didn't find available persistent volumes to bind" in await running.refused("web")
        here = NodeSelectorRequirement(key=HOSTNAME, operator="In", values=["b"])
        terms = [NodeSelectorTerm(match_expressions=[here])]
        affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
        spec = volume_spec(local, host_path=HostPathVolumeSource(path="/x"), node_affinity=affinity)
        name = f"volume-{running.namespace}"
        made = await running.client.create(PersistentVolume(metadata=ObjectMeta(name=name), spec=spec))
        made.status.phase = "Available"
        await running.client.update_status(made)

        async def reserved() -> bool:
            found = await running.client.get(PersistentVolume, name)
            return found.spec.claim_ref is not None and found.spec.claim_ref.name == "data"

        await running.until(reserved, "the volume is reserved for the claim")
        pod = await running.get("web")
        assert not pod.spec.node_name  # not before the claim is bound
        await complete(running, "data", name)
        assert await running.bound("web") == "b"


async def test_a_volume_is_made_for_the_node_of_its_pod(live: MakeLive) -> None:
    async with live() as running:
        await running.node("a", labels={HOSTNAME: "a"})
        made = await storage_class(running, "disks.example.com")
        await claim(running, "data", made)
        await running.pod("web", volumes=using("data"))

        async def selected() -> str | None:
            found = await running.client.get(PersistentVolumeClaim, "data", running.namespace)
            return (found.metadata.annotations or {}).get("volume.kubernetes.io/selected-node")

        assert await running.until(selected, "a node is selected") == "a"
        name = f"made-{running.namespace}"
        source = CSIPersistentVolumeSource(driver="disks.example.com", volume_handle="x")
        await running.client.create(
            PersistentVolume(metadata=ObjectMeta(name=name), spec=volume_spec(made, csi=source))
        )
        await complete(running, "data", name)
        assert await running.bound("web") == "a"


async def device_class(live: Live, **spec: Any) -> str:
    name = f"gpu-{live.namespace}"
    await live.client.create(DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(**spec)))
    return name


async def devices(live: Live, node: str, *models: str) -> None:
    found = [
        Device(name=f"gpu{index}", attributes={"model": DeviceAttribute(string=model)})
        for index, model in enumerate(models)
    ]
    pool = ResourcePool(name=f"{live.namespace}-{node}", generation=1, resource_slice_count=1)
    spec = ResourceSliceSpec(driver="gpu.example.com", pool=pool, node_name=node, devices=found)
    await live.client.create(ResourceSlice(metadata=ObjectMeta(name=f"{live.namespace}-{node}"), spec=spec))


async def test_a_pod_goes_where_the_devices_of_its_claim_are_and_gets_them(live: MakeLive) -> None:
    async with live() as running:
        for name in ("a", "b"):
            await running.node(name)
        chosen = [DeviceSelector(cel=CELDeviceSelector(expression="device.attributes['gpu.example.com'].model == 'x'"))]
        gpu = await device_class(running, selectors=chosen)
        await devices(running, "a", "y")
        await devices(running, "b", "y", "x")
        request = DeviceRequest(name="r", exactly=ExactDeviceRequest(device_class_name=gpu))
        spec = ResourceClaimSpec(devices=DeviceClaim(requests=[request]))
        await running.client.create(
            ResourceClaim(metadata=ObjectMeta(name="gpu", namespace=running.namespace), spec=spec)
        )
        entry = [PodResourceClaim(name="gpu", resource_claim_name="gpu")]
        pod = await running.pod("web", resource_claims=entry)
        assert await running.bound("web") == "b"
        found = await running.client.get(ResourceClaim, "gpu", running.namespace)
        (result,) = found.status.allocation.devices.results
        assert (result.device, result.request) == ("gpu1", "r")
        assert [each.uid for each in found.status.reserved_for] == [pod.metadata.uid]
        assert "resource.kubernetes.io/delete-protection" in found.metadata.finalizers


async def test_an_extended_resource_that_a_class_provides_is_given_as_devices(live: MakeLive) -> None:
    async with live() as running:
        for name in ("c", "d"):
            await running.node(name)
        await device_class(running, extended_resource_name="example.com/gpu")
        await devices(running, "d", "x", "x")
        await running.pod("web", **{"example.com/gpu": "2"})
        assert await running.bound("web") == "d"
        pod = await running.get("web")
        said = pod.status.extended_resource_claim_status
        found = await running.client.get(ResourceClaim, said.resource_claim_name, running.namespace)
        assert [each.device for each in found.status.allocation.devices.results] == ["gpu0", "gpu1"]
        await running.pod("late", **{"example.com/gpu": "1"})
        assert "cannot allocate all claims" in await running.refused("late")


async def test_pods_that_cannot_bear_each_other_are_kept_apart_until_one_goes(live: MakeLive) -> None:
    async with live() as running:
        for name in ("a", "b"):
            await running.node(name, labels={HOSTNAME: name})
        alone = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "db"}), topology_key=HOSTNAME)
        affinity = Affinity(
            pod_anti_affinity=PodAntiAffinity(required_during_scheduling_ignored_during_execution=[alone])
        )
        for index in range(3):
            await running.pod(f"db{index}", labels={"app": "db"}, affinity=affinity)
        first = await asyncio.gather(running.bound("db0"), running.bound("db1"))
        assert set(first) == {"a", "b"}
        assert "2 node(s) didn't match pod anti-affinity rules" in await running.refused("db2")
        await running.client.delete(Pod, "db0", running.namespace, grace_period_seconds=0)
        assert await running.bound("db2") == first[0]


async def test_pods_are_spread_over_zones(live: MakeLive) -> None:
    async with live() as running:
        for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
            await running.node(name, labels={HOSTNAME: name, ZONE: zone})
        even = TopologySpreadConstraint(
            max_skew=1,
            topology_key=ZONE,
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector(match_labels={"app": "web"}),
        )
        zones: list[str] = []
        for index in range(6):
            await running.pod(f"web{index}", labels={"app": "web"}, topology_spread_constraints=[even])
            zones.append("y" if await running.bound(f"web{index}") == "c" else "x")
        assert sorted(zones) == ["x"] * 3 + ["y"] * 3
