"""Admission: the last word on what may be stored.

One small interface. A plugin that changes objects overrides `admit`, one that only judges overrides `validate`; all
`admit`s run before the object is validated, all `validate`s after. Raising an APIError ends the request.

A plugin declares the operations and resources it handles, and is disabled while it has no configuration. The chain
looks up the plugins of a request in a dict, so that a request pays for those and for no others. `admit` and
`validate` may be plain functions or coroutine functions: most plugins have nothing to wait for, and starting a
coroutine costs more than what they do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from operator import sub
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pybernetes.api import scheme
from pybernetes.api.errors import Forbidden
from pybernetes.api.resources import Resource

from ..counters import Histogram, Series

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from pybernetes.store.watchers import Change

    from ..registry.registry import Registry

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


class Attributes(msgspec.Struct, gc=False):
    """The attributes of the request. `new` and `old` are None where there is no such object."""

    operation: str
    resource: Resource
    """The written resource, in its storage version; `new` and `old` are of its kind unless `body` says otherwise."""
    subresource: str
    namespace: str
    name: str
    new: Any
    old: Any
    user: Any
    dry_run: bool
    warnings: list[str]
    options: Any = None
    """The `WriteOptions` or `DeleteOptions` of the request."""
    asked: Resource | None = None
    """The requested resource, which may be another version or group of the same objects."""
    body: tuple[str, str] | None = None
    """apiVersion and kind of `new` where a subresource speaks a kind of its own: Scale, Binding, Eviction, ..."""
    reinvoke: bool = False
    """Set by a plugin that has called a webhook or policy: then all `admit`s run once more."""
    reinvoking: bool = False
    """Whether this is that second time."""
    notes: dict[str, Any] | None = None
    """The state that a plugin keeps between calls for the same request, by the plugin's name."""
    annotations: dict[str, str] | None = None
    """Annotations for the audit log."""
    undo: Callable[[], Awaitable[None]] | None = None
    """Takes back what a plugin has written elsewhere (a quota's usage), if the object is certainly not stored."""

    @property
    def requested(self) -> Resource:
        """The resource as the client named it."""
        return self.asked or self.resource

    @property
    def kind(self) -> tuple[str, str]:
        """apiVersion and kind of what the client sent."""
        return self.body or (self.requested.api_version, self.requested.kind)

    def annotate(self, key: str, value: str) -> None:
        """Tell the audit log something about this request."""
        if self.annotations is None:
            self.annotations = {}
        self.annotations[key] = value


def forbidden(attributes: Attributes, why: object) -> Forbidden:
    """A refusal, in the words of upstream's: what is written, its name, and why not."""
    resource = attributes.requested
    return Forbidden(resource.group, resource.plural, attributes.name or _name(attributes.new), why)


def _name(obj: Any) -> str:
    meta = getattr(obj, "metadata", None)
    return (meta and (meta.name or meta.generate_name)) or "Unknown"


class Plugin:
    """An admission plugin, with what it wants to see.

    `resources` are names as `pods`, `deployments.apps` or `pods/resize`; `pods/*` is a resource with all of its
    subresources, `*` every resource without subresources, `*/*` everything.
    """

    name = ""
    operations: tuple[str, ...] = (CREATE, UPDATE, DELETE, CONNECT)
    resources: tuple[str, ...] = ("*/*",)

    disabled = False
    """Whether it has nothing to do for any request: then it is not called until it is enabled."""

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        """`configuration` is what --admission-control-config-file has for the plugin, as plain values."""
        self.registry = registry
        self.enabled: Callable[[], None] = lambda: None
        """Called when a disabled plugin becomes enabled."""

    def sleep_without(self, group: str, version: str, plural: str) -> None:
        """Sleep until there is an object of this resource."""
        resource = scheme.resource(group, version, plural)
        assert resource is not None
        partition = self.registry.cache.partitions[resource.storage_prefix]

        def look(_: Change | None = None) -> None:
            if self.disabled and partition.items:
                self.disabled = False
                self.enabled()

        self.disabled = True
        partition.followers.append(look)
        look()

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        """Whether requests of this form concern the plugin at all. Asked once for each form."""
        if operation not in self.operations:
            return False
        name = resource.fullname
        return any(
            wanted in ("*/*", f"{name}/*") or wanted == (f"{name}/{subresource}" if subresource else name)
            for wanted in self.resources
        ) or (not subresource and "*" in self.resources)

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        """Change the new object, or refuse it."""
        return None

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        """Refuse the new object; it must not be changed any more."""
        return None

    async def start(self) -> None:
        """Called once, when the server has read the store and before it answers."""

    async def stop(self) -> None:
        """Called once, when the server ends."""


