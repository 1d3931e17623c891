"""Compiles FlowSchemas and PriorityLevelConfigurations; recomputes the seats of levels every ten seconds.

The mandatory objects count even when they are not there: every request belongs somewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pybernetes.api.errors import APIError
from pybernetes.api.flowcontrol import mandatory
from pybernetes.api.flowcontrol.v1 import FlowSchema, PriorityLevelConfiguration
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.net.http import Request
from pybernetes.store.base import StoreError

from ..registry.lister import lister
from ..requestinfo import RequestInfo
from ..user import User
from .borrowing import allocate, bounds, smoothed
from .ensure import GROUP, ensure_objects, ensure_statuses
from .levels import PATIENCE, Level
from .matching import distinguisher, in_order, matches

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from ..registry.registry import Registry

log = logging.getLogger(__name__)
PERIOD = 10.0  # seconds between looks at who needs seats; upstream's
_KEPT = 8192  # classified kinds of requests that are remembered


class Flow:
    """Requests that are alike: they share a fate when there is not enough for all."""

    __slots__ = ("counts", "distinguisher", "head", "key", "level", "schema")

    def __init__(self, schema: FlowSchema, level: Level, key: str) -> None:
        self.schema = schema.metadata.name if schema.metadata and schema.metadata.name else ""
        self.level = level
        self.counts = level.counts_of(self.schema)
        self.distinguisher = key
        self.key = f"{self.schema}/{key}"
        uid = (schema.metadata and schema.metadata.uid) or ""
        self.head = (
            f"X-Kubernetes-PF-FlowSchema-UID: {uid}\r\nX-Kubernetes-PF-PriorityLevel-UID: {level.uid}\r\n".encode()
        )


class FlowController:
    """Classifies requests and looks after the levels."""

    def __init__(
        self, registry: Registry, total: int, loop: asyncio.AbstractEventLoop, patience: float = PATIENCE
    ) -> None:
        """`total`: seats of all levels; `patience`: seconds that a request waits for one at most."""
        self._registry = registry
        self._patience = patience
        self._total = total
        self._loop = loop
        self._schemas = lister(registry, GROUP, "v1", "flowschemas")
        self._configurations = lister(registry, GROUP, "v1", "prioritylevelconfigurations")
        self._stamp: tuple[int, int] | None = None
        self._ordered: list[tuple[FlowSchema, Level]] = []
        self._flows: dict[tuple[Any, ...], Flow] = {}
        self.levels: dict[str, Level] = {}
        self._changed = asyncio.Event()
        for each in (self._schemas, self._configurations):
            each.subscribe(lambda new, old: self._changed.set())

    def flow_of(self, request: Request) -> Flow:
        """The flow of a request."""
        stamp = (self._schemas.partition.changed, self._configurations.partition.changed)
        if stamp != self._stamp:
            self._compile(stamp)
        user, head = request.user, request.head
        if head is None:
            return self._classify(user, request.info)
        flow: Flow
        if head.flow is not None:
            whose, when, flow = head.flow
            if whose is user and when is self._stamp:
                return flow
        flow = self._classify(user, request.info)
        head.flow = (user, self._stamp, flow)
        return flow

    def _classify(self, user: User, info: RequestInfo) -> Flow:
        if info.is_resource:
            key: tuple[Any, ...] = (
                user.name,
                user.groups,
                info.verb,
                info.group,
                info.resource,
                info.subresource,
                info.namespace,
            )
        else:
            key = (user.name, user.groups, info.verb, info.path)
        flow = self._flows.get(key)
        if flow is None:
            if len(self._flows) >= _KEPT:
                self._flows.clear()
            flow = self._flows[key] = self._find(user, info)
        return flow

    async def run(self) -> None:
        """Keep the statuses right and share the seats. Runs until cancelled."""
        while True:
            try:
                self._changed.clear()
                await ensure_statuses(self._registry)
            except (APIError, StoreError) as error:
                log.warning("flow schemas: %s", error)
            try:
                async with asyncio.timeout(PERIOD):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self.adjust()

    async def ensure(self) -> None:
        """Make the objects that every cluster has."""
        await ensure_objects(self._registry)

    def adjust(self) -> None:
        """Share the seats by demand: what a level does not need, others may use."""
        limited = [each for each in self.levels.values() if not each.exempt]
        items = []
        now = self._loop.time()
        for level in self.levels.values():
            level.high, usual = level.demand.look(now)
            level.smoothed = smoothed(level.smoothed, usual)
        for level in limited:
            least = max(level.bounds.least, min(level.bounds.nominal, level.high))
            items.append((float(least), max(least, level.smoothed), float(max(level.bounds.most, least))))
        total = sum(each.bounds.nominal for each in limited)
        for level, seats in zip(limited, allocate(total, items), strict=True):
            level.limit = seats
            level.dispatch()

    def _compile(self, stamp: tuple[int, int]) -> None:
        self._stamp = stamp
        self._flows.clear()
        configurations = {each.metadata.name: each for each in self._configurations.list()}
        for name, spec in mandatory.priority_level_configurations().items():
            configurations.setdefault(name, PriorityLevelConfiguration(metadata=ObjectMeta(name=name), spec=spec))
        schemas = {each.metadata.name: each for each in self._schemas.list()}
        for name, known in mandatory.flow_schemas().items():
            schemas.setdefault(name, FlowSchema(metadata=ObjectMeta(name=name), spec=known))
        old, self.levels = self.levels, {}
        for name, configuration in configurations.items():
            level = old.get(name) or Level(name, self._loop, self._patience)
            try:
                level.configure(configuration)
            except Exception:  # whatever the object holds, all other levels go on
                log.exception("prioritylevelconfiguration %s cannot be used", name)
                required = mandatory.priority_level_configurations().get(name)
                if required is None:
                    continue
                level.configure(PriorityLevelConfiguration(metadata=ObjectMeta(name=name), spec=required))
            self.levels[name] = level
            level.forget_counts(schemas)
        levels = list(self.levels.values())
        shared = bounds(self._total, [(each.shares, each.lendable, each.borrowing) for each in levels])
        for level, each in zip(levels, shared, strict=True):
            if level.bounds != each:
                level.bounds = each
                level.limit = each.nominal
                level.dispatch()
        self._ordered = []
        for schema in in_order(list(schemas.values())):
            reference: Any = schema.spec and schema.spec.priority_level_configuration
            found = self.levels.get(reference.name) if reference else None
            if found is not None:
                self._ordered.append((schema, found))

    def _find(self, user: User, info: RequestInfo) -> Flow:
        for schema, level in self._ordered:
            if matches(schema, user, info):
                return Flow(schema, level, distinguisher(schema, user, info))
        schema = FlowSchema(metadata=ObjectMeta(name=mandatory.CATCH_ALL), spec=mandatory.flow_schemas()["catch-all"])
        return Flow(schema, self.levels[mandatory.CATCH_ALL], distinguisher(schema, user, info))

    def collect(self) -> Iterator[Metric]:
        """The metrics, for prometheus_client."""
        from .metrics import collect

        yield from collect(self.levels.values())
