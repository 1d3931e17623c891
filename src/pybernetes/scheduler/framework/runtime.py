"""A profile at work: its plugins, made once, and how each extension point is run.

What a plugin raises becomes a Status of code ERROR with the plugin's name: that pod fails, with an event, and is tried
again; the others do not notice.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Pod
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.informer import Informer

from ..metrics import Metrics
from ..nominated import NominatedSums
from .diagnosis import Diagnosis
from .events import EventWithHint
from .extender import Extender
from .handle import Nominator
from .plugin import (
    EXTENSION_POINTS,
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from .podinfo import PodInfo
from .shared import LocalPlugins, PluginError, Shared, SharedWork
from .state import CycleState
from .status import Code, Status
from .waiting import WaitingPod

if TYPE_CHECKING:
    from ..profiles import ProfileSpec
    from ..snapshot.snapshot import Snapshot

K = TypeVar("K", bound=Kind)
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Services:
    """The services that all profiles of a scheduler share."""

    snapshot: Snapshot
    client: Client
    clock: Clock
    informer: Callable[[type[Any]], Informer[Any]]
    recorder: Callable[[str], Any]
    """The event recorder of a profile, by its name."""
    nominator: Nominator
    activate: Callable[[Iterable[Pod]], None]
    extenders: Sequence[Extender] = ()
    random: random.Random = field(default_factory=random.Random)
    nominated: NominatedSums = field(init=False)
    waiting: dict[str, WaitingPod] = field(default_factory=dict)
    """By the pod's uid."""
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        self.nominated = NominatedSums(self.snapshot, self.nominator)