Method = Callable[[Attributes], Awaitable[None] | None]
_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)  # upstream's buckets
_STEPS = 4096  # forms of requests that are remembered; definitions that come and go bring new ones
_KEPT = 256  # times that are kept for each form of requests


class Call(NamedTuple):
    """A plugin that is concerned, and where it is counted how long that took."""

    method: Method | None
    """None while it sleeps, which takes no time."""
    passed: Series
    refused: Series


class Step:
    """Everybody who is concerned by requests of one form, in order.

    A request reads the clock once for each plugin, and that is almost all: what was read is kept, and counted for many
    requests at once.
    """

    __slots__ = ("_active", "_calls", "_disabled", "_kept", "_methods", "_passed", "_refused")

    def __init__(self, calls: Sequence[Call], passed: Series, refused: Series) -> None:
        self._calls = calls
        self._active = [call for call in calls if call.method is not None]
        self._disabled = [call for call in calls if call.method is None]
        self._methods = tuple(call.method for call in calls if call.method is not None)
        self._passed, self._refused = passed, refused
        self._kept: list[float] = []  # of requests that passed: when each plugin began, and the end

    def run(self, attributes: Attributes) -> Awaitable[None] | None:
        """Call plugins until one rejects the request; once one has to wait, the rest is returned as an awaitable."""
        marks = [perf_counter()]
        try:
            for method in self._methods:
                pending = method(attributes)
                if pending is not None:
                    return self._run_on(attributes, marks, pending)
                marks.append(perf_counter())
        except Exception:
            self._count_refusal(marks)
            raise
        self._kept += marks
        if len(self._kept) > _KEPT:
            self.settle()
        return None

    async def _run_on(self, attributes: Attributes, marks: list[float], pending: Awaitable[None]) -> None:
        try:
            await pending
            marks.append(perf_counter())
            for method in self._methods[len(marks) - 1 :]:
                waiting = method(attributes)
                if waiting is not None:
                    await waiting
                marks.append(perf_counter())
        except Exception:
            self._count_refusal(marks)
            raise
        self._kept += marks
        self.settle()  # there may be another step in the place of this one by now

    def _count_refusal(self, marks: list[float]) -> None:
        """Count a request that was refused by the plugin that began last."""
        refusing = self._active[len(marks) - 1]
        marks.append(perf_counter())
        seconds = map(sub, marks[1:], marks)
        for call in self._calls:
            if call is refusing:
                break
            call.passed.add(0.0 if call.method is None else next(seconds))
        refusing.refused.add(next(seconds))
        self._refused.add(marks[-1] - marks[0])

    def settle(self) -> None:
        """Count the requests that passed."""
        width = len(self._active) + 1
        marks = [self._kept[index::width] for index in range(width)]
        self._kept = []
        for call, began, ended in zip(self._active, marks, marks[1:], strict=False):
            call.passed.add_all(list(map(sub, ended, began)))
        for call in self._disabled:
            call.passed.add_all([0.0] * len(marks[0]))
        self._passed.add_all(list(map(sub, marks[-1], marks[0])))


class Later(NamedTuple):
    """A plugin that is made when something it is about is written for the first time. It is not started or stopped."""

    name: str
    about: tuple[str, ...]
    """Resources by their full names, with all of their subresources."""
    make: Callable[[], Plugin]


