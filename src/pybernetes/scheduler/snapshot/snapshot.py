"""The cluster as columns: one row a node, one array for each thing that plugins ask about nodes.

All changes go through `set_node`, `remove_node`, `add_pod` and `remove_pod`, each of which costs as much as what
changed and not as much as the cluster. Columns are arrays longer than there are nodes (`capacity`); read them by
`column[rows]` with rows below `size`. Rows of nodes that went away are dead (`alive` is False) until they are used
again, so a row number means a node only between two awaits.

A pod may be bound to a node that we do not know: its row exists, dead, with the pod on it.

Nothing grows with what was once there: when most ids of label values and taints belong to nodes that went, all are
renumbered (and `node_changes` says that everything may have changed); unused columns are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from pybernetes.api.core.podresources import Quantities
from pybernetes.api.core.v1 import Node
from pybernetes.api.core.v1.affinity import Taint
from pybernetes.api.quantity import parse

from ..framework.plugin import Mask, RowArray, Rows
from ..framework.podinfo import PodInfo, amount_of
from .counters import PodCounters
from .journal import Journal
from .nodeinfo import NodeInfo, claims, host_ports

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
G = TypeVar("G", bound=np.generic)

KEPT_IDS = 1024
"""Ids of label values and sets of taints up to which none that no node has any more are looked for."""
KEPT_COLUMNS = 256
"""Columns of labels that are kept: pods name the labels. Beyond it all are dropped and made when asked for again."""

ABSENT = 0
"""The value id of a label that a node does not have."""
UNKNOWN = -1
"""The value id of a text that is no label value of any node."""


class Tracker(Protocol):
    """Keeps sums of its own about the pods on rows. Called after the snapshot has changed, also in a what-if."""

    def grow(self, capacity: int) -> None:
        """Columns are longer now."""
        ...

    def pod_added(self, pod: PodInfo, row: int) -> None:
        """A pod came to this row."""
        ...

    def pod_removed(self, pod: PodInfo, row: int) -> None:
        """A pod left this row."""
        ...

    def node_changed(self, row: int) -> None:
        """The node of this row came, changed or went."""
        ...


class Snapshot:
    """Everything that plugins know of nodes and of the pods on them."""

    def __init__(self) -> None:
        self.capacity = 64
        self.size = 0
        """Rows in use: rows are 0..size-1, some of them dead."""
        self.num_nodes = 0
        """How many rows are alive."""
        self.num_pods = 0
        self.row_of: dict[str, int] = {}
        """By the node's name; dead rows with pods too."""
        self._names: list[str] = []
        self._names_shared = False
        self._infos: list[NodeInfo | None] = []
        self._free: list[int] = []
        self.alive: Mask = np.zeros(self.capacity, dtype=np.bool_)
        self.unschedulable: Mask = np.zeros(self.capacity, dtype=np.bool_)
        """`spec.unschedulable`"""
        self.taints: Int32 = np.zeros(self.capacity, dtype=np.int32)
        """Index into `taint_sets`; 0 = none."""
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        """Another list when they are numbered anew."""
        self._taint_ids: dict[tuple[tuple[str, str, str], ...], int] = {(): 0}
        self.pod_count: Int64 = np.zeros(self.capacity, dtype=np.int64)
        self.allowed_pods: Int64 = np.zeros(self.capacity, dtype=np.int64)
        self.nonzero_cpu: Int64 = np.zeros(self.capacity, dtype=np.int64)
        """The CPU requests as scoring counts them, in thousandths."""
        self.nonzero_memory: Int64 = np.zeros(self.capacity, dtype=np.int64)
        self._allocatable: dict[str, Int64] = {}
        self._requested: dict[str, Int64] = {}
        self._nothing: Int64 = np.zeros(self.capacity, dtype=np.int64)
        """The column of a resource that no node has and no pod asks for. Never written."""
        self._kept_ids = KEPT_IDS
        self._kept_resources = KEPT_COLUMNS
        self._labels: dict[str, Int32] = {}
        self._value_ids: dict[str, int] = {}
        self.label_values: list[str | None] = [None]
        """The texts of value ids. Another list when values are numbered anew."""
        self.image_nodes: dict[str, int] = {}
        """On how many nodes an image is."""
        self.image_sizes: dict[str, int] = {}
        """As the first node with the image reported it; upstream knows one size for all nodes."""
        self.rows_with_ports: dict[int, None] = {}
        """Rows on which some pod uses a host port."""
        self.node_changes = Journal()
        """Rows whose node came, changed or went."""
        self.pod_changes = Journal()
        """Rows to which a pod came or from which one went."""
        self.counters = PodCounters(self)
        self._trackers: list[Tracker] = [self.counters]

    # -- reading

    @property
    def all_rows(self) -> slice:
        """All rows, dead ones too, as `rows`."""
        return slice(0, self.size)

    @property
    def names(self) -> list[str]:
        """The nodes' names by row ("" = not in use). Not changed any more once you have it: keep it if you like."""
        self._names_shared = True
        return self._names

    def count(self, rows: Rows) -> int:
        """How many rows these are."""
        return self.size if isinstance(rows, slice) else len(rows)

    def row_numbers(self, rows: Rows) -> RowArray:
        """The rows as an array of numbers."""
        return np.arange(self.size, dtype=np.intp) if isinstance(rows, slice) else rows

    def info(self, row: int) -> NodeInfo:
        """The node object of a row and the pods on it."""
        found = self._infos[row]
        assert found is not None
        return found

    def node(self, name: str) -> Node | None:
        """A node by its name."""
        row = self.row_of.get(name)
        return None if row is None else self.info(row).node

    def infos(self) -> Iterator[NodeInfo]:
        """All nodes, unknown ones that have pods too."""
        return (info for info in self._infos if info is not None)

    def allocatable(self, resource: str) -> Int64:
        """How much of a resource the nodes have for pods; zeros if none has heard of it."""
        return self._allocatable.get(resource, self._nothing)

    def requested(self, resource: str) -> Int64:
        """How much of a resource the pods on the nodes have asked for."""
        return self._requested.get(resource, self._nothing)

    def label(self, key: str) -> Int32:
        """The nodes' values of a label as ids; equal ids, equal texts; 0 = the node has no such label.

        Made when first asked for, kept up to date from then on. This is also what topology domains are.
        """
        found = self._labels.get(key)
        if found is None:
            if len(self._labels) >= KEPT_COLUMNS:
                self._labels.clear()
            found = self._labels[key] = np.zeros(self.capacity, dtype=np.int32)
            for info in self.infos():
                value = info.labels.get(key)
                if value is not None:
                    found[info.row] = self._intern(value)
        return found

    def value_id(self, text: str) -> int:
        """The id of a label's value; -1 (equal to none) when no node has it under any key asked for so far."""
        return self._value_ids.get(text, UNKNOWN)

    # -- following

    def track(self, tracker: Tracker) -> None:
        """Add a tracker that keeps sums of its own; it gets all pods that are already there."""
        self._trackers.append(tracker)
        tracker.grow(self.capacity)
        for info in self.infos():
            tracker.node_changed(info.row)
            for pod in info.pods.values():
                tracker.pod_added(pod, info.row)

    # -- changing

    def set_node(self, node: Node) -> int:
        """A node came or changed."""
        metadata, status, spec = node.metadata, node.status, node.spec
        name = (metadata.name if metadata else None) or ""
        allocatable = quantities(status.allocatable if status else None)
        row = self._row(name)
        info = self.info(row)
        if not self.alive[row]:
            self.alive[row] = True
            self.num_nodes += 1
        info.node = node
        self.unschedulable[row] = bool(spec and spec.unschedulable)
        self.taints[row] = self._taint_set((spec.taints if spec else None) or [])
        for name in self._allocatable.keys() - allocatable.keys():
            self._allocatable[name][row] = 0
        for name, value in allocatable.items():
            self._column(self._allocatable, name)[row] = amount_of(name, value)
        self.allowed_pods[row] = amount_of("pods", allocatable["pods"]) if "pods" in allocatable else 0
        labels = info.labels
        for key, column in self._labels.items():
            value_text = labels.get(key)
            column[row] = ABSENT if value_text is None else self._intern(value_text)
        self._set_images(info, node)
        self._node_changed(row)
        self._compact_ids()
        return row

    def remove_node(self, name: str) -> None:
        """A node went away; pods that are bound to it stay on the dead row."""
        row = self.row_of.get(name)
        if row is None or not self.alive[row]:
            return
        info = self.info(row)
        self._set_images(info, None)
        info.node = None
        self.alive[row] = False
        self.num_nodes -= 1
        self.unschedulable[row] = False
        self.taints[row] = 0
        self.allowed_pods[row] = 0
        for column in self._allocatable.values():
            column[row] = 0
        for labels in self._labels.values():
            labels[row] = ABSENT
        self._node_changed(row)
        self._free_if_empty(info)

    def add_pod(self, pod: PodInfo, node_name: str) -> int:
        """A pod is on a node now (or assumed to be)."""
        row = self._row(node_name)
        self._put(pod, row)
        self.pod_changes.note(row)
        return row

    def remove_pod(self, pod: PodInfo, node_name: str) -> None:
        """A pod is not on the node any more. `pod` must be the very PodInfo that was added."""
        row = self.row_of[node_name]
        self._take(pod, row)
        self.pod_changes.note(row)
        self._free_if_empty(self.info(row))

    @contextmanager
    def what_if(self) -> Iterator[WhatIf]:
        """Pods may come and go inside of the `with`; at its end everything is as it was. No await inside of it."""
        change = WhatIf(self)
        try:
            yield change
        finally:
            change.undo()

    # -- inside

    def _put(self, pod: PodInfo, row: int) -> None:
        info = self.info(row)
        info.pods[pod.uid] = pod
        if pod.has_affinity:
            info.pods_with_affinity[pod.uid] = pod
        self._count(pod, row, info, 1)
        for tracker in self._trackers:
            tracker.pod_added(pod, row)

    def _take(self, pod: PodInfo, row: int) -> None:
        info = self.info(row)
        del info.pods[pod.uid]
        info.pods_with_affinity.pop(pod.uid, None)
        self._count(pod, row, info, -1)
        for tracker in self._trackers:
            tracker.pod_removed(pod, row)

    def _count(self, pod: PodInfo, row: int, info: NodeInfo, sign: int) -> None:
        ports, volumes = list(host_ports(pod)), list(claims(pod))  # what may fail comes before what is changed
        for name, amount in pod.requests.items():
            self._column(self._requested, name)[row] += sign * amount
        cpu, memory = pod.nonzero_requests
        self.nonzero_cpu[row] += sign * cpu
        self.nonzero_memory[row] += sign * memory
        self.pod_count[row] += sign
        self.num_pods += sign
        for port in ports:
            _tally(info.ports, port, sign)
        if info.ports:
            self.rows_with_ports[row] = None
        else:
            self.rows_with_ports.pop(row, None)
        for claim in volumes:
            _tally(info.claims, claim, sign)

    def _row(self, name: str) -> int:
        row = self.row_of.get(name)
        if row is not None:
            return row
        if self._names_shared:
            self._names = list(self._names)
            self._names_shared = False
        if self._free:
            row = self._free.pop()
            self._names[row] = name
            self._infos[row] = NodeInfo(name, row)
        else:
            row = self.size
            if row == self.capacity:
                self._grow()
            self.size += 1
            self._names.append(name)
            self._infos.append(NodeInfo(name, row))
        self.row_of[name] = row
        return row

    def _free_if_empty(self, info: NodeInfo) -> None:
        if info.node is None and not info.pods:
            if self._names_shared:
                self._names = list(self._names)
                self._names_shared = False
            self._names[info.row] = ""
            self._infos[info.row] = None
            del self.row_of[info.name]
            self._free.append(info.row)

    def _node_changed(self, row: int) -> None:
        self.node_changes.note(row)
        for tracker in self._trackers:
            tracker.node_changed(row)

    def _set_images(self, info: NodeInfo, node: Node | None) -> None:
        for name in info.images:
            _tally(self.image_nodes, name, -1)
            if name not in self.image_nodes:
                del self.image_sizes[name]
        info.images = set()
        for image in (node.status.images if node and node.status else None) or ():
            for name in image.names or ():
                if name not in info.images:
                    info.images.add(name)
                    _tally(self.image_nodes, name, 1)
                    self.image_sizes.setdefault(name, image.size_bytes or 0)

    def _taint_set(self, taints: list[Taint]) -> int:
        key = tuple((each.key or "", each.value or "", each.effect or "") for each in taints)
        found = self._taint_ids.get(key)
        if found is None:
            found = self._taint_ids[key] = len(self.taint_sets)
            self.taint_sets.append(tuple(taints))
        return found

    def _intern(self, value: str) -> int:
        found = self._value_ids.get(value)
        if found is None:
            found = self._value_ids[value] = len(self.label_values)
            self.label_values.append(value)
        return found

    def _column(self, columns: dict[str, Int64], name: str) -> Int64:
        """The column of a resource, to be written."""
        column = columns.get(name)
        if column is None:
            if len(self._allocatable) + len(self._requested) >= self._kept_resources:
                self._compact_resources()
            column = columns[name] = np.zeros(self.capacity, dtype=np.int64)
        return column

    def _compact_resources(self) -> None:
        """Drop the columns of resources that no node has and no pod asks for."""
        for columns in (self._allocatable, self._requested):
            for name in [name for name, column in columns.items() if not column.any()]:
                del columns[name]
        self._kept_resources = max(KEPT_COLUMNS, 2 * (len(self._allocatable) + len(self._requested)))

    def _compact_ids(self) -> None:
        """Number label values and sets of taints anew when most of them belong to nodes that went."""
        if len(self.label_values) + len(self.taint_sets) < self._kept_ids:
            return
        self._value_ids, self.label_values = {}, [None]
        keys = list(self._labels)
        self._labels.clear()
        for key in keys:
            self.label(key)
        self._taint_ids, self.taint_sets = {(): 0}, [()]
        for info in self.infos():
            spec = info.node.spec if info.node else None
            self.taints[info.row] = self._taint_set((spec.taints if spec else None) or [])
        self._kept_ids = max(KEPT_IDS, 2 * (len(self.label_values) + len(self.taint_sets)))
        self.node_changes.forget()

    def _grow(self) -> None:
        self.capacity *= 2
        self._nothing = np.zeros(self.capacity, dtype=np.int64)
        for name in _COLUMNS:
            setattr(self, name, _longer(getattr(self, name), self.capacity))
        for amounts in (self._allocatable, self._requested):
            for name, column in amounts.items():
                amounts[name] = _longer(column, self.capacity)
        for key, values in self._labels.items():
            self._labels[key] = _longer(values, self.capacity)
        for tracker in self._trackers:
            tracker.grow(self.capacity)


