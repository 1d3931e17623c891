"""Nodes for tests. The server is shared, so every test has its own, and takes them away at its end."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Any

from controllers.conftest import Harness

from pybernetes.api import errors
from pybernetes.api.coordination.v1 import Lease
from pybernetes.api.core.v1 import Container, Node, NodeCondition, NodeSpec, NodeStatus, Pod, PodSpec, Taint, Toleration
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.times import rfc3339, rfc3339_micro

LEASES = "kube-node-lease"
_numbers = itertools.count(1)


def node(
    name: str = "n",
    *,
    ready: str | None = "True",
    at: float = 1_700_000_000.0,
    labels: dict[str, str] | None = None,
    taints: list[Taint] | None = None,
    unschedulable: bool | None = None,
    **conditions: str,
) -> Node:
    """A node; `ready=None` = its kubelet has never told anything."""
    told = {} if ready is None else {"Ready": ready}
    told |= conditions
    time = rfc3339(at)
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels=labels, creation_timestamp=time),
        spec=NodeSpec(taints=taints, unschedulable=unschedulable),
        status=NodeStatus(
            conditions=[
                NodeCondition(type=kind, status=status, last_heartbeat_time=time, last_transition_time=time)
                for kind, status in told.items()
            ]
        ),
    )


def taint(key: str, effect: str = "NoExecute") -> Taint:
    """A taint without value."""
    return Taint(key=key, effect=effect)


def tolerates(key: str, seconds: int | None = None) -> Toleration:
    """A toleration of a taint, for a time or for ever."""
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=seconds)


def pod_on(h: Harness, name: str, where: str, *tolerations: Toleration) -> Pod:
    """A pod that is bound to a node."""
    return Pod(
        metadata=ObjectMeta(name=name, namespace=h.namespace),
        spec=PodSpec(
            node_name=where,
            containers=[Container(name="c", image="registry.example/i:1")],
            tolerations=list(tolerations) or None,
            termination_grace_period_seconds=0,
        ),
    )


class Nodes:
    """The nodes of a test, under names that no other test has. Changes are in the caches when a method returns."""

    def __init__(self, h: Harness) -> None:
        self.h = h
        self.names: list[str] = []

    async def add(self, **what: Any) -> str:
        """A new node; its name."""
        name = f"node-{next(_numbers)}"
        made = node(name, at=self.h.clock.now(), **what)
        assert made.metadata
        made.metadata = ObjectMeta(name=name, labels=made.metadata.labels)
        await self.h.client.create(made)
        self.names.append(name)
        if made.status and made.status.conditions:  # a patch: controllers may have been faster
            patch = {"status": {"conditions": made.status.conditions}}
            await self.h.client.patch(Node, name, patch, type="strategic", subresource="status")
        await self.h.caught_up()
        return name

    async def get(self, name: str) -> Node:
        """A node as the server has it."""
        return await self.h.client.get(Node, name)

    async def report(self, name: str, ready: str = "True", **conditions: str) -> None:
        """What a kubelet says of its node."""
        time = rfc3339(self.h.clock.now())
        told = [
            NodeCondition(type=kind, status=status, last_heartbeat_time=time, last_transition_time=time)
            for kind, status in {"Ready": ready, **conditions}.items()
        ]
        await self.h.client.patch(Node, name, {"status": {"conditions": told}}, type="strategic", subresource="status")
        await self.h.caught_up()

    async def renew(self, name: str) -> None:
        """The other heartbeat of a kubelet."""
        time = rfc3339_micro(self.h.clock.now())
        try:
            await self.h.client.patch(Lease, name, {"spec": {"renewTime": time}}, LEASES)
        except errors.NotFound:
            body = {
                "metadata": {"name": name},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": time},
            }
            await self.h.client.call("POST", f"/apis/coordination.k8s.io/v1/namespaces/{LEASES}/leases", body)
        await self.h.caught_up()

    async def set_taints(self, name: str, *taints: Taint) -> None:
        """Put these taints on a node, and no others."""
        await self.h.client.patch(Node, name, {"spec": {"taints": list(taints) or None}})

    async def taints(self, name: str) -> set[tuple[str, str]]:
        """What a node is tainted with: key and effect."""
        found = await self.get(name)
        return {(each.key or "", each.effect or "") for each in (found.spec.taints if found.spec else None) or ()}


@contextlib.asynccontextmanager
async def nodes_of(h: Harness) -> AsyncIterator[Nodes]:
    """Nodes that are gone when the block ends."""
    nodes = Nodes(h)
    try:
        yield nodes
    finally:
        for name in nodes.names:
            with contextlib.suppress(errors.NotFound):
                await h.client.delete(Node, name)
