"""Pools of devices as a node sees them: the newest generation of each, complete or not, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from pybernetes.api.core.nodeaffinity import node_selector_matches
from pybernetes.api.core.v1 import Node
from pybernetes.api.core.v1.affinity import NodeSelector
from pybernetes.api.quantity import parse
from pybernetes.api.resource.v1 import Counter, Device, ResourceSlice, ResourceSliceSpec


class PoolID(NamedTuple):
    """A pool is a driver's."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    """A device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


@dataclass(eq=False, slots=True)
class PoolDevice:
    """A device, and where it is from."""

    id: DeviceID
    device: Device
    spec: ResourceSliceSpec
    pool: Pool


Counters = dict[str, dict[str, Decimal]]
"""Amounts by counter set and counter."""


@dataclass(eq=False, slots=True)
class Pool:
    """A pool, or that there is one which cannot be used now."""

    id: PoolID
    incomplete: bool = False
    """Its slices are just being replaced."""
    invalid: bool = False
    """Whether its slices contradict each other."""
    devices: list[PoolDevice] = field(default_factory=list)
    """Those that the node may use."""
    others: list[PoolDevice] = field(default_factory=list)
    """Those of other nodes; they use the same counters."""
    counters: Counters = field(default_factory=dict)
    """The counters that devices of the pool share."""


class Slices:
    """All slices, sorted by node once for all nodes that are asked about."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._all: dict[PoolID, list[ResourceSlice]] = {}
        self._of_node: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        for each in slices:
            spec = _spec(each)
            self._all.setdefault(_pool_id(spec), []).append(each)
            if spec.node_name and not spec.shared_counters:
                self._of_node.setdefault(spec.node_name, []).append(each)
            else:
                self._shared.append(each)

    def pools(self, node: Node) -> list[Pool]:
        """The pools of a node, by driver and name; those whose devices have binding conditions come last."""
        name = (node.metadata.name if node.metadata else None) or ""
        newest: dict[PoolID, list[ResourceSlice]] = {}
        for each in (*self._of_node.get(name, ()), *self._shared):
            if _is_relevant(_spec(each), node):
                known = newest.setdefault(_pool_id(_spec(each)), [])
                if known and _generation(each) > _generation(known[0]):
                    known.clear()
                if not known or _generation(each) == _generation(known[0]):
                    known.append(each)
        found = [pool for id, slices in newest.items() if (pool := self._pool(id, slices)) is not None]
        return sorted(found, key=lambda pool: (_has_conditions(pool), pool.id))

    def _pool(self, id: PoolID, slices: list[ResourceSlice]) -> Pool | None:
        generation = _generation(slices[0])
        pool_spec = _spec(slices[0]).pool
        count = (pool_spec.resource_slice_count if pool_spec else None) or 0
        rest: list[ResourceSlice] = []
        if len(slices) != count:
            everything = self._all[id]
            if any(_generation(each) > generation for each in everything):
                return None  # what the node sees is outdated
            current = [each for each in everything if _generation(each) == generation]
            if len(current) != count:
                return Pool(id, incomplete=True)
            rest = [each for each in current if each not in slices]
        pool = Pool(id)
        pool.devices = _devices(pool, sorted(slices, key=_name))
        pool.others = _devices(pool, rest)
        pool.invalid = not _read_counters(pool, slices) or not _names_differ(pool) or not _counters_exist(pool)
        return pool


def node_matches(node: Node, name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
    """Whether a slice or device that says this is for the node."""
    if name:
        return node.metadata is not None and node.metadata.name == name
    return bool(all_nodes) or (selector is not None and node_selector_matches(selector, node))


def amount(counter: Counter) -> Decimal:
    """How much it is."""
    return parse(str(counter.value or "0")).decimal()


def _is_relevant(spec: ResourceSliceSpec, node: Node) -> bool:
    if spec.shared_counters:
        return True
    if spec.per_device_node_selection:
        return any(
            node_matches(node, each.node_name, each.all_nodes, each.node_selector) for each in spec.devices or ()
        )
    return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)


def _devices(pool: Pool, slices: list[ResourceSlice]) -> list[PoolDevice]:
    return [
        PoolDevice(DeviceID(pool.id.driver, pool.id.pool, device.name or ""), device, _spec(each), pool)
        for each in slices
        for device in _spec(each).devices or ()
    ]


def _read_counters(pool: Pool, slices: list[ResourceSlice]) -> bool:
    for each in slices:
        for counters in _spec(each).shared_counters or ():
            if (counters.name or "") in pool.counters:
                return False
            pool.counters[counters.name or ""] = {
                name: amount(counter) for name, counter in (counters.counters or {}).items()
            }
    return True


def _names_differ(pool: Pool) -> bool:
    names = [each.id.device for each in pool.devices]
    return len(set(names)) == len(names)


def _counters_exist(pool: Pool) -> bool:
    return all(
        (use.counter_set or "") in pool.counters
        and all(name in pool.counters[use.counter_set or ""] for name in use.counters or ())
        for each in (*pool.devices, *pool.others)
        for use in each.device.consumes_counters or ()
    )


def _has_conditions(pool: Pool) -> bool:
    return any(each.device.binding_conditions for each in pool.devices)


def _spec(each: ResourceSlice) -> ResourceSliceSpec:
    return each.spec or ResourceSliceSpec()


def _pool_id(spec: ResourceSliceSpec) -> PoolID:
    return PoolID(spec.driver or "", (spec.pool.name if spec.pool else None) or "")


def _generation(each: ResourceSlice) -> int:
    pool = _spec(each).pool
    return (pool.generation if pool else None) or 0


def _name(each: ResourceSlice) -> str:
    return (each.metadata.name if each.metadata else None) or ""
