"""Registers this node, reports its status, and renews its Lease, which is how the cluster knows that it lives.

The status is sent when it differs from the Node that the API server has, and every five minutes; the Lease every ten
seconds. A part that sees a change (the network is ready, a pressure has begun) calls `wake`, so that the cluster learns
of it at once. The node lifecycle controller writes conditions too, when a node was silent for a while: the informer
gives every version of the Node to `seen`, and a condition that is not ours is corrected at once.

A node registers once in the life of its kubelet. A deleted Node stays deleted: it is created again when its kubelet
restarts, or by another client.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from pybernetes.api import errors
from pybernetes.api.coordination.v1 import Lease, LeaseSpec
from pybernetes.api.core.v1 import Node, NodeStatus, ObjectReference
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.api.times import rfc3339, rfc3339_micro
from pybernetes.client.backoff import Backoff
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.events import NORMAL, WARNING, EventRecorder
from pybernetes.client.keys import copy
from pybernetes.component import klog

from .status import ATTACH_DETACH, NodeFindings, node_status, same_but_for_heartbeats, same_conditions

LEASES: Final = "kube-node-lease"
TRIES: Final = 5
"""How often a report is tried before the next one is waited for; upstream's."""
T = TypeVar("T")
log = logging.getLogger(__name__)


class NodeReporter:
    """Keeps the Node and its Lease. `findings` looks at the machine and the runtime."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        recorder: EventRecorder,
        node: Node,
        findings: Callable[[], Awaitable[NodeFindings]],
        *,
        register: bool = True,
        update_every: float = 10.0,
        report_every: float = 300.0,
        lease_seconds: int = 40,
    ) -> None:
        assert node.metadata is not None
        self.name = node.metadata.name or ""
        self.node: Node | None = None
        """The Node as the server has it; None if there is none, or it has to be asked for."""
        self.registered = asyncio.Event()
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._wanted = node
        self._findings = findings
        self._register = register
        self._update_every = update_every
        self._report_every = report_every
        self._lease_seconds = lease_seconds
        self._request_timeout = min(update_every, lease_seconds)
        """Seconds for a request about status or lease, as upstream's: several attempts fit into one lease."""
        self._reported = 0.0
        self._wake = asyncio.Event()

    @property
    def reference(self) -> ObjectReference:
        """The node as the object of events; upstream's kubelet names it by its name, in place of a uid, too."""
        return ObjectReference(kind="Node", api_version="v1", name=self.name, uid=self.name)

    def wake(self) -> None:
        """Something about the node may be different."""
        self._wake.set()

    def gone(self) -> None:
        """The Node has been deleted."""
        self.node = None
        self.wake()

    def seen(self, node: Node) -> None:
        """The API server has this Node; perhaps a new one, or with conditions that another client wrote."""
        if self.node is None:
            self.wake()
        elif _is_newer(node, self.node):
            before, self.node = self.node, node
            cordoned = _is_cordoned(node)
            if cordoned != _is_cordoned(before):
                self._tell(["NodeNotSchedulable" if cordoned else "NodeSchedulable"])
            if not same_conditions(before.status or NodeStatus(), node.status or NodeStatus()):
                self.wake()

    async def run(self) -> None:
        """Register, then report until cancelled."""
        await self._registration()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._status_for_ever())
            group.create_task(self._lease_for_ever())

    # -- registering

    async def _registration(self) -> None:
        backoff = Backoff(self._clock, base=0.1, longest=7.0)
        while True:
            try:
                self.node = await (self._create_or_adopt() if self._register else self._client.get(Node, self.name))
                self.registered.set()
                return
            except (errors.APIError, OSError, TimeoutError) as error:
                log.warning("node %s cannot be registered: %s", self.name, error)
                await self._clock.sleep(backoff.next())

    async def _create_or_adopt(self) -> Node:
        klog.info(log, 0, "Attempting to register node", node=self.name)
        wanted = copy(self._wanted)
        status, turned = node_status(await self._findings(), NodeStatus(), rfc3339(self._clock.now()))
        wanted.status = status
        try:
            created = await self._client.create(wanted)
        except errors.AlreadyExists:
            return await self._adopt(await self._client.get(Node, self.name))
        klog.info(log, 0, "Successfully registered node", node=self.name)
        self._tell(turned)
        self._reported = self._clock.monotonic()
        return created

    async def _adopt(self, existing: Node) -> Node:
        """The Node is from an earlier life: labels that are the kubelet's are made right, all else stays."""
        klog.info(log, 0, "Node was previously registered", node=self.name)
        assert self._wanted.metadata is not None
        assert existing.metadata is not None
        labels = {
            key: value
            for key, value in (self._wanted.metadata.labels or {}).items()
            if (existing.metadata.labels or {}).get(key) != value
        }
        change: dict[str, Any] = {"labels": labels} if labels else {}
        if (existing.metadata.annotations or {}).get(ATTACH_DETACH) != "true":
            change["annotations"] = {ATTACH_DETACH: "true"}
        if change:
            return await self._client.patch(Node, self.name, {"metadata": change}, type="strategic")
        return existing

    # -- reporting

    async def _status_for_ever(self) -> None:
        while True:
            self._wake.clear()
            for _ in range(TRIES):
                try:
                    await self._report()
                    break
                except errors.NotFound:
                    log.warning("node %s not found: its kubelet registers it only when started anew", self.name)
                    self.node = None
                    break
                except (errors.APIError, OSError, TimeoutError) as error:
                    log.warning("the status of node %s cannot be sent: %s", self.name, error)
                    self.node = None
                    await self._clock.sleep(0.2)
            timer = self._clock.call_later(self._update_every * (1 + random.random() * 0.04), self._wake.set)
            await self._wake.wait()
            timer.cancel()

    async def _report(self) -> None:
        if self.node is None:
            self.node = await self._request(self._client.get(Node, self.name))
        old = self.node.status or NodeStatus()
        now = self._clock.now()
        status, turned = node_status(await self._findings(), old, rfc3339(now))
        due = self._clock.monotonic() - self._reported >= self._report_every
        if not due and self._reported and same_but_for_heartbeats(old, status):
            return
        patch = _patch(old, status)
        self.node = await self._request(
            self._client.patch(Node, self.name, patch, type="strategic", subresource="status")
        )
        self._reported = self._clock.monotonic()
        if "NodeNotReady" in turned:
            ready = next((each.message for each in status.conditions or () if each.type == "Ready"), None)
            klog.info(log, 0, "Node became not ready", node=self.name, condition=ready)
        self._tell_reboot(old, status)
        self._tell(turned)

    async def _request(self, request: Awaitable[T]) -> T:
        async with asyncio.timeout(self._request_timeout):
            return await request

    def _tell(self, turned: list[str]) -> None:
        for reason in turned:
            self._recorder.event(self.reference, NORMAL, reason, f"Node {self.name} status is now: {reason}")

    def _tell_reboot(self, old: NodeStatus, new: NodeStatus) -> None:
        before, now = (each.node_info.boot_id if each.node_info else None for each in (old, new))
        if before and now and before != now:
            message = f"Node {self.name} has been rebooted, boot id: {now}"
            self._recorder.event(self.reference, WARNING, "Rebooted", message)

    # -- the lease

    async def _lease_for_ever(self) -> None:
        lease: Lease | None = None
        backoff = Backoff(self._clock, base=0.2, longest=7.0)
        while True:
            try:
                lease = await self._renewed(lease)
                backoff.succeeded()
                await self._clock.sleep(self._lease_seconds / 4 * (1 + random.random() * 0.04))
            except (errors.APIError, OSError, TimeoutError) as error:
                log.warning("the lease of node %s cannot be renewed: %s", self.name, error)
                lease = None
                await self._clock.sleep(backoff.next())

    async def _renewed(self, lease: Lease | None) -> Lease | None:
        if lease is None:
            try:
                lease = await self._request(self._client.get(Lease, self.name, LEASES))
            except errors.NotFound:
                if self.node is None:
                    return None  # a Lease without an owner would never be collected
                return await self._request(self._client.create(self._lease(None)))
        return await self._request(self._client.update(self._lease(lease)))

    def _lease(self, lease: Lease | None) -> Lease:
        new = copy(lease) if lease else Lease(metadata=ObjectMeta(name=self.name, namespace=LEASES))
        assert new.metadata is not None
        if not new.metadata.owner_references and self.node is not None and self.node.metadata is not None:
            owner = OwnerReference(api_version="v1", kind="Node", name=self.name, uid=self.node.metadata.uid)
            new.metadata.owner_references = [owner]
        new.spec = new.spec or LeaseSpec()
        new.spec.holder_identity = self.name
        new.spec.lease_duration_seconds = self._lease_seconds
        new.spec.renew_time = rfc3339_micro(self._clock.now())
        return new


