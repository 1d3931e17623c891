"""Volumes are attached to nodes and detached from them; the test plays the driver's attacher and the kubelet."""

from __future__ import annotations

from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness
from controllers.persistentvolume.makers import claim, reference, volume

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from pybernetes.api.storage.v1 import CSIDriver, VolumeAttachment
from pybernetes.controllers.options import Options
from pybernetes.controllers.persistentvolume.attachments import attachment_name

ATTACH = "persistentvolume-attach-detach-controller"
MANAGED = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "r",
    "message": "m",
    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


class World:
    """Nodes and volumes whose names have the test's namespace in them."""

    def __init__(self, h: Harness) -> None:
        self.h = h
        self.driver = f"{h.namespace}.example.com"

    async def node(self, name: str, annotations: Any = MANAGED) -> str:
        full = f"{self.h.namespace}-{name}"
        await self.h.client.call("POST", "/api/v1/nodes", {"metadata": {"name": full, "annotations": annotations}})
        await self.status(full, conditions=[READY])
        return full

    async def status(self, node: str, **status: Any) -> None:
        await self.h.client.patch(Node, node, {"status": status}, subresource="status")

    async def claim(self, name: str = "data", **spec: Any) -> str:
        """A bound claim; the unique name of its volume."""
        where, full = self.h.namespace, f"{self.h.namespace}-{name}"
        made = await self.h.client.create(claim(name, namespace=where, uid=None, volumeName=full, storageClassName=""))
        source = spec or {"csi": {"driver": self.driver, "volumeHandle": full}}
        modes = source.pop("accessModes", ["ReadWriteOnce"])
        source = source or {"csi": {"driver": self.driver, "volumeHandle": full}}
        bound = volume(full, to=reference(name, made.metadata.uid, where), phase=None, accessModes=modes, **source)
        bound.spec.nfs = None  # type: ignore[union-attr]
        await self.h.client.create(bound)
        patch = {"status": {"phase": "Bound"}}
        await self.h.client.patch(PersistentVolumeClaim, name, patch, where, subresource="status")
        return f"kubernetes.io/csi/{self.driver}^{full}"

    async def pod(self, name: str, node: str, claim_name: str = "data") -> None:
        body = {
            "metadata": {"name": name},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}],
            },
        }
        await self.h.client.call("POST", f"/api/v1/namespaces/{self.h.namespace}/pods", body)

    async def gone(self, name: str) -> None:
        path = f"/api/v1/namespaces/{self.h.namespace}/pods/{name}"
        await self.h.client.call("DELETE", path, {"gracePeriodSeconds": 0})

    async def attachment(self, unique: str, node: str) -> VolumeAttachment | None:
        try:
            return await self.h.client.get(VolumeAttachment, attachment_name(unique, node))
        except errors.NotFound:
            return None

    async def ordered(self, unique: str, node: str) -> VolumeAttachment:
        found = await self.h.until(lambda: self.attachment(unique, node), "the attachment is ordered")
        assert found is not None
        return found

    async def attach(self, unique: str, node: str) -> None:
        """What the attacher does."""
        await self.ordered(unique, node)
        name = attachment_name(unique, node)
        await self.h.client.patch(VolumeAttachment, name, {"status": {"attached": True}}, subresource="status")
        await self.reported(node, unique)

    async def reported(self, node: str, *names: str) -> None:
        async def check() -> bool:
            found = await self.h.client.get(Node, node)
            listed = (found.status.volumes_attached if found.status else None) or ()
            return sorted(each.name or "" for each in listed) == sorted(names)

        await self.h.until(check, f"{node} has {names}")

    async def detached(self, unique: str, node: str) -> None:
        async def check() -> bool:
            return await self.attachment(unique, node) is None

        await self.h.until(check, "the attachment is gone")

    async def said(self, reason: str, message: str) -> None:
        async def check() -> bool:
            return any(message in (each.message or "") for each in await self.h.events(reason))

        await self.h.until(check, f"{reason}: {message}")


