"""The smallest change that would make a pod fit, found by trying.

Each idea is one change to the pod (tolerate a taint, ask for less, drop a constraint) or to one node (a label, more
memory, uncordon). It is made, on a copy of the pod or in the snapshot for a moment, and all filters are asked again;
changes that make the pod fit are reported. Ideas come from what the pod demands and what nodes lack, not from messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from pybernetes.api.core.tolerations import tolerates
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.core.v1.affinity import Taint, Toleration
from pybernetes.client.keys import copy

from ..framework.plugin import RowArray
from ..framework.podinfo import PodInfo
from ..framework.runtime import Framework
from ..framework.status import Status
from .edits import Edit, add_label, amount_text, edited, enlarge, quantity, reduced, uncordon, untaint
from .verdicts import Verdicts, judge

MOST_TRIALS: Final = 120
"""Each is a fraction of a millisecond, in which the scheduler does nothing else."""
ROWS_TRIED: Final = 20
"""Of nodes that are refused with the same words."""
MOST_TOLD: Final = 10

# How much is asked of people, from little to much; within one, whatever helps on more nodes comes first.
MORE_ON_NODE, LABEL, LESS_FOR_POD, UNCORDON, TOLERATE, UNTAINT, DROP = range(7)


@dataclass(slots=True, frozen=True)
class Change:
    """Something that would help, and on which nodes the pod would then fit."""

    text: str
    nodes: tuple[str, ...]
    effort: int
    part: float = 0.0
    """Of an amount: how large a part of what the pod asks for is missing."""

    @property
    def order(self) -> tuple[float, float, int, str]:
        """Smaller changes first."""
        return self.effort, self.part, -len(self.nodes), self.text


def smallest(framework: Framework, pod: PodInfo, verdicts: Verdicts) -> list[Change]:
    """Single changes that make the pod fit somewhere, the smallest first. `verdicts` are of the pod as it is."""
    trials = _Trials(framework, pod, verdicts)
    found = [*trials.of_the_pod(), *trials.of_nodes()]
    return sorted(found, key=lambda change: change.order)[:MOST_TOLD]


@dataclass(slots=True, frozen=True)
class Closest:
    """The node that the fewest plugins refuse: for when no single change helps."""

    node: str
    refusals: list[Status]
    changes: list[str]
    """Changes that together would make the pod fit; empty if none were found."""


def closest(framework: Framework, pod: PodInfo, verdicts: Verdicts) -> Closest | None:
    """The node that needs the fewest changes, and which."""
    counts = verdicts.number_of_refusals()
    if not counts:
        return None
    row = min(counts, key=lambda each: (counts[each], framework.snapshot.names[each]))
    changes = _Trials(framework, pod, verdicts).all_of(row)
    return Closest(framework.snapshot.names[row], verdicts.of(row), changes)


class _Trials:
    def __init__(self, framework: Framework, pod: PodInfo, verdicts: Verdicts) -> None:
        self._framework = framework
        self._snapshot = framework.snapshot
        self._pod = pod
        self._verdicts = verdicts
        self._left = MOST_TRIALS
        counts = verdicts.number_of_refusals()
        self._by_one = [rows[[counts[row] == 1 for row in rows.tolist()]] for _, rows in verdicts.groups if len(rows)]
        """Rows that one plugin alone refuses, those with the same words together: only there can a change help."""

    # -- the pod

    def of_the_pod(self) -> Iterator[Change]:
        """Changes of the pod, each tried on all nodes."""
        for text, effort, part, variant in self._variants():
            if self._left <= 0:
                return
            self._left -= 1
            verdicts = judge(self._framework, PodInfo(variant))
            nodes = tuple(self._snapshot.names[row] for row in verdicts.rows[verdicts.feasible].tolist())
            if nodes:
                yield Change(text, nodes, effort, part)

    def _variants(self) -> Iterator[tuple[str, int, float, Pod]]:
        yield from self._less()
        for taint in self._taints():
            variant = copy(self._pod.pod)
            assert variant.spec is not None
            one = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
            variant.spec.tolerations = [*(variant.spec.tolerations or ()), one]
            yield f"tolerate the taint {_taint_text(taint)}", TOLERATE, 0.0, variant
        yield from self._without()

    def _less(self) -> Iterator[tuple[str, int, float, Pod]]:
        """Ask for as much as the roomiest node that is fine otherwise has left."""
        asked = self._verdicts.state.get("NodeResourcesFit")
        if asked is None:
            return
        rows = np.concatenate(self._by_one) if self._by_one else np.empty(0, dtype=np.intp)
        for name, amount in asked[0] if len(rows) else ():
            free = self._snapshot.allocatable(name)[rows] - self._snapshot.requested(name)[rows]
            short = amount - free
            some = short[(short > 0) & (free > 0)]
            if not len(some):
                continue
            missing = int(some.min())
            variant = reduced(self._pod.pod, name, missing)
            if variant is not None:
                text = f"ask for {amount_text(name, missing)} less {name} ({amount_text(name, amount - missing)})"
                yield text, LESS_FOR_POD, missing / amount, variant

    def _taints(self) -> list[Taint]:
        """The taints that are not tolerated, each once."""
        found: dict[tuple[str | None, str | None, str | None], Taint] = {}
        for number in np.unique(self._snapshot.taints[self._verdicts.rows]).tolist():
            for taint in self._snapshot.taint_sets[number]:
                if taint.effect != "PreferNoSchedule" and not _tolerated(self._pod, taint):
                    found[(taint.key, taint.value, taint.effect)] = taint
        return list(found.values())

    def _without(self) -> Iterator[tuple[str, int, float, Pod]]:
        """The pod without one of its own demands."""
        spec = self._pod.spec
        for key, value in (spec.node_selector or {}).items():
            variant = copy(self._pod.pod)
            assert variant.spec is not None
            assert variant.spec.node_selector is not None
            del variant.spec.node_selector[key]
            yield f"remove {key}={value} from the nodeSelector", DROP, 0.0, variant
        affinity = spec.affinity
        for field, words in _AFFINITIES.items():
            part = getattr(affinity, field, None) if affinity else None
            if part is not None and part.required_during_scheduling_ignored_during_execution:
                variant = copy(self._pod.pod)
                assert variant.spec is not None
                getattr(variant.spec.affinity, field).required_during_scheduling_ignored_during_execution = None
                yield f"remove the required {words}", DROP, 0.0, variant
        for index, constraint in enumerate(spec.topology_spread_constraints or ()):
            if constraint.when_unsatisfiable == "DoNotSchedule":
                variant = copy(self._pod.pod)
                assert variant.spec is not None
                assert variant.spec.topology_spread_constraints is not None
                variant.spec.topology_spread_constraints[index].when_unsatisfiable = "ScheduleAnyway"
                text = f"make the spreading by {constraint.topology_key} soft (whenUnsatisfiable: ScheduleAnyway)"
                yield text, DROP, 0.0, variant
        for number, container in enumerate(spec.containers or ()):
            for index, port in enumerate(container.ports or ()):
                if port.host_port:
                    variant = copy(self._pod.pod)
                    assert variant.spec is not None
                    ports = (variant.spec.containers or [])[number].ports or []
                    ports[index].host_port = None
                    yield f"do without hostPort {port.host_port}", DROP, 0.0, variant

    # -- nodes

    def of_nodes(self) -> Iterator[Change]:
        """Changes of one node, each tried there. Equal ones are grouped."""
        found: dict[tuple[str, int, float], list[str]] = {}
        for row in (row for rows in self._by_one for row in self._promising(rows).tolist()):
            node = self._snapshot.info(row).node
            if node is None:
                continue
            for text, effort, part, variant in self._node_variants(row, node):
                if self._left <= 0:
                    break
                self._left -= 1
                if self._fits_with(row, node, variant):
                    found.setdefault((text, effort, part), []).append(self._snapshot.names[row])
        for (text, effort, part), nodes in found.items():
            others = f"{len(nodes)} or more" if len(nodes) == ROWS_TRIED else str(len(nodes))
            where = nodes[0] if len(nodes) == 1 else f"{nodes[0]} (or another of {others} nodes)"
            yield Change(text.replace("{node}", where), tuple(nodes), effort, part)

    def all_of(self, row: int) -> list[str]:
        """Changes of one node that together make the pod fit there, none of which can be left out."""
        node = self._snapshot.info(row).node
        if node is None:
            return []
        wanted = self._edits(row, node)
        if not self._fits_with(row, node, edited(node, wanted)):
            return []
        for edit in list(wanted):
            fewer = [each for each in wanted if each is not edit]
            if self._fits_with(row, node, edited(node, fewer)):
                wanted = fewer
        return [text.replace("{node}", self._snapshot.names[row]) for text, _ in wanted]

    def _promising(self, rows: RowArray) -> RowArray:
        """Some of these rows, where the least is missing."""
        asked = self._verdicts.state.get("NodeResourcesFit")
        missing = np.zeros(len(rows))
        for name, amount in asked[0] if asked is not None else ():
            free = self._snapshot.allocatable(name)[rows] - self._snapshot.requested(name)[rows]
            missing += np.maximum(amount - free, 0) / amount
        return rows[np.argsort(missing, kind="stable")[:ROWS_TRIED]]

    def _fits_with(self, row: int, node: Node, variant: Node) -> bool:
        snapshot = self._snapshot
        snapshot.set_node(variant)
        try:
            return bool(judge(self._framework, self._pod, np.array([row], dtype=np.intp)).feasible[0])
        finally:
            snapshot.set_node(node)

    def _node_variants(self, row: int, node: Node) -> Iterator[tuple[str, int, float, Node]]:
        """Each single change of the node, and one with all labels that the pod wants."""
        labels: list[Edit] = []
        for edit in self._edits(row, node):
            text, effort, part = edit[0], _effort(edit[0]), 0.0
            if effort == LABEL:
                labels.append(edit)
            if effort == MORE_ON_NODE:
                part = self._missing(row)
            yield text, effort, part, edited(node, [edit])
        if len(labels) > 1:
            words = ", ".join(text.removeprefix(_LABEL_TEXT) for text, _ in labels)
            yield f"{_LABEL_TEXT}{words}", LABEL, float(len(labels)), edited(node, labels)

    def _edits(self, row: int, node: Node) -> list[Edit]:
        """Everything about the node that may be in the pod's way."""
        found: list[Edit] = []
        spec = node.spec
        if spec is not None and spec.unschedulable:
            found.append(("uncordon {node}", uncordon))
        for taint in (spec.taints if spec else None) or ():
            if taint.effect != "PreferNoSchedule" and not _tolerated(self._pod, taint):
                found.append((f"remove the taint {_taint_text(taint)} from {{node}}", partial(untaint, taint)))
        more = self._more(row)
        if more:
            found.append(more)
        labels = (node.metadata.labels if node.metadata else None) or {}
        for key, value in dict(self._wanted_labels()).items():
            if labels.get(key) != value:
                found.append((f"{_LABEL_TEXT}{key}={value}", partial(add_label, key, value)))
        return found

    def _short(self, row: int) -> tuple[dict[str, tuple[int, int]], int]:
        """The resources the row lacks: for each the missing amount and the total, and the number of pods it has no room
        for."""
        asked = self._verdicts.state.get("NodeResourcesFit")
        snapshot = self._snapshot
        short = {
            name: (missing, amount)
            for name, amount in (asked[0] if asked is not None else ())
            if (missing := amount - int(snapshot.allocatable(name)[row] - snapshot.requested(name)[row])) > 0
        }
        return short, max(0, int(snapshot.pod_count[row] + 1 - snapshot.allowed_pods[row]))

    def _missing(self, row: int) -> float:
        """How large a part of what the pod asks for is missing, over all resources."""
        short, full = self._short(row)
        parts = [missing / amount for missing, amount in short.values()]
        return sum(parts) + max(0, len(parts) + bool(full) - 1)

    def _more(self, row: int) -> Edit | None:
        short, full = self._short(row)
        parts = [f"{amount_text(name, missing)} more {name}" for name, (missing, _) in short.items()]
        if full:
            parts.append(f"room for {full} more pod{'s' if full > 1 else ''}")
        if not parts:
            return None
        wanted = {
            name: quantity(name, int(self._snapshot.allocatable(name)[row]) + missing)
            for name, (missing, _) in short.items()
        }
        if full:
            wanted["pods"] = str(int(self._snapshot.allowed_pods[row]) + full)
        return f"{' and '.join(parts)} on {{node}}", partial(enlarge, wanted)

    def _wanted_labels(self) -> Iterator[tuple[str, str]]:
        """Labels that the pod wants of a node: those of its selector, and the first way to fulfil its affinity."""
        spec = self._pod.spec
        yield from (spec.node_selector or {}).items()
        affinity = spec.affinity.node_affinity if spec.affinity else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        for term in (required.node_selector_terms if required else None) or ():
            for each in term.match_expressions or ():
                if each.operator == "In" and each.values:
                    yield each.key or "", each.values[0]
                elif each.operator == "Exists":
                    yield each.key or "", ""
            return


_LABEL_TEXT = "label {node} with "
_AFFINITIES = {
    "node_affinity": "node affinity",
    "pod_affinity": "pod affinity",
    "pod_anti_affinity": "pod anti-affinity",
}


def _tolerated(pod: PodInfo, taint: Taint) -> bool:
    return any(tolerates(each, taint) for each in pod.spec.tolerations or ())


def _taint_text(taint: Taint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _effort(text: str) -> int:
    if text.startswith(_LABEL_TEXT):
        return LABEL
    return UNCORDON if text.startswith("uncordon") else UNTAINT if text.startswith("remove the taint") else MORE_ON_NODE
