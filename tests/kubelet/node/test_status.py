"""The Node of a machine, its status and its Lease."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kubelet.conftest import Connect
from waiting import wait_for

from pybernetes.api import errors
from pybernetes.api.coordination.v1 import Lease
from pybernetes.api.core.v1 import Node, NodeCondition, NodeStatus, Taint
from pybernetes.api.quantity import parse
from pybernetes.client.client import Client
from pybernetes.client.clock import JumpingClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.kubelet.node.allocatable import Machine
from pybernetes.kubelet.node.reporter import NodeReporter
from pybernetes.kubelet.node.status import NodeFindings, new_node, node_status, same_but_for_heartbeats, status_images

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
MACHINE = Machine(2, 1 << 30, 0, 1000, {}, 1 << 34, "machine", "uuid", "boot")


def findings(**more: Any) -> NodeFindings:
    amounts = {"cpu": parse("2"), "memory": parse("1Gi"), "pods": parse("110")}
    return NodeFindings("n", MACHINE, amounts, amounts, ["192.0.2.1"], "host", 10250, "containerd://1", **more)


def conditions(status: NodeStatus) -> dict[str, NodeCondition]:
    return {each.type or "": each for each in status.conditions or ()}


def test_a_node_that_is_well() -> None:
    status, turned = node_status(findings(), NodeStatus(), NOW)
    found = conditions(status)
    assert [(name, found[name].status, found[name].reason) for name in found] == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    assert turned == ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"]
    assert [(each.type, each.address) for each in status.addresses or ()] == [
        ("InternalIP", "192.0.2.1"),
        ("Hostname", "host"),
    ]
    assert status.allocatable == {"cpu": "2", "memory": "1Gi", "pods": "110"}
    assert status.node_info is not None
    assert status.node_info.container_runtime_version == "containerd://1"


def test_a_node_that_is_not_says_why_and_when_it_turned() -> None:
    before, _ = node_status(findings(), NodeStatus(), NOW)
    problems = ["container runtime network not ready: NetworkReady=false reason:X message:y", "node is shutting down"]
    status, turned = node_status(findings(problems=problems, pressures={"DiskPressure": True}), before, LATER)
    found = conditions(status)
    assert found["Ready"].message == f"[{problems[0]}, {problems[1]}]"
    assert (found["Ready"].reason, found["Ready"].last_transition_time) == ("KubeletNotReady", LATER)
    assert (found["DiskPressure"].status, found["DiskPressure"].reason) == ("True", "KubeletHasDiskPressure")
    assert found["MemoryPressure"].last_transition_time == NOW
    assert found["MemoryPressure"].last_heartbeat_time == LATER
    assert turned == ["NodeHasDiskPressure", "NodeNotReady"]
    one, _ = node_status(findings(problems=problems[:1]), before, LATER)
    assert conditions(one)["Ready"].message == problems[0]


def test_others_conditions_and_attached_volumes_stay() -> None:
    old = NodeStatus(conditions=[NodeCondition(type="NetworkUnavailable", status="False")])
    status, _ = node_status(findings(), old, NOW)
    assert "NetworkUnavailable" in conditions(status)


def test_extended_resources_that_an_administrator_added_stay_and_are_allocatable() -> None:
    old = NodeStatus(capacity={"cpu": "9", "example.com/dongle": "4", "hugepages-2Mi": "1Gi"}, allocatable={"cpu": "9"})
    status, _ = node_status(findings(), old, NOW)
    assert status.capacity == {"cpu": "2", "memory": "1Gi", "pods": "110", "example.com/dongle": "4"}
    assert status.allocatable == status.capacity
    removed = NodeStatus(capacity={"cpu": "2"}, allocatable={"cpu": "2", "example.com/dongle": "4"})
    assert "example.com/dongle" not in (node_status(findings(), removed, NOW)[0].allocatable or {})


def test_heartbeats_alone_are_nothing_new() -> None:
    first, _ = node_status(findings(), NodeStatus(), NOW)
    second, _ = node_status(findings(), first, LATER)
    third, _ = node_status(findings(problems=["x"]), first, LATER)
    assert same_but_for_heartbeats(first, second)
    second.conditions = list(reversed(second.conditions or ()))  # the server keeps its own order
    assert same_but_for_heartbeats(first, second)
    assert not same_but_for_heartbeats(first, third)


def test_images_are_the_largest_with_a_few_names() -> None:
    images = [(["a:1"], ["a@sha256:1"], 5), ([f"b:{number}" for number in range(9)], [], 50), (["c:1"], [], 1)]
    found = status_images(images, 2)
    assert [(each.names, each.size_bytes) for each in found] == [
        ([f"b:{number}" for number in range(5)], 50),
        (["a@sha256:1", "a:1"], 5),
    ]
    assert len(status_images(images, -1)) == 3
    assert status_images([([], [], 7)], -1)[0].names is None  # as the server answers it: nothing new at each report


def test_a_new_node_has_the_labels_of_its_machine() -> None:
    node = new_node("n", "host", {"zone": "a"}, [Taint(key="k", effect="NoSchedule")])
    assert node.metadata is not None
    labels = node.metadata.labels or {}
    assert (labels["kubernetes.io/hostname"], labels["kubernetes.io/os"], labels["zone"]) == ("host", "linux", "a")
    assert node.spec is not None
    assert [each.key for each in node.spec.taints or ()] == ["k"]


class Reporting:
    """A reporter whose findings can be changed."""

    def __init__(self, client: Client, name: str, update_every: float = 10.0, **labels: str) -> None:
        self.clock = JumpingClock()
        self.more: dict[str, Any] = {}
        self.boot_id = "boot"
        broadcaster = EventBroadcaster(client, self.clock)
        self.reporter = NodeReporter(
            client,
            self.clock,
            broadcaster.recorder("kubelet"),
            new_node(name, name, labels, []),
            self._findings,
            update_every=update_every,
        )

    async def _findings(self) -> NodeFindings:
        return replace(findings(**self.more), machine=replace(MACHINE, boot_id=self.boot_id))


async def until(client: Client, name: str, condition: Callable[[Node], bool]) -> Node:
    async with asyncio.timeout(30):
        while True:
            try:
                found = await client.get(Node, name)
                if condition(found):
                    return found
            except errors.NotFound:
                pass
            await asyncio.sleep(0.01)


def ready(node: Node) -> str | None:
    assert node.status is not None
    return conditions(node.status)["Ready"].status


async def test_a_node_registers_reports_and_renews_its_lease(connect: Connect) -> None:
    async with connect() as (client, namespace):
        name = f"{namespace}-node"
        subject = Reporting(client, name, zone="a")
        running = asyncio.create_task(subject.reporter.run())
        try:
            node = await until(client, name, lambda node: ready(node) == "True")
            assert node.metadata is not None
            async with asyncio.timeout(30):
                while True:
                    try:
                        lease = await client.get(Lease, name, "kube-node-lease")
                        break
                    except errors.NotFound:
                        await asyncio.sleep(0.01)
            assert lease.spec is not None
            assert lease.spec.holder_identity == name
            assert lease.metadata is not None
            assert [each.uid for each in lease.metadata.owner_references or ()] == [node.metadata.uid]
            subject.more["problems"] = ["something broke"]
            subject.reporter.wake()
            found = await until(client, name, lambda node: ready(node) == "False")
            assert found.status is not None
            assert conditions(found.status)["Ready"].message == "something broke"
            subject.clock.advance(11.0)
            async with asyncio.timeout(30):
                while (await client.get(Lease, name, "kube-node-lease")).spec == lease.spec:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            running.cancel()
            await client.delete(Node, name)


class Events:
    """A recorder that keeps the reasons."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def event(self, about: Any, kind: str, reason: str, message: str, *_: Any) -> None:
        self.reasons.append(reason)