class Chain:
    """The plugins in order; what a plugin does not override, or does not want to see, is never called."""

    def __init__(self, plugins: Sequence[Plugin | Later]) -> None:
        self._plugins = list(plugins)
        self._steps: dict[tuple[str | bool, ...], Step] = {}
        words = "How long admission took, by"
        labels = ("type", "operation", "rejected")
        self._step_times = Histogram(
            "apiserver_admission_step_admission_duration_seconds", f"{words} step.", labels, _SECONDS
        )
        self._plugin_times = Histogram(
            "apiserver_admission_controller_admission_duration_seconds", f"{words} plugin.", ("name", *labels), _SECONDS
        )

    def collect(self) -> Iterator[Metric]:
        """The metrics, for prometheus_client."""
        for step in self._steps.values():
            step.settle()
        yield from self._step_times.collect()
        yield from self._plugin_times.collect()

    async def admit(self, attributes: Attributes) -> None:
        """Let every mutating plugin that is concerned act."""
        waiting = self.admitting(attributes)
        if waiting is not None:
            await waiting

    def admitting(self, attributes: Attributes) -> Awaitable[None] | None:
        """The same for whom a coroutine is too dear: most have nothing to wait for."""
        step = self._step("admit", attributes)
        waiting = step.run(attributes)
        return None if waiting is None and not attributes.reinvoke else self._reinvoke(attributes, step, waiting)

    async def _reinvoke(self, attributes: Attributes, step: Step, waiting: Awaitable[None] | None) -> None:
        if waiting is not None:
            await waiting
        if attributes.reinvoke:
            attributes.reinvoking = True
            again = step.run(attributes)
            if again is not None:
                await again

    async def validate(self, attributes: Attributes) -> None:
        """Let every validating plugin that is concerned judge."""
        waiting = self.validating(attributes)
        if waiting is not None:
            await waiting

    def validating(self, attributes: Attributes) -> Awaitable[None] | None:
        """The same without a coroutine, unless there is something to wait for."""
        return self._step("validate", attributes).run(attributes)

    @property
    def plugins(self) -> list[Plugin]:
        """The plugins that have been made."""
        return [each for each in self._plugins if isinstance(each, Plugin)]

    @property
    def names(self) -> list[str]:
        """The names of all plugins."""
        return [each.name for each in self._plugins]

    def _step(self, method: str, attributes: Attributes) -> Step:
        operation, resource, subresource = attributes.operation, attributes.resource, attributes.subresource
        # A definition that was deleted may come back with another scope.
        key = (method, operation, resource.group, resource.plural, resource.namespaced, subresource)
        step = self._steps.get(key)
        if step is None:
            calls = tuple(self._concerned(method, operation, resource, subresource))
            if len(self._steps) >= _STEPS:
                self._forget_steps()
            step = self._steps[key] = Step(calls, *_outcomes(self._step_times, method, operation))
        return step

    def _concerned(self, method: str, operation: str, resource: Resource, subresource: str) -> Iterator[Call]:
        for index, plugin in enumerate(self._plugins):
            if isinstance(plugin, Later):
                if resource.fullname not in plugin.about:
                    continue
                plugin = self._plugins[index] = plugin.make()
            overridden = getattr(type(plugin), method) is not getattr(Plugin, method)
            if overridden and plugin.wants(operation, resource, subresource):
                if plugin.disabled:
                    plugin.enabled = self._forget
                called = None if plugin.disabled else getattr(plugin, method)
                yield Call(called, *_outcomes(self._plugin_times, plugin.name, method, operation))

    def _forget(self) -> None:
        """Find out anew who is concerned, as a plugin sleeps no more."""
        self._forget_steps()

    def _forget_steps(self) -> None:
        for step in self._steps.values():
            step.settle()
        self._steps.clear()


def _outcomes(histogram: Histogram, *labels: str) -> tuple[Series, Series]:
    return histogram.series(*labels, "false"), histogram.series(*labels, "true")
