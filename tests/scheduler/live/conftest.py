"""A real API server and a scheduler in this process, made from a configuration file's text.

    async def test_something(live):
        async with live("profiles: [...]") as l:
            await l.node("n1", cpu="4")
            await l.pod("p", cpu="1")
            await l.bound("p")

Each `live(...)` has a namespace of its own; its nodes and pods go at the end, for the next test on the same server.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import msgspec
import pytest

import tools
from pybernetes.api import errors
from pybernetes.api.core.v1 import (
    Container,
    Event,
    Namespace,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    ResourceRequirements,
    ServiceAccount,
)
from pybernetes.api.core.v1.affinity import Taint
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.scheduling.v1 import PriorityClass
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.clock import JumpingClock
from pybernetes.client.informers import InformerFactory
from pybernetes.scheduler.config import policy as policies
from pybernetes.scheduler.config.load import load
from pybernetes.scheduler.config.spec import build
from pybernetes.scheduler.framework.recorder import AttemptRecorder
from pybernetes.scheduler.scheduler import Scheduler

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
T = TypeVar("T")
_numbers = itertools.count(1)
# A wait ends when its condition holds; this is for when it never will.
WITHIN = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    """An API server for the tests of a module."""
    with tools.api_server(tmp_path_factory.mktemp("scheduler")) as running:
        yield running


class Live:
    """What a test works with."""

    def __init__(self, client: Client, scheduler: Scheduler, clock: JumpingClock) -> None:
        self.client = client
        self.scheduler = scheduler
        self.clock = clock
        self.namespace = f"live-{next(_numbers)}"
        self._classes: list[str] = []

    async def node(
        self,
        name: str,
        *,
        labels: dict[str, str] | None = None,
        taints: list[Taint] | None = None,
        unschedulable: bool | None = None,
        **resources: str,
    ) -> Node:
        """A node with so much; `pods` is 110 unless given."""
        allocatable: dict[str, Any] = {"cpu": "4", "memory": "8Gi", "pods": "110", **resources}
        node = await self.client.create(
            Node(
                metadata=ObjectMeta(name=name, labels=labels),
                spec=NodeSpec(taints=taints, unschedulable=unschedulable),
            )
        )
        assert node.spec is not None
        node.spec.taints = taints  # admission has added one: the node has not reported that it is ready
        node = await self.client.update(node)
        node.status = NodeStatus(allocatable=allocatable, capacity=allocatable)
        node = await self.client.update_status(node)
        await self.until(lambda: name in self.scheduler.snapshot.row_of, f"the scheduler knows node {name}")
        version = node.metadata.resource_version if node.metadata else None

        def seen() -> bool:
            known = self.scheduler.snapshot.node(name)
            return known is not None and known.metadata is not None and known.metadata.resource_version == version

        await self.until(seen, f"and what {name} has")
        return node

    async def priority_class(self, name: str, value: int, policy: str | None = None) -> str:
        """A PriorityClass, which may be there already."""
        with contextlib.suppress(errors.AlreadyExists):
            await self.client.create(
                PriorityClass(metadata=ObjectMeta(name=name), value=value, preemption_policy=policy)
            )
            self._classes.append(name)
        return name

    async def pod(self, name: str, *, labels: dict[str, str] | None = None, grace: int = 0, **more: Any) -> Pod:
        """A pod; keywords are resources of its container (`cpu`, `memory`), or fields of its spec."""
        fields = set(PodSpec.__struct_fields__)
        spec = {key: more.pop(key) for key in list(more) if key in fields}
        limits = {name: amount for name, amount in more.items() if "/" in name}
        resources = ResourceRequirements(requests=more or None, limits=limits or None)
        container = Container(name="c", image="image", resources=resources)
        return await self.client.create(
            Pod(
                metadata=ObjectMeta(name=name, namespace=self.namespace, labels=labels),
                spec=PodSpec(**{"containers": [container], "termination_grace_period_seconds": grace, **spec}),
            )
        )

    async def get(self, name: str) -> Pod | None:
        """A pod as the server has it."""
        try:
            return await self.client.get(Pod, name, self.namespace)
        except errors.NotFound:
            return None

    async def bound(self, name: str, within: float = WITHIN) -> str:
        """Wait until a pod has its node, and the scheduler has heard of it; the node's name."""

        async def has_node() -> Pod | None:
            pod = await self.get(name)
            return pod if pod and pod.spec and pod.spec.node_name else None

        pod = await self.until(has_node, f"pod {name} is bound", within)
        uid, cache = pod.metadata.uid or "", self.scheduler.cache
        await self.until(lambda: cache.get(uid) and not cache.is_assumed(uid), f"the binding of {name} is heard of")
        return str(pod.spec.node_name)

    async def refused(self, name: str, within: float = WITHIN) -> str:
        """Wait until a pod's condition says that it fits nowhere; the message."""

        async def message() -> str | None:
            pod = await self.get(name)
            for each in (pod.status.conditions if pod and pod.status else None) or ():
                if each.type == "PodScheduled" and each.status == "False" and each.reason == "Unschedulable":
                    return each.message
            return None

        return str(await self.until(message, f"pod {name} is unschedulable", within))

    async def events(self, reason: str) -> list[Event]:
        """The events of the namespace with a reason."""
        found = await self.client.list(Event, self.namespace)
        return [each for each in found.items or () if each.reason == reason]

    async def until(
        self, condition: Callable[[], T | Awaitable[T]], what: str = "the condition holds", within: float = WITHIN
    ) -> T:
        """Wait until a condition (a function or a coroutine function) is true; its value."""
        deadline = time.monotonic() + within
        while True:
            value: Any = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value  # type: ignore[no-any-return]
            assert time.monotonic() < deadline, f"{what}: not within {within} s"
            await asyncio.sleep(0.01)

    async def clean(self) -> None:
        """Nodes, pods and the PriorityClasses of this test go."""
        await self.client.delete_collection(Pod, self.namespace, grace_period_seconds=0)
        await self.client.delete_collection(Node)
        for name in self._classes:
            await self.client.delete(PriorityClass, name)