def boot_id(node: Node) -> str | None:
    return node.status.node_info.boot_id if node.status and node.status.node_info else None


async def test_a_reboot_and_a_cordon_are_reported(connect: Connect) -> None:
    async with connect() as (client, namespace):
        name = f"{namespace}-boot"
        subject = Reporting(client, name)
        events = subject.reporter._recorder = Events()  # type: ignore[assignment]
        running = asyncio.create_task(subject.reporter.run())
        try:
            await until(client, name, lambda node: ready(node) == "True")
            subject.boot_id = "another"
            subject.reporter.wake()
            await until(client, name, lambda node: boot_id(node) == "another")
            for cordoned in (True, False):
                found = await client.patch(Node, name, {"spec": {"unschedulable": cordoned}}, type="merge")
                subject.reporter.seen(found)
            wanted = {"Rebooted", "NodeNotSchedulable", "NodeSchedulable"}
            await wait_for(lambda: wanted <= set(events.reasons), "the events")
        finally:
            running.cancel()
            await client.delete(Node, name)


async def test_a_node_that_was_there_before_keeps_what_others_gave_it(connect: Connect) -> None:
    async with connect() as (client, namespace):
        name = f"{namespace}-old"
        old = new_node(name, name, {"mine": "x", "zone": "b"}, [])
        await client.create(old)
        subject = Reporting(client, name, zone="a")
        running = asyncio.create_task(subject.reporter.run())
        try:
            node = await until(client, name, lambda node: node.status is not None and bool(node.status.conditions))
            assert node.metadata is not None
            labels = node.metadata.labels or {}
            assert (labels["mine"], labels["zone"]) == ("x", "a")
        finally:
            running.cancel()
            await client.delete(Node, name)


