"""The base of all controllers: watches, queue, workers, retries.

A controller names the kind it works for and what else concerns it; the key of an object that may need work is put
into a queue, and `reconcile(key)` is called, never twice at once for one key. It reads the present state from the
caches, and makes it what it should be. It does not get the change itself, so nothing is lost when events are missed,
several are made one, or the process starts anew.

    class ReplicaSetController(Controller[ReplicaSet]):
        name = "replicaset-controller"
        kind = ReplicaSet
        watches = (owns(Pod), adopts(Pod))

        def setup(self) -> None:                      # called once, before anything runs
            self.workers = self.options.concurrent_replicaset_syncs
            self.pods = self.informer(Pod)

        async def reconcile(self, key: Key) -> float | None:
            replicaset = self.own.get(key)            # shared: copy() before changing
            ...
            return 30.0                               # look again in 30 s; None = when something changes

An exception puts the key back with a growing delay and is logged; a conflict or a vanished object is normal life.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from pybernetes.api import errors, labels
from pybernetes.api.base import Kind
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.expectations import Expectations
from pybernetes.client.informer import Informer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, controller_of, key_of, resource_of, uid_of
from pybernetes.client.metrics import Registry
from pybernetes.client.workqueue import ShutDown, WorkQueue
from pybernetes.trace import recorder

from .identity import Identities
from .options import Options

K = TypeVar("K", bound=Kind)


@dataclass
class ControllerContext:
    """The dependencies of controllers."""

    client: Client
    informers: InformerFactory
    events: EventBroadcaster
    clock: Clock
    options: Options = field(default_factory=Options)
    metrics: Registry = field(default_factory=Registry)
    identities: Identities | None = None
    """The identities of controllers, if each has credentials of its own."""

    def client_for(self, controller: str) -> Client:
        """The client of a controller."""
        return self.identities.client(controller) if self.identities else self.client.for_component(controller)


Mapping = Callable[[Any, Any], Iterable[Key]]
"""From a controller and an object of another kind to the keys that it concerns."""


@dataclass(frozen=True)
class Watch:
    """Another kind whose changes concern a controller."""

    kind: type[Kind]
    how: str
    mapping: Mapping | None = None


def owns(kind: type[Kind]) -> Watch:
    """Objects that the controller's own objects control: their changes wake the owner and settle its expectations."""
    return Watch(kind, "owns")


def adopts(kind: type[Kind]) -> Watch:
    """Objects without a controller: their changes wake all own objects whose selector matches them."""
    return Watch(kind, "adopts")


def maps(kind: type[Kind], mapping: Mapping) -> Watch:
    """Any other objects: `mapping(controller, obj)` answers the keys to wake, asked about the old and the new state."""
    return Watch(kind, "maps", mapping)