MakeLive = Callable[..., AbstractAsyncContextManager[Live]]


@pytest.fixture
def live(server: tools.ApiServer, caplog: pytest.LogCaptureFixture) -> MakeLive:
    """Runs a scheduler with a configuration (the text below its head)."""
    caplog.set_level(logging.INFO)

    @contextlib.asynccontextmanager
    async def make(
        text: str = "", recorder: AttemptRecorder | None = None, policy: dict[str, Any] | None = None
    ) -> AsyncIterator[Live]:
        clock = JumpingClock()
        settings = config.load(server.kubeconfig)
        if policy is None:
            spec = build(load((HEAD + text).encode()))
        else:
            old = policies.load(msgspec.json.encode({"kind": "Policy", "apiVersion": "v1", **policy}))
            spec = build(old.config, check_all_filters=old.always_check_all_predicates)
        async with Client(settings) as client, Client(settings, program="kube-scheduler") as theirs:
            informers = InformerFactory(theirs, clock=clock, detect_mutations=True)
            scheduler = Scheduler(theirs, informers, spec, clock, recorder=recorder)
            made = Live(client, scheduler, clock)
            await client.create(Namespace(metadata=ObjectMeta(name=made.namespace)))
            with contextlib.suppress(errors.AlreadyExists):
                await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=made.namespace)))
            task = asyncio.create_task(scheduler.run())
            started = asyncio.create_task(scheduler.started.wait())
            try:
                await asyncio.wait([started, task], return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    task.result()
                yield made
                if task.done():
                    task.result()
            finally:
                started.cancel()
                task.cancel()
                await asyncio.wait([task])
                await made.clean()
                for extender in spec.extenders:
                    await extender.close()  # type: ignore[attr-defined]
        mutated = [found for informer in informers.informers for found in informer.mutations()]
        assert not mutated, "objects of the shared cache were changed:\n" + "\n".join(mutated)

    return make
