"""A real API server, a manager in this process that runs the controllers under test, and a kubelet that pretends.

    async def test_a_replicaset_keeps_its_pods(harness):
        async with harness("replicaset-controller", "deployment-controller") as h:
            await h.client.create(ReplicaSet(...namespace=h.namespace...))
            await h.until(lambda: len(h.live(Pod)) == 3, "three pods")
            h.clock.advance(600)

Coroutine tests run by themselves: no plugin needed. Each `harness(...)` has a namespace of its own (`h.namespace`, with
a `default` service account in it), on a server that the tests of a module share. Time is real, and jumps ahead with
`h.clock.advance(seconds)`; `h.faults` injects conflicts, 5xx, lost answers and cut watches. At the end no controller
may have changed an object of the shared cache, nor have failed with anything but an error of the API.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import logging
import random
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

import pytest
from controllers.fake_kubelet import FakeKubelet

import tools
from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Event, Namespace, ServiceAccount
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.clock import JumpingClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.http import ConnectionFailed, Stream
from pybernetes.client.informer import Informer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import key_of
from pybernetes.client.transport import Transport
from pybernetes.controllers.base import Controller, ControllerContext
from pybernetes.controllers.manager import Manager
from pybernetes.controllers.options import Options

K = TypeVar("K", bound=Kind)
T = TypeVar("T")

_numbers = itertools.count(1)
# A wait ends when its condition holds; this is for when it never will.
WITHIN = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    """An API server for the tests of a module."""
    # Most tests run one controller: none removes the taint of a node that is ready.
    off = "--disable-admission-plugins=TaintNodesByCondition"
    with tools.api_server(tmp_path_factory.mktemp("controllers"), off) as running:
        yield running


class Faults:
    """Makes the server worse than it is, for the controllers only: the test's own `h.client` is spared.

    `conflict`, `unavailable` and `lost` are how likely a write is refused, refused with 503, or done with its answer
    lost. `cut()` breaks all watches.
    """

    def __init__(self, transport: Transport, seed: int = 0) -> None:
        self._transport = transport
        self._request = transport.request
        self._random = random.Random(seed)
        self.conflict = self.unavailable = self.lost = 0.0
        self.lost_creations = 0
        """POST requests that were done and whose answer was lost."""
        self.streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._stream = transport.stream
        transport.request = self.request  # type: ignore[method-assign]
        transport.stream = self.stream  # type: ignore[method-assign]

    async def request(self, method: str, target: str, **more: Any) -> Any:
        draw = self._random.random()
        if method != "GET" and (draw := draw - self.conflict) < 0:
            raise errors.Conflict("", "injected", target)
        if (draw := draw - self.unavailable) < 0:
            raise errors.ServiceUnavailable("injected")
        answer = await self._request(method, target, **more)
        if method != "GET" and draw - self.lost < 0:
            self.lost_creations += method == "POST"
            raise ConnectionFailed("injected: the answer was lost")
        return answer

    async def stream(self, method: str, target: str, **more: Any) -> Stream:
        stream = await self._stream(method, target, **more)
        self.streams.add(stream)
        return stream

    def cut(self) -> None:
        """Break all watches."""
        for stream in list(self.streams):
            stream.close()

    @property
    def active(self) -> bool:
        """Whether anything may go wrong."""
        return bool(self.conflict or self.unavailable or self.lost)

    def stop(self) -> None:
        """Be good again."""
        self.conflict = self.unavailable = self.lost = 0.0


class Harness:
    """What a test of a controller works with."""

    def __init__(
        self, client: Client, manager: Manager, kubelet: FakeKubelet | None, clock: JumpingClock, faults: Faults
    ) -> None:
        self.client = client
        self.manager = manager
        self.kubelet = kubelet
        self.clock = clock
        self.faults = faults
        self.namespace = f"test-{next(_numbers)}"
        self._behind: set[Informer[Any]] = set()
        self.restart: Callable[[], Awaitable[None]]
        """End the controllers in the middle of whatever they do, and start them anew, with empty caches."""

    def controller(self, name: str) -> Controller[Any]:
        """A running controller."""
        return self.manager.controllers[name]

    def live(self, kind: type[K], *, namespace: str | None = None) -> list[K]:
        """What the shared cache has of a kind in the test's namespace, ordered by name; not what is being deleted."""
        return [obj for obj in self.cached(kind, namespace=namespace) if not obj.metadata.deletion_timestamp]

    def cached(self, kind: type[K], *, namespace: str | None = None) -> list[K]:
        """What the shared cache has of a kind in the test's namespace, ordered by name."""
        informer = self.manager.context.informers.informer(kind)
        found = informer.in_namespace(self.namespace if namespace is None else namespace)
        return sorted(found, key=lambda obj: obj.metadata.name)

    async def get(self, kind: type[K], name: str) -> K | None:
        """An object as the server has it, None if it is not there."""
        try:
            return await self.client.get(kind, name, self.namespace)
        except errors.NotFound:
            return None

    async def list(self, kind: type[K], label_selector: str = "") -> list[K]:
        """The objects of the namespace as the server has them, ordered by name."""
        found = await self.client.list(kind, self.namespace, label_selector=label_selector)
        return sorted(found.items or (), key=lambda obj: obj.metadata.name)

    async def events(self, reason: str | None = None) -> list[Event]:
        """The events of the namespace, after those under way have been sent."""
        await self.manager.context.events.flush()
        return [event for event in await self.list(Event) if reason is None or event.reason == reason]

    async def until(
        self, condition: Callable[[], T | Awaitable[T]], what: str = "the condition holds", within: float = WITHIN
    ) -> T:
        """Wait until a condition (a function or a coroutine function) is true; its value.

        A coroutine function asks the server, which may be ahead of the caches; when it is true, they have caught up.
        """
        deadline = time.monotonic() + within
        while True:
            value = condition()
            if asks_the_server := inspect.isawaitable(value):
                value = await value
            if value:
                if asks_the_server:
                    await self.caught_up()
                return value
            assert time.monotonic() < deadline, f"{what}: not within {within} s"
            await asyncio.sleep(0.01)

    async def caught_up(self, within: float = WITHIN) -> None:
        """Wait until the caches have all that the server has now: it answers a writer before it tells the others."""
        if self.faults.active:
            return
        for informer in self.manager.context.informers.informers:
            with contextlib.suppress(errors.APIError, OSError):  # a kind that is served no more, a test's own faults
                if informer.has_synced and informer not in self._behind:
                    await self._caught_up(informer, within)

    @contextlib.contextmanager
    def behind(self, kind: type[Kind]) -> Iterator[list[Any]]:
        """Keep a cache from hearing of anything; at the end it hears of all events that are still in the list."""
        informer = self.manager.context.informers.informer(kind)
        events: list[Any] = []
        informer._apply = events.append  # type: ignore[method-assign]
        self._behind.add(informer)
        try:
            yield events
        finally:
            del informer._apply
            self._behind.remove(informer)
            for event in events:
                informer._apply(event)

    async def _caught_up(self, informer: Informer[Any], within: float) -> None:
        deadline = time.monotonic() + within
        now = await informer._source.list(limit=0, continue_token="")
        there = {key_of(obj): _revision(obj) for obj in now.items or ()}
        newest = max(there.values(), default=0)
        moment = int(now.resource_version)

        def lags() -> bool:
            gone = (obj for obj in informer.items() if key_of(obj) not in there and _revision(obj) <= moment)
            return int(informer.resource_version or 0) < newest or any(gone)

        while lags():
            assert time.monotonic() < deadline, f"the cache of {informer.name} is behind after {within} s"
            await asyncio.sleep(0.005)

    async def settled(self, quiet: float = 0.1, within: float = WITHIN) -> None:
        """Wait until the caches have everything and all queues have been empty for a while. Delayed work does not
        count."""
        deadline = time.monotonic() + within
        since, seen = time.monotonic(), self._revisions()
        while True:
            if self._busy() or self._revisions() != seen:
                since, seen = time.monotonic(), self._revisions()
                assert since < deadline, f"still busy after {within} s: {self._busy()}"
            if time.monotonic() - since >= quiet:
                await self.caught_up()
                if not self._busy() and self._revisions() == seen:
                    return
            await asyncio.sleep(0.005)

    def _busy(self) -> list[str]:
        queues = [each.queue for each in self.manager.controllers.values()]
        if self.kubelet and not self.kubelet.paused:
            queues.append(self.kubelet.queue)
        return [queue.name for queue in queues if len(queue) or queue.processing]

    def _revisions(self) -> list[str]:
        return [informer.resource_version for informer in self.manager.context.informers.informers]