class Controller(Generic[K]):
    """The base of all controllers."""

    name: ClassVar[str] = ""
    """Upstream's, such as `replicaset-controller`."""
    kind: ClassVar[type[Kind] | None] = None
    """The class K; None for a controller without objects of its own, which overrides `run`."""
    watches: ClassVar[tuple[Watch, ...]] = ()
    workers: int = 1

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.clock = context.clock
        self.options = context.options
        self.client = context.client_for(self.name)
        self.recorder = context.events.recorder(self.name)
        self.log = logging.getLogger(f"pybernetes.{self.name}")
        self.expectations: Expectations[Key] = Expectations(self.clock)
        self.queue: WorkQueue[Key] = self.new_queue(self.queue_name())
        self._used: dict[Informer[Any], None] = {}
        self._read_selectors: dict[Key, tuple[Any, labels.Selector]] = {}
        self._results = context.metrics.counter(
            "pybernetes_controller_reconciles_total", "Reconciliations by their end.", ("controller", "result")
        )
        if self.kind is not None:
            self.own: Informer[K] = self.informer(self.kind)
            self.own.add_handler(self._own_added, self._own_updated, self._own_deleted, resync=self.resync_period())
        for watch in self.watches:
            self._watch(watch)
        self.setup()

    # -- what a controller may say

    def setup(self) -> None:
        """Ask for informers, add indexes and handlers. Called once, before anything runs."""

    async def reconcile(self, key: Key) -> float | None:
        """Make the state what it should be; in how many seconds to look again, if nothing changes before."""
        raise NotImplementedError

    def selects(self, owner: K, obj: Kind) -> bool:
        """Whether the owner's selector matches an object (for `adopts`)."""
        return self.selector_of(owner).matches((obj.metadata.labels if obj.metadata else None) or {})

    def selector_of(self, owner: K) -> labels.Selector:
        """The owner's selector. It is read once, not for each pod: a selector may have 100,000 values.

        Raises ValueError if it cannot be read.
        """
        spec: Any = getattr(owner, "spec", None)
        selector = getattr(spec, "selector", None)
        if selector is None or selector == {}:
            return labels.NOTHING
        key = key_of(owner)
        known = self._read_selectors.get(key)
        if known is not None and known[0] == selector:
            return known[1]
        chosen = labels.from_set(selector) if isinstance(selector, dict) else labels.from_label_selector(selector)
        if self.own.get(key) is owner:  # or it would never be forgotten
            self._read_selectors[key] = selector, chosen
        return chosen

    def selecting(self, obj: Kind) -> list[K]:
        """The own objects in the namespace of an object whose selectors match it."""
        found = []
        for owner in self.own.in_namespace((obj.metadata.namespace if obj.metadata else None) or ""):
            try:
                if self.selects(owner, obj):
                    found.append(owner)
            except ValueError as error:  # this owner selects nothing; the others are not concerned
                self.log.warning("the selector of %s cannot be read: %s", key_of(owner), error)
        return found

    def concerns(self, old: K | None, new: K | None) -> bool:
        """Whether a change of an own object is worth a look: added (None, new), deleted (old, None) or updated."""
        return True

    def resync_period(self) -> float:
        """Seconds after which all own objects are looked at again; 0 = never.

        A safety net, not a mechanism: hours, and not the same for all, so that not everything comes at once.
        """
        return self.options.min_resync_period * (1 + random.random())

    def queue_name(self) -> str:
        """The queue's name in metrics: upstream's, `replicaset`."""
        return self.name.removesuffix("-controller")

    async def run(self) -> None:
        """Work until cancelled. The base waits for its caches, then runs the workers."""
        await self.wait_synced()
        await self.work(self.queue, self.reconcile, self.workers)

    # -- what it may use

    def informer(self, kind: type[Any], **selectors: str) -> Informer[Any]:
        """The shared informer of a kind; the controller starts when it is filled.

        With `namespace`, `label_selector` or `field_selector` it is another one, with only what they select.
        """
        informer = self.context.informers.informer(kind, **selectors)
        self._used[informer] = None
        return informer

    async def wait_synced(self) -> None:
        """Return when every cache that this controller asked for is filled."""
        for informer in list(self._used):
            await informer.wait_synced()

    def enqueue(self, obj: K | Key, after: float = 0.0) -> None:
        """Look at an own object, now or later."""
        self.queue.add_after(obj if isinstance(obj, Key) else key_of(obj), after)

    def new_queue(self, name: str) -> WorkQueue[Any]:
        """Another queue, for a controller that needs more than one."""
        return WorkQueue(name, self.clock, metrics=self.context.metrics)

    async def work(
        self, queue: WorkQueue[Any], function: Callable[[Any], Awaitable[float | None]], workers: int
    ) -> None:
        """Run workers on a queue until it is shut down or we are cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(workers):
                group.create_task(self._worker(queue, function), name=f"{queue.name} worker {number}")

    def owner_key(self, obj: Kind) -> Key | None:
        """The own object that controls another one, if it exists and is that very one (its uid)."""
        reference = controller_of(obj)
        if reference is None or self.kind is None:
            return None
        resource = resource_of(self.kind)
        group = (reference.api_version or "").rpartition("/")[0]
        if reference.kind != resource.kind or group != resource.group:
            return None
        namespace = (obj.metadata.namespace if obj.metadata else None) or ""
        key = Key(namespace if resource.namespaced else "", reference.name or "")
        owner = self.own.get(key)
        return key if owner is not None and uid_of(owner) == reference.uid else None

    # -- running

    async def _worker(self, queue: WorkQueue[Any], function: Callable[[Any], Awaitable[float | None]]) -> None:
        while True:
            try:
                item = await queue.get()
            except ShutDown:
                return
            with recorder.span(f"reconcile {queue.name}", queue.causes(item), service=self.name) as span:
                try:
                    after = await function(item)
                except Exception as error:
                    span.fail(error)
                    self._failed(queue, item, error)
                else:
                    self._results.inc(self.name, "success")
                    queue.forget(item)
                    if after is not None:
                        queue.add_after(item, after)
                finally:
                    queue.done(item)
                span.done(str(item))

    def _failed(self, queue: WorkQueue[Any], item: Any, error: Exception) -> None:
        failures = queue.failures(item)
        if isinstance(error, (errors.Conflict, errors.NotFound, errors.AlreadyExists)):
            self._results.inc(self.name, "conflict")
            self.log.debug("%s: %s", item, error)
        elif isinstance(error, (errors.APIError, OSError, TimeoutError)):
            self._results.inc(self.name, "error")
            self.log.warning("%s: %s (failure %d)", item, error or type(error).__name__, failures + 1)
        else:  # ours: a trace is needed
            self._results.inc(self.name, "error")
            self.log.error("%s: failure %d", item, failures + 1, exc_info=error)
        queue.add_rate_limited(item)

    # -- being woken

    def _own_added(self, obj: K) -> None:
        if self.concerns(None, obj):
            self.queue.add(key_of(obj))

    def _own_updated(self, old: K, new: K) -> None:
        if uid_of(old) != uid_of(new):
            self._own_deleted(old)
        if self.concerns(old, new):
            self.queue.add(key_of(new))

    def _own_deleted(self, obj: K) -> None:
        key = key_of(obj)
        self._read_selectors.pop(key, None)
        self.expectations.forget(key)
        if self.concerns(obj, None):
            self.queue.add(key)

    def _watch(self, watch: Watch) -> None:
        informer = self.informer(watch.kind)
        if watch.how == "owns":
            informer.add_handler(self._owned_added, self._owned_updated, self._owned_deleted)
        elif watch.how == "adopts":
            informer.add_handler(self._orphan_seen, self._orphan_updated, self._orphan_seen)
        else:
            mapping = watch.mapping
            assert mapping is not None

            def one(obj: Kind) -> None:
                for key in mapping(self, obj):
                    self.queue.add(key)

            def two(old: Kind, new: Kind) -> None:
                one(old)
                one(new)

            informer.add_handler(one, two, one)

    def _owned_added(self, obj: Kind) -> None:
        if _deleting(obj):  # a restart may show it first when it is already going
            self._owned_deleted(obj)
            return
        key = self.owner_key(obj)
        if key is not None:
            self.expectations.creation_observed(key)
            self.queue.add(key)

    def _owned_updated(self, old: Kind, new: Kind) -> None:
        if uid_of(old) != uid_of(new):
            self._owned_deleted(old)
            self._owned_added(new)
            return
        before, after = self.owner_key(old), self.owner_key(new)
        if after is not None and _deleting(new):
            self.expectations.deletion_observed(after, uid_of(new))
        for key in {before, after}:
            if key is not None:
                self.queue.add(key)

    def _owned_deleted(self, obj: Kind) -> None:
        key = self.owner_key(obj)
        if key is not None:
            self.expectations.deletion_observed(key, uid_of(obj))
            self.queue.add(key)

    def _orphan_seen(self, obj: Kind) -> None:
        if controller_of(obj) is None and not _deleting(obj):
            for owner in self.selecting(obj):
                self.queue.add(key_of(owner))

    def _orphan_updated(self, old: Kind, new: Kind) -> None:
        if controller_of(new) is not None:
            return
        relabelled = (old.metadata and old.metadata.labels) != (new.metadata and new.metadata.labels)
        if relabelled or controller_of(old) is not None:
            self._orphan_seen(new)


def _deleting(obj: Kind) -> bool:
    return obj.metadata is not None and obj.metadata.deletion_timestamp is not None
