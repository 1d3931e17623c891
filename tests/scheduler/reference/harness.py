"""One world in two forms: API objects for the reference, and a snapshot with informers for the plugins.

Everything that happens goes to both. The snapshot is changed step by step, as it is while a scheduler runs.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.client.clock import FakeClock
from pybernetes.client.informer import Informer
from pybernetes.client.keys import copy, key_of
from pybernetes.client.watch import Event
from pybernetes.scheduler.config.load import default
from pybernetes.scheduler.config.spec import build
from pybernetes.scheduler.framework.plugin import (
    FilterPlugin,
    Normalize,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    RowArray,
    ScorePlugin,
    default_normalize,
)
from pybernetes.scheduler.framework.podinfo import PodInfo
from pybernetes.scheduler.framework.runtime import Framework, Services
from pybernetes.scheduler.framework.state import CycleState
from pybernetes.scheduler.framework.status import Status
from pybernetes.scheduler.profiles import ProfileSpec
from pybernetes.scheduler.queue.nominator import PodNominator
from pybernetes.scheduler.snapshot.snapshot import Snapshot

from .cluster import UNRESOLVABLE, UNSCHEDULABLE, Cluster, Refusal

CODES = {"UNSCHEDULABLE": UNSCHEDULABLE, "UNSCHEDULABLE_AND_UNRESOLVABLE": UNRESOLVABLE}


class FakeHandle:
    """As much of a scheduler as plugins need to decide."""

    profile_name = "default-scheduler"

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.clock = FakeClock()
        self.random = random.Random(0)
        self.client: Any = None
        self.recorder: Any = None
        self.nominator: Any = None
        self.extenders = ()
        self.informers: dict[type[Kind], Informer[Any]] = {}

    def informer(self, kind: type[Kind]) -> Informer[Any]:
        if kind not in self.informers:
            self.informers[kind] = Informer(kind.__name__, None, self.clock)
        return self.informers[kind]

    def tell(self, obj: Kind, type: str = "ADDED") -> None:
        """An object came, changed or went."""
        self.informer(obj.__class__)._apply(Event(type, obj))


class World:
    """A cluster that changes, and those who look at it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.handle = FakeHandle()
        self._infos: dict[str, PodInfo] = {}
        for objects in (
            cluster.namespaces,
            cluster.services,
            cluster.replica_sets,
            cluster.stateful_sets,
            cluster.replication_controllers,
            cluster.claims,
            cluster.volumes,
            cluster.classes,
            cluster.csi_nodes,
            cluster.attachments,
            cluster.drivers,
            cluster.capacities,
        ):
            for obj in objects:
                self.handle.tell(obj)
        for node in cluster.nodes:
            self.handle.snapshot.set_node(node)
        for pod in cluster.pods:
            self._put(pod)

    @property
    def snapshot(self) -> Snapshot:
        return self.handle.snapshot

    def _put(self, pod: Pod) -> None:
        info = self._infos[pod.metadata.uid] = PodInfo(pod)
        self.snapshot.add_pod(info, pod.spec.node_name)

    def _take(self, pod: Pod) -> None:
        self.snapshot.remove_pod(self._infos.pop(pod.metadata.uid), pod.spec.node_name)

    def bind(self, pod: Pod, node: str) -> None:
        """The pod is on the node now."""
        placed = copy(pod)
        placed.spec.node_name = node
        self.cluster.pods.append(placed)
        self._put(placed)

    def remove_pod(self, pod: Pod) -> None:
        self.cluster.pods.remove(pod)
        self._take(pod)

    def replace_pod(self, old: Pod, new: Pod) -> None:
        """Labels may change, and a pod may be on its way out; never its node."""
        self.cluster.pods[self.cluster.pods.index(old)] = new
        self._take(old)
        self._put(new)

    def replace(self, objects: list[Any], obj: Any) -> None:
        """An object came, or another version of it."""
        known = [index for index, each in enumerate(objects) if key_of(each) == key_of(obj)]
        if known:
            obj.metadata.resource_version = str(int(objects[known[0]].metadata.resource_version or "1") + 1)
            objects[known[0]] = obj
        else:
            objects.append(obj)
        self.handle.tell(obj, "MODIFIED" if known else "ADDED")

    def drop(self, objects: list[Any], obj: Any) -> None:
        """An object went."""
        objects.remove(obj)
        self.handle.tell(obj, "DELETED")

    def set_node(self, node: Node) -> None:
        """A node came or changed."""
        nodes = self.cluster.nodes
        known = [index for index, each in enumerate(nodes) if each.metadata.name == node.metadata.name]
        if known:
            nodes[known[0]] = node
        else:
            nodes.append(node)
        self.snapshot.set_node(node)

    def remove_node(self, node: Node) -> None:
        """With its pods; upstream knows no pods of nodes that it does not know."""
        for pod in self.cluster.on(node):
            self.remove_pod(pod)
        self.cluster.nodes.remove(node)
        self.snapshot.remove_node(node.metadata.name)