_COLUMNS = (
    "alive",
    "allowed_pods",
    "nonzero_cpu",
    "nonzero_memory",
    "pod_count",
    "taints",
    "unschedulable",
)


class WhatIf:
    """Pods that come and go for the sake of argument."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._done: list[tuple[bool, PodInfo, int]] = []

    def add(self, pod: PodInfo, row: int) -> None:
        """If this pod were here."""
        self._snapshot._put(pod, row)
        self._done.append((True, pod, row))

    def remove(self, pod: PodInfo, row: int) -> None:
        """If this pod were not here."""
        self._snapshot._take(pod, row)
        self._done.append((False, pod, row))

    def undo(self) -> None:
        """As it was; called at the end of the `with`."""
        while self._done:
            added, pod, row = self._done.pop()
            if added:
                self._snapshot._take(pod, row)
            else:
                self._snapshot._put(pod, row)


def quantities(amounts: Mapping[str, object] | None) -> Quantities:
    """A resource list, parsed."""
    return {name: parse(str(value)) for name, value in (amounts or {}).items()}


def _tally(counts: dict[object, int] | dict[str, int] | dict[tuple[str, str, int], int], key: object, by: int) -> None:
    count = counts.get(key, 0) + by  # type: ignore[call-overload]
    if count:
        counts[key] = count  # type: ignore[index]
    else:
        counts.pop(key, None)  # type: ignore[call-overload]


def _longer(column: npt.NDArray[G], capacity: int) -> npt.NDArray[G]:
    result = np.zeros(capacity, dtype=column.dtype)
    result[: len(column)] = column
    return result
