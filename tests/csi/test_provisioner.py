"""The controllers beside a driver, with a real API server and a real driver at a socket."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from csi.controllers import NAME, SELECTED, ZONE, Disk, becomes
from waiting import wait_for

from pybernetes.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Secret
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.storage.v1 import CSINode, VolumeAttachment
from pybernetes.csi import v1
from pybernetes.csi.client import CSIClient
from pybernetes.csi.driver import serving
from pybernetes.csi.errors import CSIError
from pybernetes.csi.node.liveness import Liveness


async def test_a_claim_gets_a_volume_with_all_that_its_class_says(start: Any) -> None:
    async with start() as cluster:
        await cluster.client.create(
            Secret(metadata=ObjectMeta(name="key", namespace=cluster.space), data={"key": "b25l"})
        )
        secret = {
            f"csi.storage.k8s.io/provisioner-secret-{part}": value
            for part, value in (("name", "key"), ("namespace", "${pvc.namespace}"))
        }
        await cluster.make_class(
            parameters={"color": "blue", "csi.storage.k8s.io/fstype": "xfs", **secret}, mountOptions=["noatime"]
        )
        claim = await cluster.claim("data")
        volume = await cluster.volume(claim)
        request = cluster.driver.last("CreateVolume")
        assert (request.name, request.capacity_range.required_bytes) == (f"pvc-{claim.metadata.uid}", 1 << 30)
        assert (dict(request.parameters), dict(request.secrets)) == ({"color": "blue"}, {"key": "one"})
        assert request.volume_capabilities[0].mount.fs_type == "xfs"
        assert list(request.volume_capabilities[0].mount.mount_flags) == ["noatime"]
        spec = msgspec.to_builtins(volume.spec)
        assert volume.spec.csi.volume_attributes == {"color": "blue"}
        assert (volume.spec.csi.driver, volume.spec.csi.fs_type) == (NAME, "xfs")
        assert volume.spec.claim_ref.uid == claim.metadata.uid
        assert volume.spec.node_affinity.required.node_selector_terms[0].match_expressions[0].values == ["east"]
        assert str(volume.spec.capacity["storage"]) == "1Gi", spec
        assert "external-provisioner.volume.kubernetes.io/finalizer" in volume.metadata.finalizers
        assert await cluster.events("ProvisioningSucceeded") == [f"Successfully provisioned volume {request.name}"]
        status = {"status": {"phase": "Released"}}
        await cluster.client.patch(PersistentVolume, request.name, status, subresource="status")
        await wait_for(lambda: not cluster.driver.volumes, "the volume is deleted when it is released")
        assert dict(cluster.driver.last("DeleteVolume").secrets) == {"key": "one"}


async def test_a_driver_that_fails_is_asked_again_for_the_same_volume(start: Any) -> None:
    async with start() as cluster:
        cluster.driver.failing["CreateVolume"] = [CSIError("Unavailable", "soon"), CSIError("Internal", "not yet")]
        await cluster.make_class()
        await cluster.volume(await cluster.claim("data"))
        assert len({request.name for _, request in cluster.driver.calls}) == 1
        messages = await cluster.events("ProvisioningFailed")
        assert any("rpc error: code = Internal desc = not yet" in each for each in messages)


async def test_a_volume_that_may_have_been_made_for_a_claim_that_is_gone_is_not_forgotten(start: Any) -> None:
    async with start() as cluster:
        cluster.driver.failing["CreateVolume"] = [CSIError("DeadlineExceeded", "slow")] * 3
        await cluster.make_class()
        claim = await cluster.claim("data")
        await wait_for(lambda: cluster.driver.calls, "the driver is asked")
        await cluster.client.delete(PersistentVolumeClaim, "data", cluster.space)
        await cluster.client.patch(PersistentVolumeClaim, "data", {"metadata": {"finalizers": None}}, cluster.space)
        volume = await cluster.volume(claim)  # which the binder releases, so that it is deleted
        assert volume.spec.claim_ref.uid == claim.metadata.uid


async def test_a_volume_that_is_smaller_than_promised_is_deleted_again(start: Any) -> None:
    async with start() as cluster:
        cluster.driver.less = 4096
        await cluster.make_class()
        await cluster.claim("data")
        (message, *_) = await cluster.events("ProvisioningFailed")
        assert "less than requested capacity" in message
        await wait_for(lambda: "DeleteVolume" in cluster.driver.names(), "what was made is deleted")


async def test_a_selected_node_decides_and_a_full_one_is_given_back_to_the_scheduler(start: Any) -> None:
    async with start() as cluster:
        node = f"n-{cluster.space}"
        await cluster.make_class(volumeBindingMode="WaitForFirstConsumer")
        waiting = await cluster.claim("waiting")
        await cluster.client.create(Node(metadata=ObjectMeta(name=node, labels={ZONE: "east"})))
        claim = await cluster.claim("data", node=node)
        await asyncio.sleep(0.1)
        assert cluster.driver.calls == []  # the driver has not registered there
        cluster.driver.failing["CreateVolume"] = [CSIError("ResourceExhausted", "full")]
        driver = {"name": NAME, "nodeID": "x", "topologyKeys": [ZONE]}
        await cluster.client.create(
            msgspec.convert({"metadata": {"name": node}, "spec": {"drivers": [driver]}}, CSINode)
        )
        await wait_for(lambda: cluster.driver.calls, "the driver is asked")
        request = cluster.driver.last("CreateVolume")
        assert [dict(each.segments) for each in request.accessibility_requirements.preferred] == [{ZONE: "east"}]
        async with asyncio.timeout(30):
            while (  # noqa: ASYNC110
                SELECTED
                in (await cluster.client.get(PersistentVolumeClaim, "data", cluster.space)).metadata.annotations
            ):
                await asyncio.sleep(0.05)
        await cluster.client.patch(
            PersistentVolumeClaim, "data", {"metadata": {"annotations": {SELECTED: node}}}, cluster.space
        )
        await cluster.volume(claim)
        assert all(request.name != f"pvc-{waiting.metadata.uid}" for _, request in cluster.driver.calls)


@pytest.mark.parametrize(
    ("spec", "parameters", "text"),
    [
        ({"selector": {"matchLabels": {"a": "b"}}}, {}, "claim Selector is not supported"),
        ({}, {"csi.storage.k8s.io/nonsense": "x"}, "parameters: csi.storage.k8s.io/nonsense not known"),
        ({}, {"csi.storage.k8s.io/provisioner-secret-name": "x"}, "must both be set"),
        (
            {"dataSource": {"kind": "PersistentVolumeClaim", "name": "other"}},
            {},
            "driver mock.example.com does not support cloning",
        ),
    ],
)
async def test_a_claim_or_class_that_cannot_be_served_gets_the_reason(
    start: Any, spec: dict[str, Any], parameters: dict[str, str], text: str
) -> None:
    async with start() as cluster:
        await cluster.make_class(parameters=parameters)
        await cluster.claim("data", **spec)
        assert text in (await cluster.events("ProvisioningFailed"))[0]
        assert cluster.driver.calls == []


async def test_a_claim_that_a_populator_fills_is_left_to_it(start: Any) -> None:
    async with start() as cluster:
        await cluster.make_class()
        await cluster.claim("data", dataSourceRef={"apiGroup": "example.com", "kind": "Backup", "name": "b"})
        assert "Assuming an external populator" in (await cluster.events("Provisioning"))[0]
        assert cluster.driver.calls == []


@pytest.mark.parametrize("on_node", [False, True])
async def test_a_claim_that_wants_more_gets_it_or_waits_for_its_node(start: Any, on_node: bool) -> None:
    driver = Disk()
    driver.node_expansion = on_node
    async with start(driver) as cluster:
        await cluster.make_class()
        claim = await cluster.claim("data")
        await cluster.bind(claim, await cluster.volume(claim))
        driver.failing["ControllerExpandVolume"] = [CSIError("Internal", "busy")]
        more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        await cluster.client.patch(PersistentVolumeClaim, "data", more, cluster.space)
        reason = "FileSystemResizeRequired" if on_node else "VolumeResizeSuccessful"
        await cluster.events(reason)
        volume = await cluster.volume(claim)
        assert str(volume.spec.capacity["storage"]) == "2Gi"
        live = await cluster.client.get(PersistentVolumeClaim, "data", cluster.space)
        assert str(live.status.capacity["storage"]) == ("1Gi" if on_node else "2Gi")
        assert [each.type for each in live.status.conditions or ()] == (["FileSystemResizePending"] if on_node else [])
        assert (live.status.allocated_resource_statuses or {}) == ({"storage": "NodeResizePending"} if on_node else {})
        assert any("busy" in each for each in await cluster.events("VolumeResizeFailed"))


async def test_a_volume_is_attached_and_detached_by_orders_that_a_restart_does_not_lose(start: Any) -> None:
    class Attaching(Disk):
        async def controller_publish_volume(self, request: Any) -> Any:
            await self.noted("ControllerPublishVolume", request)
            return v1.ControllerPublishVolumeResponse(publish_context={"device": "/dev/sdx"})

        async def controller_unpublish_volume(self, request: Any) -> Any:
            await self.noted("ControllerUnpublishVolume", request)
            return v1.ControllerUnpublishVolumeResponse()

    driver = Attaching()
    async with start(driver) as cluster:
        node = f"n-{cluster.space}"
        entry = {"name": NAME, "nodeID": "id-7", "topologyKeys": []}
        await cluster.client.create(
            msgspec.convert({"metadata": {"name": node}, "spec": {"drivers": [entry]}}, CSINode)
        )
        await cluster.make_class()
        volume = await cluster.volume(await cluster.claim("data"))
        name = f"csi-{cluster.space}"
        source = {"persistentVolumeName": volume.metadata.name}
        spec = {"attacher": NAME, "nodeName": node, "source": source}
        driver.failing["ControllerPublishVolume"] = [CSIError("Internal", "no slot is free")]
        driver.failing["ControllerUnpublishVolume"] = [CSIError("Internal", "still busy")]
        await cluster.client.create(msgspec.convert({"metadata": {"name": name}, "spec": spec}, VolumeAttachment))
        seen = await cluster.until(VolumeAttachment, name, lambda each: each.status and each.status.attached)
        assert seen.status.attachment_metadata == {"device": "/dev/sdx"}
        assert seen.status.attach_error is None
        request = driver.last("ControllerPublishVolume")
        assert (request.volume_id, request.node_id) == (volume.metadata.name, "id-7")
        assert driver.names().count("ControllerPublishVolume") in (2, 3)  # the cache may be a moment behind
        await cluster.client.delete(VolumeAttachment, name)
        seen = await cluster.until(
            VolumeAttachment, name, lambda each: each is None or (each.status and each.status.detach_error)
        )
        assert seen is None or "still busy" in seen.status.detach_error.message
        await cluster.until(VolumeAttachment, name, lambda each: each is None)
        assert driver.names().count("ControllerUnpublishVolume") in (2, 3)


async def test_a_driver_that_is_not_ready_fails_its_probe() -> None:
    class Sick(Disk):
        ready = False

        async def probe(self, request: Any) -> Any:
            return v1.ProbeResponse(ready=v1.BoolValue(value=self.ready))

    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        driver, socket = Sick(), Path(folder) / "csi.sock"
        async with CSIClient(socket) as client:
            async with serving(driver, socket):
                server = await Liveness(client).serve("127.0.0.1", 0)
                port = server.sockets[0].getsockname()[1]
                assert await _healthz(port) == (500, "driver responded but is not ready")
                driver.ready = True
                assert await _healthz(port) == (200, "ok")
            status, text = await _healthz(port)
            assert (status, "Unavailable" in text) == (500, True)
            server.close()


async def _healthz(port: int) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


class Copying(Disk):
    clones = True


async def test_a_copy_is_made_on_the_node_that_has_its_source(start: Any) -> None:
    async with start(Copying(), node="node-a") as cluster:
        names = ("node-a", "node-b")
        for name, zone in zip(names, ("east", "west"), strict=True):
            await cluster.client.create(Node(metadata=ObjectMeta(name=name, labels={ZONE: zone})))
            driver = {"name": NAME, "nodeID": name, "topologyKeys": [ZONE]}
            made = {"metadata": {"name": name}, "spec": {"drivers": [driver]}}
            await cluster.client.create(msgspec.convert(made, CSINode))
        await cluster.make_class(volumeBindingMode="WaitForFirstConsumer")
        source = await cluster.claim("source", node="node-b")
        expressions = [{"key": ZONE, "operator": "In", "values": ["west"]}]
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": NAME, "volumeHandle": "there"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}},
        }
        there = {"metadata": {"name": f"pvc-{source.metadata.uid}"}, "spec": spec}
        await cluster.bind(source, await cluster.client.create(msgspec.convert(there, PersistentVolume)))
        reference = {"kind": "PersistentVolumeClaim", "name": "source"}
        await cluster.claim("copy", node="node-a", dataSource=reference)

        async def selected() -> object:
            found = await cluster.client.get(PersistentVolumeClaim, "copy", cluster.space)
            return (found.metadata.annotations or {}).get(SELECTED)

        await becomes("node-b", selected)
        assert await cluster.events("Provisioning") == ["The data source is on node node-b: the volume is made there"]
        assert cluster.driver.calls == []
        for name in names:
            await cluster.client.delete(Node, name)
            await cluster.client.delete(CSINode, name)


async def test_one_of_several_processes_of_a_driver_serves_its_own_node_only(start: Any) -> None:
    async with start(node="node-a") as cluster:
        await cluster.make_class(volumeBindingMode="WaitForFirstConsumer")
        await cluster.claim("theirs", node="node-b")
        await cluster.claim("nobodys")
        await asyncio.sleep(0.1)
        assert cluster.driver.calls == []