Verdicts = dict[str, Refusal | None]


def verdicts(world: World, plugin: Plugin, pod: Pod) -> Verdicts:
    """What a plugin's filter says of every node, and why."""
    state, info = CycleState(), PodInfo(pod)
    names = [node.metadata.name for node in world.cluster.nodes]
    if isinstance(plugin, PreFilterPlugin):
        answer = plugin.pre_filter(state, info)
        if isinstance(answer, Status):
            if answer.is_skip:
                return dict.fromkeys(names)
            return dict.fromkeys(names, refusal(answer))
        if isinstance(answer, PreFilterResult) and answer.node_names is not None:
            pass  # narrows what the filter is asked for, which here is everything
    assert isinstance(plugin, FilterPlugin)
    return filtered(world, plugin, state, info)


def filtered(world: World, plugin: FilterPlugin, state: CycleState, info: PodInfo) -> Verdicts:
    snapshot = world.snapshot
    rows = np.array([snapshot.row_of[node.metadata.name] for node in world.cluster.nodes], dtype=np.intp)
    whole = plugin.filter(state, info, snapshot.all_rows)
    mask = plugin.filter(state, info, rows)
    assert mask.dtype == np.bool_
    assert len(whole) == snapshot.size
    assert len(mask) == len(rows)
    assert (whole[rows] == mask).all(), "all rows at once and some rows must agree"
    found: Verdicts = {snapshot.names[row]: None for row in rows[mask].tolist()}
    for status, refused in plugin.refusals(state, info, rows[~mask]):
        for row in refused.tolist():
            assert snapshot.names[row] not in found, "each refused row has one reason, others have none"
            found[snapshot.names[row]] = refusal(status)
    return found


def refusal(status: Status) -> Refusal:
    return Refusal(CODES[status.code.name], status.reasons)


def scores(world: World, plugin: Plugin, pod: Pod, candidates: list[Node]) -> dict[str, tuple[int, int]] | None:
    """(raw, normalised) of every candidate; None when the plugin does not score this pod."""
    state, info = CycleState(), PodInfo(pod)
    snapshot = world.snapshot
    rows: RowArray = np.array([snapshot.row_of[node.metadata.name] for node in candidates], dtype=np.intp)
    if isinstance(plugin, PreScorePlugin):
        answer = plugin.pre_score(state, info, rows)
        if answer is not None:
            assert answer.is_skip, answer
            return None
    assert isinstance(plugin, ScorePlugin)
    raw = plugin.score(state, info, rows)
    assert raw.dtype == np.int64
    before = raw.tolist()
    if plugin.normalize is Normalize.CUSTOM:
        after = plugin.normalize_scores(state, info, raw.copy(), rows)
    elif plugin.normalize is Normalize.NONE:
        after = raw
    else:
        after = default_normalize(raw, plugin.normalize is Normalize.REVERSED)
    names = [node.metadata.name for node in candidates]
    return {name: (one, other) for name, one, other in zip(names, before, after.tolist(), strict=True)}


def framework_of(world: World, spec: ProfileSpec | None = None) -> Framework:
    """All plugins of a profile in a world; without one, upstream's defaults."""
    services = Services(
        snapshot=world.handle.snapshot,
        client=None,  # type: ignore[arg-type]
        clock=world.handle.clock,
        informer=world.handle.informer,
        recorder=lambda name: None,
        nominator=PodNominator(),
        activate=lambda pods: None,
        random=random.Random(0),
    )
    return Framework(spec or build(default()).profiles[0], services)