def _is_newer(node: Node, than: Node) -> bool:
    """Whether a Node has another uid, or a later version; a version that is no number is taken for later."""
    new, old = node.metadata or ObjectMeta(), than.metadata or ObjectMeta()
    if new.uid != old.uid:
        return True
    try:
        return int(new.resource_version or "") > int(old.resource_version or "")
    except ValueError:
        return new.resource_version != old.resource_version


def _is_cordoned(node: Node) -> bool:
    return bool(node.spec and node.spec.unschedulable)


def _patch(old: NodeStatus, new: NodeStatus) -> dict[str, Any]:
    """A patch with what differs. Addresses are replaced: two of one type would be merged into one."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    change: dict[str, Any] = {}
    for key in before.keys() | after.keys():
        if before.get(key) == after.get(key):
            continue
        value = after.get(key)
        change[key] = [*value, {"$patch": "replace"}] if key == "addresses" and value else value
    for key in ("capacity", "allocatable"):
        if key in change and isinstance(change[key], dict):
            gone = before.get(key, {}).keys() - after.get(key, {}).keys()
            change[key] = {**change[key], **dict.fromkeys(gone)}
    known = {each["type"]: each for each in before.get("conditions") or ()}
    if "conditions" in change:  # those of others may have changed since
        change["conditions"] = [each for each in change["conditions"] if each != known.get(each["type"])]
    for condition in change.get("conditions") or ():
        # What a condition does not say any more must be taken away by name.
        condition.update(dict.fromkeys(known.get(condition["type"], {}).keys() - condition.keys()))
    return {"status": change}
