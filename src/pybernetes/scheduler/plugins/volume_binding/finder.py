"""Where the claims of a pod can get their volumes, for all rows at once, and which they get on a given row.

Most volumes are for any node or for one: the former are the same everywhere, the latter are looked at on their rows
only. So rows fall into few groups: those with the same claims left for which a volume has to be made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pybernetes.api import labels
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.v1.affinity import NodeSelectorRequirement, NodeSelectorTerm
from pybernetes.api.core.volumebinding import (
    NO_PROVISIONER,
    SELECTED_NODE,
    annotations_of,
    claim_class,
    volume_size,
    wanted_size,
)
from pybernetes.api.meta.v1 import LabelSelector
from pybernetes.api.quantity import parse
from pybernetes.api.storage.v1 import CSIDriver, CSIStorageCapacity, StorageClass
from pybernetes.client.informer import Informer

from ...framework import Mask, RowArray
from ...snapshot.selectors import match_node_selector, match_term
from ...snapshot.snapshot import Snapshot
from ..assumed import Assumed
from .matching import suitable

CLASS_INDEX = "class"


@dataclass(slots=True)
class PodClaims:
    """The claims of a pod, sorted out."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    waiting: list[PersistentVolumeClaim] = field(default_factory=list)
    """Unbound, to be bound where the pod goes; smallest first."""


@dataclass(slots=True)
class Answer:
    """For each row what is in the way; a row is fine where nothing is."""

    node_conflict: Mask
    """A bound volume cannot be reached from there."""
    missing: Mask
    """A bound volume does not exist."""
    no_volume: Mask
    """There is no volume for a claim, nor can one be made."""
    no_space: Mask
    """There is not enough space to make one."""

    @property
    def fine(self) -> Mask:
        """Where nothing is in the way."""
        return ~(self.node_conflict | self.missing | self.no_volume | self.no_space)


class _Candidates:
    """The volumes that suit one claim: those for any node, and those for some rows, both smallest first."""

    def __init__(self, anywhere: list[PersistentVolume], by_row: dict[int, list[PersistentVolume]]) -> None:
        self.anywhere = anywhere
        self.by_row = by_row

    def best(self, row: int, taken: set[str]) -> PersistentVolume | None:
        """The smallest for a row that is not taken."""
        found: PersistentVolume | None = None
        for volumes in (self.by_row.get(row, ()), self.anywhere):
            for volume in volumes:
                if _name(volume) not in taken:
                    if found is None or volume_size(volume) < volume_size(found):
                        found = volume
                    break
        return found