class Framework:
    """One profile; also what its plugins get as `handle`."""

    def __init__(self, spec: ProfileSpec, services: Services) -> None:
        from ..plugins import registry

        self.profile_name = spec.scheduler_name
        self.percentage_of_nodes_to_score = spec.percentage_of_nodes_to_score
        self.check_all_filters = spec.check_all_filters
        self.snapshot = services.snapshot
        self.client = services.client
        self.clock = services.clock
        self.random = services.random
        self.recorder = services.recorder(spec.scheduler_name)
        self.nominator = services.nominator
        self.nominated = services.nominated
        self.extenders = services.extenders
        self.metrics = services.metrics
        self._services = services
        self.plugins: dict[str, Plugin] = {}
        for names in spec.points.values():
            for name in names:
                if name not in self.plugins:
                    self.plugins[name] = registry.load(name)(spec.args.get(name), self)
        self.points: dict[str, list[Plugin]] = {}
        for point, kind in EXTENSION_POINTS.items():
            enabled = [self.plugins[name] for name in spec.points.get(point, ())]
            for each in enabled:
                if not isinstance(each, kind):
                    raise TypeError(f'plugin "{each.name}" does not extend {point} plugin')
            self.points[point] = enabled
        self.pre_enqueues: list[PreEnqueuePlugin] = self._at("preEnqueue")
        self.pre_filters: list[PreFilterPlugin] = self._at("preFilter")
        self._filters: list[FilterPlugin] = self._at("filter")
        self.post_filters: list[PostFilterPlugin] = self._at("postFilter")
        self.pre_scores: list[PreScorePlugin] = self._at("preScore")
        self.scores: list[ScorePlugin] = self._at("score")
        self.reserves: list[ReservePlugin] = self._at("reserve")
        self.permits: list[PermitPlugin] = self._at("permit")
        self.pre_binds: list[PreBindPlugin] = self._at("preBind")
        self.binds: list[BindPlugin] = self._at("bind")
        self.post_binds: list[PostBindPlugin] = self._at("postBind")
        sorts: list[QueueSortPlugin] = self._at("queueSort")
        if len(sorts) != 1:
            raise ValueError(
                f'only one queue sort plugin required for profile with scheduler name "{self.profile_name}"'
            )
        self.queue_sort = sorts[0]
        if not self.binds:
            raise ValueError(
                f'at least one bind plugin is needed for profile with scheduler name "{self.profile_name}"'
            )
        self.weights = {each.name: spec.weights.get(each.name) or 1 for each in self.scores}
        local = LocalPlugins(self.pre_filters, self.filters, self.pre_scores, self.scores, self.weights)
        self.shared = SharedWork(local, self.snapshot)
        shared_filters = {each.name for each in local.filters}
        shared_scores = {each.name for each in local.scores}
        self.cluster_filters = [each for each in self.filters if each.name not in shared_filters]
        self.cluster_scores = [each for each in self.scores if each.name not in shared_scores]
        self._shared_pre_filters = {each.name for each in local.pre_filters}
        self.cluster_pre_scores = [each for each in self.pre_scores if each not in local.pre_scores]

    @property
    def filters(self) -> Sequence[FilterPlugin]:
        """The profile's filters, in the order of running."""
        return self._filters

    def _at(self, point: str) -> list[Any]:
        return self.points[point]

    def events_to_register(self) -> dict[str, Sequence[EventWithHint]]:
        """The registered events of each plugin that can reject a pod."""
        refusing = (
            "preEnqueue", "preFilter", "filter", "reserve", "permit", "preBind", "bind", "postFilter",
        )  # fmt: skip
        names = dict.fromkeys(each.name for point in refusing for each in self.points[point])
        return {name: self.plugins[name].events_to_register() for name in names}

    def observe(self, point: str, begun: float, status: Status | None = None) -> None:
        """Count how long an extension point took, since `begun` (perf_counter)."""
        code = "Success" if status is None else status.code.camel
        self.metrics.extension_point_seconds.observe(time.perf_counter() - begun, point, code, self.profile_name)

    # -- what plugins may use

    def informer(self, kind: type[K]) -> Informer[K]:
        """The shared cache of a kind."""
        return self._services.informer(kind)

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """All pods that wait for a permit."""
        return list(self._services.waiting.values())

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """One of them."""
        return self._services.waiting.get(uid)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods now."""
        self._services.activate(pods)

    def run_filters(self, state: CycleState, pod: PodInfo, row: int, *, nominated: bool = True) -> Status | None:
        """Whether the pod may go to one row as the snapshot is now."""
        if nominated:
            others = [
                each
                for each in self.nominator.on_node(self.snapshot.info(row).name)
                if each.priority >= pod.priority and each.uid != pod.uid
            ]
            if others:
                with self.snapshot.what_if() as change:
                    clone = state.clone()
                    for each in others:
                        if each.uid in self.snapshot.info(row).pods:
                            continue
                        change.add(each, row)
                        status = self.run_add_pod(clone, pod, each, row)
                        if status is not None:
                            return status
                    status = self._filter_row(clone, pod, row)
                if status is not None:
                    return status
        return self._filter_row(state, pod, row)

    def _filter_row(self, state: CycleState, pod: PodInfo, row: int) -> Status | None:
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            try:
                if not plugin.filter_row(state, pod, row):
                    for status, _ in plugin.refusals(state, pod, np.array([row], dtype=np.intp)):
                        return status.by(plugin.name)
                    return Status(Code.UNSCHEDULABLE, f"node(s) were refused by {plugin.name}", plugin=plugin.name)
            except Exception as error:
                return failed(plugin, error, f'running "{plugin.name}" filter plugin')
        return None

    def run_add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> Status | None:
        """Tell all PreFilter plugins: what if `added` were there?"""
        for plugin in self.pre_filters:
            if plugin.name not in state.skip_filter:
                try:
                    status = plugin.add_pod(state, pod, added, row)
                except Exception as error:
                    status = failed(plugin, error, f'running AddPod on PreFilter plugin "{plugin.name}"')
                if status is not None:
                    return status.by(plugin.name)
        return None

    def run_remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int) -> Status | None:
        """Tell all PreFilter plugins: what if `removed` were not there?"""
        for plugin in self.pre_filters:
            if plugin.name not in state.skip_filter:
                try:
                    status = plugin.remove_pod(state, pod, removed, row)
                except Exception as error:
                    status = failed(plugin, error, f'running RemovePod on PreFilter plugin "{plugin.name}"')
                if status is not None:
                    return status.by(plugin.name)
        return None

    # -- extension points

    def run_pre_filters(
        self, state: CycleState, pod: PodInfo, shared: Shared
    ) -> tuple[frozenset[str] | None, Status | None, set[str]]:
        """The nodes worth a look (None = all), why not to go on, and the plugins that named nodes."""
        state.data.update(shared.state.data)
        state.skip_filter |= shared.state.skip_filter
        names: frozenset[str] | None = None
        naming: set[str] = set()
        refused: Status | None = None
        for plugin in self.pre_filters:
            if plugin.name in self._shared_pre_filters:
                result = shared.pre_filter[plugin.name]
            else:
                try:
                    result = plugin.pre_filter(state, pod)
                except Exception as error:
                    return None, failed(plugin, error, f'running PreFilter plugin "{plugin.name}"'), set()
            if result is None:
                continue
            if isinstance(result, Status):
                if result.code == Code.SKIP:
                    state.skip_filter.add(plugin.name)
                elif result.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return None, result.by(plugin.name), set()
                elif result.code == Code.UNSCHEDULABLE:
                    refused = result.by(plugin.name)
                else:
                    message = f'running PreFilter plugin "{plugin.name}": {result.message}'
                    return None, Status(Code.ERROR, message, plugin=plugin.name, error=result.error), set()
            elif isinstance(result, PreFilterResult) and result.node_names is not None:
                naming.add(plugin.name)
                names = result.node_names if names is None else names & result.node_names
                if not names:
                    said = f"plugin {plugin.name}" if len(naming) == 1 else f"plugin(s) {_list(naming)} simultaneously"
                    return names, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, f"node(s) didn't satisfy {said}"), naming
        return names, refused, naming

    async def run_post_filters(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Run the PostFilter plugins until one makes room."""
        kept: PostFilterResult | None = None
        reasons: list[str] = []
        first = ""
        for plugin in self.post_filters:
            try:
                result, status = await plugin.post_filter(state, pod, diagnosis)
            except Exception as error:
                return None, failed(plugin, error)
            if status is None:
                return result, None
            if status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return result, status.by(plugin.name)
            if not status.rejected:
                return None, status.by(plugin.name)
            if result is not None and result.nominated_node_name is not None:
                kept = result
            reasons.extend(status.reasons)
            first = first or plugin.name
        return kept, Status(Code.UNSCHEDULABLE, *reasons, plugin=first)

    def run_reserves(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Let plugins book what the pod uses."""
        for plugin in self.reserves:
            try:
                status = plugin.reserve(state, pod, node_name)
            except Exception as error:
                return failed(plugin, error, f'running Reserve plugin "{plugin.name}"')
            if status is not None:
                return _blamed(status, plugin, f'running Reserve plugin "{plugin.name}"')
        return None

    def run_unreserves(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo it, in reverse."""
        for plugin in reversed(self.reserves):
            try:
                plugin.unreserve(state, pod, node_name)
            except Exception:
                log.exception("%s: unreserve of %s failed", plugin.name, pod.key)

    def run_permits(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[dict[str, float], Status | None]:
        """Run the Permit plugins: those that ask the pod to wait, and how long; a Status (not WAIT) if one rejects
        it."""
        waits: dict[str, float] = {}
        for plugin in self.permits:
            try:
                status, seconds = plugin.permit(state, pod, node_name)
            except Exception as error:
                return {}, failed(plugin, error, f'running Permit plugin "{plugin.name}"')
            if status is None:
                continue
            if status.is_wait:
                waits[plugin.name] = seconds
            else:
                return {}, _blamed(status, plugin, f'running Permit plugin "{plugin.name}"')
        return waits, None

    def will_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> bool:
        """Whether there is something to do before binding, so that it will take its time."""
        for plugin in self.pre_binds:
            try:
                status = plugin.pre_bind_pre_flight(state, pod, node_name)
            except Exception:
                return False  # it is asked again, and then fails the pod
            if status is None:
                return True
        return False

    async def run_pre_binds(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Run the PreBind plugins that have work for this pod."""
        for plugin in self.pre_binds:
            try:
                status = plugin.pre_bind_pre_flight(state, pod, node_name)
                if status is not None and status.is_skip:
                    continue
                if status is None:
                    status = await plugin.pre_bind(state, pod, node_name)
            except Exception as error:
                return failed(plugin, error, f'running PreBind plugin "{plugin.name}"')
            if status is not None:
                return _blamed(status, plugin, f'running PreBind plugin "{plugin.name}"')
        return None

    async def run_binds(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """The first plugin that does not skip binds."""
        for plugin in self.binds:
            try:
                status = await plugin.bind(state, pod, node_name)
            except Exception as error:
                return failed(plugin, error, f'running Bind plugin "{plugin.name}"')
            if status is None:
                return None
            if not status.is_skip:
                return _blamed(status, plugin, f'running Bind plugin "{plugin.name}"')
        return Status(Code.ERROR, "all Bind plugins skipped the pod")

    def run_post_binds(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Tell who wants to know."""
        for plugin in self.post_binds:
            try:
                plugin.post_bind(state, pod, node_name)
            except Exception:
                log.exception("%s: post_bind of %s failed", plugin.name, pod.key)

    # -- explaining

    def explain_masks(
        self, state: CycleState, pod: PodInfo, left: Any, masks: dict[str, Any], diagnosis: Diagnosis
    ) -> None:
        """Turn masks into reasons; `left` are the rows not explained yet, and is used up."""
        for plugin in self.filters:
            mask = masks.get(plugin.name)
            if mask is None:
                continue
            refused = left & ~mask[: len(left)]
            rows = np.flatnonzero(refused)
            if not len(rows):
                continue
            left &= ~refused
            try:
                for status, found in plugin.refusals(state, pod, rows):
                    diagnosis.refuse(status.by(plugin.name), found)
            except Exception as error:
                raise PluginError(plugin.name, f'running "{plugin.name}" filter plugin: {error}') from error


def failed(plugin: Plugin, error: Exception, doing: str = "") -> Status:
    """The status for a plugin that raised; the traceback goes to the log."""
    log.error("plugin %s failed", plugin.name, exc_info=error)
    said = str(error) or type(error).__name__
    return Status(Code.ERROR, f"{doing}: {said}" if doing else said, plugin=plugin.name, error=error)


def _blamed(status: Status, plugin: Plugin, doing: str) -> Status:
    if status.rejected:
        return status.by(plugin.name)
    return Status(Code.ERROR, f"{doing}: {status.message}", plugin=plugin.name, error=status.error)


def _list(names: Iterable[str]) -> str:
    return f"[{' '.join(sorted(names))}]"