async def test_a_volume_is_attached_for_a_pod_and_detached_after_it(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        node = await world.node("a")
        unique = await world.claim()
        await world.pod("p", node)
        order = await world.ordered(unique, node)
        assert order.spec is not None
        assert order.spec.source is not None
        assert (order.spec.attacher, order.spec.node_name) == (world.driver, node)
        assert order.spec.source.persistent_volume_name == f"{h.namespace}-data"
        await world.reported(node)
        await world.attach(unique, node)
        await world.said("SuccessfulAttachVolume", f'AttachVolume.Attach succeeded for volume "{h.namespace}-data"')

        await world.status(node, volumesInUse=[unique])
        await h.until(lambda: h.controller(ATTACH).own.named(node).status.volumes_in_use, "the use is seen")
        await world.gone("p")
        await h.until(lambda: not h.cached(Pod), "the pod is gone")
        await h.settled()
        assert await world.attachment(unique, node) is not None
        await world.reported(node, unique)
        await world.status(node, volumesInUse=None)
        await world.detached(unique, node)
        await world.reported(node)


async def test_a_volume_for_one_node_waits_until_the_other_has_let_go(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        here, there = await world.node("a"), await world.node("b")
        unique = await world.claim()
        await world.pod("p", here)
        await world.attach(unique, here)
        await world.pod("q", there)
        await world.said("FailedAttachVolume", "Volume is already used by pod(s) p")
        assert await world.attachment(unique, there) is None
        await world.gone("p")
        await world.detached(unique, here)
        await world.attach(unique, there)


async def test_a_shared_volume_is_attached_to_many_nodes(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        nodes = [await world.node(name) for name in "ab"]
        unique = await world.claim(accessModes=["ReadWriteMany"])
        for node in nodes:
            await world.pod(node, node)
            await world.attach(unique, node)


async def test_silent_nodes_are_detached_from_by_force(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        node = await world.node("a")
        unique = await world.claim()
        await world.pod("p", node)
        await world.attach(unique, node)
        await world.status(node, volumesInUse=[unique], conditions=[{**READY, "status": "Unknown"}])
        await h.until(lambda: h.controller(ATTACH).own.named(node).status.volumes_in_use, "the use is seen")
        await world.gone("p")
        await h.until(lambda: not h.cached(Pod), "the pod is gone")
        await h.settled()
        h.clock.advance(350)
        await h.settled()
        assert await world.attachment(unique, node) is not None
        with h.behind(Node):  # that it is detached is not in the node's status yet
            h.clock.advance(20)
            await world.detached(unique, node)
            await h.settled()
        await world.reported(node)
        assert 'forced_detaches{reason="timeout"} 1' in h.manager.context.metrics.render().decode()


async def test_force_can_be_forbidden_but_not_for_nodes_out_of_service(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False, options=Options(disable_force_detach_on_timeout=True)) as h:
        world = World(h)
        node = await world.node("a")
        unique = await world.claim()
        await world.pod("p", node)
        await world.attach(unique, node)
        await world.status(node, volumesInUse=[unique], conditions=[{**READY, "status": "Unknown"}])
        await h.until(lambda: h.controller(ATTACH).own.named(node).status.volumes_in_use, "the use is seen")
        await world.gone("p")
        await h.until(lambda: not h.cached(Pod), "the pod is gone")
        h.clock.advance(1000)
        await h.settled()
        assert await world.attachment(unique, node) is not None
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        await h.client.patch(Node, node, {"spec": {"taints": [taint]}})
        await world.detached(unique, node)
        assert 'forced_detaches{reason="out-of-service"} 1' in h.manager.context.metrics.render().decode()


async def test_what_was_attached_before_a_restart_is_detached_after_it(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        node = await world.node("a")
        unique = await world.claim()
        await world.pod("p", node)
        await world.attach(unique, node)
        await h.client.patch(PersistentVolume, f"{h.namespace}-data", {"metadata": {"finalizers": None}})
        await h.client.delete(PersistentVolume, f"{h.namespace}-data")
        await world.gone("p")
        await h.restart()
        await world.detached(unique, node)
        await world.reported(node)


async def test_volumes_of_a_node_that_is_gone_are_detached(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        node = await world.node("a")
        unique = await world.claim()
        await world.pod("p", node)
        await world.attach(unique, node)
        await h.client.delete(Node, node)
        await world.gone("p")
        await world.detached(unique, node)


async def test_an_error_of_the_driver_is_an_event_of_the_pods(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        node = await world.node("a")
        unique = await world.claim()
        await world.pod("p", node)
        await world.ordered(unique, node)
        status = {"status": {"attached": False, "attachError": {"message": "disk is on fire"}}}
        await h.client.patch(VolumeAttachment, attachment_name(unique, node), status, subresource="status")
        await world.said("FailedAttachVolume", f'failed for volume "{h.namespace}-data" : disk is on fire')


async def test_a_deleted_attachment_is_ordered_again(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        node = await world.node("a")
        unique = await world.claim()
        await world.pod("p", node)
        await world.attach(unique, node)
        await h.client.delete(VolumeAttachment, attachment_name(unique, node))
        await world.attach(unique, node)


@pytest.mark.parametrize("case", ["driver", "node", "kind"])
async def test_what_needs_no_attaching_is_left_alone(harness: MakeHarness, case: str) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        if case == "driver":
            driver = {"metadata": {"name": world.driver}, "spec": {"attachRequired": False}}
            await h.client.call("POST", "/apis/storage.k8s.io/v1/csidrivers", driver)
            await h.until(lambda: h.manager.context.informers.informer(CSIDriver).named(world.driver), "the driver")
        node = await world.node("a", None if case == "node" else MANAGED)
        unique = await world.claim(**({"hostPath": {"path": "/x"}} if case == "kind" else {}))
        await world.pod("p", node)
        await h.until(lambda: h.live(Pod), "the pod is seen")
        await h.settled()
        assert await world.attachment(unique, node) is None
        await world.reported(node)


async def test_volumes_that_nodes_attach_themselves_are_allowed_to_them(harness: MakeHarness) -> None:
    async with harness(ATTACH, kubelet=False) as h:
        world = World(h)
        node = await world.node("a")
        await world.claim(iscsi={"targetPortal": "1.2.3.4:3260", "iqn": "iqn.2026-01.example.com:d", "lun": 1})
        await world.pod("p", node)
        await world.reported(node, "kubernetes.io/iscsi/1.2.3.4:3260:iqn.2026-01.example.com:d:1")
        await world.gone("p")
        await world.reported(node)