class Finder:
    """Answers for one snapshot and its caches; keeps nothing between two questions."""

    def __init__(
        self,
        snapshot: Snapshot,
        volumes: Assumed[PersistentVolume],
        classes: Informer[StorageClass],
        drivers: Informer[CSIDriver],
        capacities: Informer[CSIStorageCapacity],
    ) -> None:
        self._snapshot = snapshot
        self._volumes = volumes
        self._classes = classes
        self._drivers = drivers
        self._capacities = capacities

    def find(self, claims: PodClaims, rows: RowArray) -> Answer:
        """The conflicts of the pod's volumes on these rows."""
        node_conflict, missing = self._check_bound(claims.bound, rows)
        no_volume = np.zeros(len(rows), dtype=np.bool_)
        no_space = np.zeros(len(rows), dtype=np.bool_)
        here = np.ones(len(rows), dtype=np.bool_)
        to_make, to_match = _by_selected_node(claims.waiting)
        for claim in to_make:
            chosen = self._snapshot.row_of.get(annotations_of(claim)[SELECTED_NODE], -1)
            here &= rows == chosen
        no_volume |= ~here
        for left, group in self._groups(to_match, rows, here):
            no_volume[group], no_space[group] = self._check_making([*to_make, *left], rows[group])
        return Answer(node_conflict, missing, no_volume, no_space)

    def choose(
        self, claims: PodClaims, row: int
    ) -> tuple[list[tuple[PersistentVolume, PersistentVolumeClaim]], list[PersistentVolumeClaim]]:
        """On a row that is fine: which volumes which claims get, and for which claims one has to be made."""
        to_make, to_match = _by_selected_node(claims.waiting)
        candidates = [self._candidates(claim) for claim in to_match]
        chosen = _match(candidates, row)
        pairs = [(volume, claim) for volume, claim in zip(chosen, to_match, strict=True) if volume is not None]
        left = [claim for volume, claim in zip(chosen, to_match, strict=True) if volume is None]
        return pairs, [*to_make, *left]

    def _check_bound(self, claims: Sequence[PersistentVolumeClaim], rows: RowArray) -> tuple[Mask, Mask]:
        conflict = np.zeros(len(rows), dtype=np.bool_)
        pending = np.ones(len(rows), dtype=np.bool_)
        for claim in claims:
            volume = self._volumes.named((claim.spec.volume_name if claim.spec else None) or "")
            if volume is None:
                return conflict, pending
            affinity = volume.spec.node_affinity if volume.spec else None
            if affinity is not None and affinity.required is not None:
                reached = match_node_selector(self._snapshot, affinity.required, rows)
                conflict |= pending & ~reached
                pending &= reached
        return conflict, np.zeros(len(rows), dtype=np.bool_)

    def _groups(
        self, claims: list[PersistentVolumeClaim], rows: RowArray, here: Mask
    ) -> list[tuple[list[PersistentVolumeClaim], Mask]]:
        """Rows (of those `here`) by the claims that no volume is left for."""
        candidates = [self._candidates(claim) for claim in claims]
        special = {row for each in candidates for row in each.by_row}
        by_left: dict[tuple[int, ...], list[int]] = {}
        elsewhere = here.copy()
        if special:
            for position, row in enumerate(rows.tolist()):
                if here[position] and row in special:
                    elsewhere[position] = False
                    by_left.setdefault(_left(_match(candidates, row)), []).append(position)
        groups: list[tuple[list[PersistentVolumeClaim], Mask]] = []
        for left, positions in by_left.items():
            mask = np.zeros(len(rows), dtype=np.bool_)
            mask[positions] = True
            groups.append(([claims[index] for index in left], mask))
        if elsewhere.any():
            groups.append(([claims[index] for index in _left(_match(candidates, -1))], elsewhere))
        return groups

    def _candidates(self, claim: PersistentVolumeClaim) -> _Candidates:
        anywhere: list[PersistentVolume] = []
        by_row: dict[int, list[PersistentVolume]] = {}
        rows_by_label: dict[str, dict[int, list[int]]] = {}
        for volume in suitable(claim, self._volumes.by_index(CLASS_INDEX, claim_class(claim))):
            affinity = volume.spec.node_affinity if volume.spec else None
            if affinity is None or affinity.required is None:
                anywhere.append(volume)
                continue
            simple = _one_value(affinity.required.node_selector_terms or ())
            if simple is None:
                found = np.flatnonzero(match_node_selector(self._snapshot, affinity.required, self._snapshot.all_rows))
                rows = found.tolist()
            else:  # nearly every local volume: looked up instead of compared with every row
                key, value = simple
                if key not in rows_by_label:
                    rows_by_label[key] = _rows_by_value(self._snapshot, key)
                rows = rows_by_label[key].get(self._snapshot.value_id(value), [])
            for row in rows:
                by_row.setdefault(row, []).append(volume)
        return _Candidates(anywhere, by_row)

    def _check_making(self, claims: Sequence[PersistentVolumeClaim], rows: RowArray) -> tuple[Mask, Mask]:
        """Where volumes cannot be made for all the claims, and where there is no space for them."""
        cannot = np.zeros(len(rows), dtype=np.bool_)
        no_space = np.zeros(len(rows), dtype=np.bool_)
        pending = np.ones(len(rows), dtype=np.bool_)
        for claim in claims:
            name = claim_class(claim)
            found = self._classes.named(name)
            if found is None:
                raise LookupError(f'failed to find storage class "{name}"')
            if found.provisioner in (None, "", NO_PROVISIONER):
                return cannot | pending, no_space
            reached = self._reached(found, rows)
            cannot |= pending & ~reached
            pending &= reached
            space = self._has_space(found, claim, rows)
            no_space |= pending & ~space
            pending &= space
        return cannot, no_space

    def _reached(self, found: StorageClass, rows: RowArray) -> Mask:
        mask = np.zeros(len(rows), dtype=np.bool_)
        terms = found.allowed_topologies or ()
        if not terms:
            return ~mask
        for term in terms:
            if term.match_label_expressions:
                wanted = [
                    NodeSelectorRequirement(key=each.key, operator="In", values=each.values)
                    for each in term.match_label_expressions
                ]
                mask |= match_term(self._snapshot, NodeSelectorTerm(match_expressions=wanted), rows)
        return mask

    def _has_space(self, found: StorageClass, claim: PersistentVolumeClaim, rows: RowArray) -> Mask:
        everywhere = np.ones(len(rows), dtype=np.bool_)
        driver = self._drivers.named(found.provisioner or "")
        requests = claim.spec.resources.requests if claim.spec and claim.spec.resources else None
        if driver is None or not (driver.spec and driver.spec.storage_capacity) or "storage" not in (requests or {}):
            return everywhere
        needed = wanted_size(claim).value()
        mask = ~everywhere
        for each in self._capacities.items():
            limit = volume_limit(each)
            if (
                each.storage_class_name == (found.metadata.name if found.metadata else None)
                and limit is not None
                and limit >= needed
                and each.node_topology is not None
            ):
                mask |= match_label_selector(self._snapshot, each.node_topology, rows)
        return mask


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made; what the driver says of single volumes is better than what it has in all."""
    value = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return None if value is None else parse(str(value)).value()


def match_label_selector(snapshot: Snapshot, selector: LabelSelector, rows: RowArray) -> Mask:
    """Which nodes have labels that a selector of labels (not of nodes) selects; none if it is malformed."""
    try:
        wanted = labels.from_label_selector(selector)
    except labels.SelectorError:
        return np.zeros(len(rows), dtype=np.bool_)
    if wanted.empty():
        return np.ones(len(rows), dtype=np.bool_)
    expressions = [
        NodeSelectorRequirement(key=key, operator="In", values=[value])
        for key, value in (selector.match_labels or {}).items()
    ]
    expressions += [
        NodeSelectorRequirement(key=each.key, operator=each.operator, values=each.values)
        for each in selector.match_expressions or ()
    ]
    return match_term(snapshot, NodeSelectorTerm(match_expressions=expressions), rows)


def _by_selected_node(
    claims: Sequence[PersistentVolumeClaim],
) -> tuple[list[PersistentVolumeClaim], list[PersistentVolumeClaim]]:
    """Those for which a volume is being made for some node, and the others."""
    making = [each for each in claims if SELECTED_NODE in annotations_of(each)]
    return making, [each for each in claims if SELECTED_NODE not in annotations_of(each)]


def _match(candidates: Sequence[_Candidates], row: int) -> list[PersistentVolume | None]:
    taken: set[str] = set()
    chosen: list[PersistentVolume | None] = []
    for each in candidates:
        volume = each.best(row, taken)
        if volume is not None:
            taken.add(_name(volume))
        chosen.append(volume)
    return chosen


def _left(chosen: Sequence[PersistentVolume | None]) -> tuple[int, ...]:
    return tuple(index for index, volume in enumerate(chosen) if volume is None)


def _one_value(terms: Sequence[NodeSelectorTerm]) -> tuple[str, str] | None:
    """The label and value, if that is all the terms ask for."""
    expressions = terms[0].match_expressions if len(terms) == 1 and not terms[0].match_fields else None
    if expressions and len(expressions) == 1:
        only = expressions[0]
        if only.operator == "In" and only.values and len(only.values) == 1:
            return only.key or "", only.values[0]
    return None


def _rows_by_value(snapshot: Snapshot, key: str) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row, value in enumerate(snapshot.label(key)[: snapshot.size].tolist()):
        if value:
            found.setdefault(value, []).append(row)
    return found


def _name(volume: PersistentVolume) -> str:
    return (volume.metadata.name if volume.metadata else None) or ""