def _revision(obj: Kind) -> int:
    assert obj.metadata is not None
    return int(obj.metadata.resource_version or 0)


class MakeHarness(Protocol):
    """`harness(*controllers, options=Options(...), kubelet=True, bound_only=False)`."""

    def __call__(
        self,
        *controllers: str,
        options: Options | None = None,
        kubelet: bool = True,
        bound_only: bool = False,
        tolerate: tuple[type[Exception], ...] = (),
    ) -> AbstractAsyncContextManager[Harness]: ...


@pytest.fixture
def harness(server: tools.ApiServer, caplog: pytest.LogCaptureFixture) -> MakeHarness:
    """Runs the controllers named."""
    caplog.set_level(logging.INFO)

    @contextlib.asynccontextmanager
    async def make(
        *controllers: str,
        options: Options | None = None,
        kubelet: bool = True,
        bound_only: bool = False,
        tolerate: tuple[type[Exception], ...] = (),
    ) -> AsyncIterator[Harness]:
        clock = JumpingClock()
        settings = config.load(server.kubeconfig)
        async with Client(settings) as client, Client(settings, program="kube-controller-manager") as theirs:
            faults = Faults(theirs.transport)
            factories: list[InformerFactory] = []
            tasks: list[asyncio.Task[None]] = []

            def make_manager() -> tuple[Manager, FakeKubelet | None]:
                informers = InformerFactory(theirs, detect_mutations=True)
                factories.append(informers)
                events = EventBroadcaster(theirs, clock)
                context = ControllerContext(theirs, informers, events, clock, options or Options())
                node = FakeKubelet(client, informers, clock, bound_only=bound_only) if kubelet else None
                return Manager(context, controllers), node

            async def start() -> None:
                tasks.append(asyncio.create_task(h.manager.run()))
                if h.kubelet:
                    tasks.append(asyncio.create_task(h.kubelet.run()))
                started = asyncio.create_task(h.manager.started.wait())
                await asyncio.wait([started, *tasks], timeout=60, return_when=asyncio.FIRST_COMPLETED)
                started.cancel()
                check()
                assert h.manager.started.is_set(), "the controllers did not start within a minute"

            def check() -> None:
                for task in tasks:
                    if task.done():
                        task.result()

            async def end() -> None:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                tasks.clear()

            async def restart() -> None:
                check()
                await end()
                h.manager, h.kubelet = make_manager()
                await start()

            h = Harness(client, *make_manager(), clock, faults)
            h.restart = restart
            await client.create(Namespace(metadata=ObjectMeta(name=h.namespace)))
            with contextlib.suppress(errors.AlreadyExists):
                await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=h.namespace)))
            try:
                await start()
                yield h
                check()
            finally:
                await end()
        mutated = [text for informers in factories for informer in informers.informers for text in informer.mutations()]
        assert not mutated, "objects of the shared cache were changed:\n" + "\n".join(mutated)
        crashes = [
            record
            for record in caplog.records
            if record.exc_info and record.exc_info[1] and not isinstance(record.exc_info[1], tolerate)
        ]
        assert not crashes, "\n".join(f"{each.name}: {each.getMessage()}: {each.exc_info[1]!r}" for each in crashes)

    return make
