"""As whom the process comes to the API server: as each node, so that a node may do no more than a real one.

One certificate is enough: its owner acts as `system:node:NAME`, for which it must be allowed to impersonate. So the
Node authorizer and NodeRestriction have their say, and audit logs and events name the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from pybernetes.api.core.v1 import Event
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.events import Correlator, EventBroadcaster, EventRecorder

PROGRAM: Final = "kubelet"
GROUPS: Final = ("system:nodes",)
EVENTS_AT_ONCE: Final = 4
"""Events of all nodes that are being sent: statuses and heartbeats, which others wait for, are not to wait for them."""

EVENTS_REMEMBERED: Final = 1 << 14
"""As many for all nodes together; each kubelet has 4,096 for itself, which a thousand in one process cannot."""


class Identities:
    """A client and a recorder of events for each node; made when they are first needed."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._clients: dict[str, Client] = {}
        self._recorders: dict[str, EventRecorder] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(EVENTS_AT_ONCE)
        self._correlator = Correlator(clock, EVENTS_REMEMBERED)

    def client(self, node: str) -> Client:
        """The API as this node's kubelet sees it."""
        found = self._clients.get(node)
        if found is None:
            found = self._clients[node] = self._client.acting_as(f"system:node:{node}", GROUPS, PROGRAM)
        return found

    def recorder(self, node: str) -> EventRecorder:
        """The event recorder of this node's kubelet."""
        found = self._recorders.get(node)
        if found is None:
            client = cast("Client", _Patient(self.client(node), self._turn))
            broadcaster = EventBroadcaster(client, self._clock, node, self._correlator)
            self._sending.add(asyncio.create_task(broadcaster.run(), name=f"events of {node}"))
            found = self._recorders[node] = broadcaster.recorder(PROGRAM)
        return found

    async def stop(self) -> None:
        """Tell no more."""
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)


class _Patient:
    """A client whose requests wait for their turn: what `EventBroadcaster` needs of one."""

    def __init__(self, client: Client, turn: asyncio.Semaphore) -> None:
        self._client = client
        self._turn = turn

    async def create(self, event: Event) -> Event:
        """Create an event."""
        async with self._turn:
            return await self._client.create(event)

    async def patch(self, kind: type[Event], name: str, body: dict[str, Any], namespace: str, **options: Any) -> Event:
        """Patch an event."""
        async with self._turn:
            return await self._client.patch(kind, name, body, namespace, **options)


class NodesClient:
    """A client for what belongs to some node's pod, by the pod's uid: what `StatusManager` needs of one."""

    def __init__(self, identities: Identities, node_of: Callable[[str], str]) -> None:
        """`node_of(uid)` is the node of a pod."""
        self._identities = identities
        self._node_of = node_of

    async def patch(self, kind: Any, name: str, body: dict[str, Any], namespace: str, **options: Any) -> Any:
        """Patch a pod, whose uid the patch has."""
        client = self._identities.client(self._node_of(body["metadata"]["uid"]))
        return await client.patch(kind, name, body, namespace, **options)

    async def delete(self, kind: Any, name: str, namespace: str, *, uid: str, **options: Any) -> None:
        """Delete a pod."""
        await self._identities.client(self._node_of(uid)).delete(kind, name, namespace, uid=uid, **options)