async def test_a_node_that_is_deleted_comes_back_with_a_new_kubelet_or_by_another_hand(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect() as (client, namespace):
        name = f"{namespace}-gone"
        subject = Reporting(client, name)
        running = asyncio.create_task(subject.reporter.run())
        try:
            await until(client, name, lambda node: ready(node) == "True")
            subject.more["problems"] = ["something broke"]
            await client.delete(Node, name)
            subject.reporter.gone()
            with contextlib.suppress(errors.NotFound):
                await client.delete(Lease, name, "kube-node-lease")  # as the garbage collector does
            for time in range(1, 4):
                async with asyncio.timeout(30):
                    while caplog.text.count(f"node {name} not found") < time:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                subject.clock.advance(11.0)
            for kind, where in ((Node, ""), (Lease, "kube-node-lease")):
                with pytest.raises(errors.NotFound):
                    await client.get(kind, name, where)
            subject.reporter.seen(await client.create(new_node(name, name, {"by": "hand"}, [])))
            found = await until(client, name, lambda node: bool(node.status and node.status.conditions))
            assert ready(found) == "False"
            assert found.metadata is not None
            assert (found.metadata.labels or {})["by"] == "hand"
            running.cancel()
            await client.delete(Node, name)
            running = asyncio.create_task(Reporting(client, name).reporter.run())
            await until(client, name, lambda node: ready(node) == "True")
        finally:
            running.cancel()
            await client.delete(Node, name)


async def test_conditions_that_the_controller_wrote_while_the_node_was_silent_are_corrected_at_once(
    connect: Connect,
) -> None:
    async with connect() as (client, namespace):
        name = f"{namespace}-silent"
        subject = Reporting(client, name)
        running = asyncio.create_task(subject.reporter.run())
        try:
            await until(client, name, lambda node: ready(node) == "True")
            subject.clock.advance(100.0)
            unknown = {
                "type": "Ready",
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastTransitionTime": "2001-01-01T00:00:00Z",
            }
            other = {"type": "DiskBroken", "status": "False", "reason": "Fine", "message": "m"}
            patch = {"status": {"conditions": [unknown, other]}}
            written = await client.patch(Node, name, patch, type="strategic", subresource="status")
            subject.reporter.seen(written)
            found = await until(client, name, lambda node: ready(node) == "True")
            assert found.status is not None
            condition = conditions(found.status)["Ready"]
            assert condition.reason == "KubeletReady"
            assert (condition.last_transition_time or "") > "2002"
            assert "DiskBroken" in conditions(found.status)
            version = found.metadata and found.metadata.resource_version
            subject.reporter.seen(written)  # an older version that comes late changes nothing
            assert subject.reporter.node is not None
            assert subject.reporter.node.metadata is not None
            assert subject.reporter.node.metadata.resource_version == version
        finally:
            running.cancel()
            await client.delete(Node, name)


async def test_a_lease_request_that_is_not_answered_is_tried_again(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect() as (client, namespace):
        name = f"{namespace}-lease"
        hung: list[str] = []
        get = client.get

        async def hang_once(kind: Any, *arguments: Any, **more: Any) -> Any:
            if kind is Lease and not hung:
                hung.append("lease")
                await asyncio.Event().wait()
            return await get(kind, *arguments, **more)

        monkeypatch.setattr(client, "get", hang_once)
        subject = Reporting(client, name, update_every=0.1)
        running = asyncio.create_task(subject.reporter.run())
        try:
            async with asyncio.timeout(30):
                while not hung:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                while True:
                    with contextlib.suppress(errors.NotFound):
                        await get(Lease, name, "kube-node-lease")
                        break
                    await asyncio.sleep(0.01)
        finally:
            running.cancel()
            await client.delete(Node, name)
