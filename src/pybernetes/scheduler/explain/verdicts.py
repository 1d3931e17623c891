"""Runs every filter on every node now, each independently: not only up to the first that rejects a node.

Nothing of the scheduler's is changed, and nothing of what it shares between pods is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..framework.diagnosis import Diagnosis
from ..framework.plugin import Mask, PreFilterResult, RowArray
from ..framework.podinfo import PodInfo
from ..framework.runtime import Framework
from ..framework.state import CycleState
from ..framework.status import Code, Status, merge


@dataclass(slots=True)
class Verdicts:
    """The rejections by plugin and row, with their reasons."""

    rows: RowArray
    """The rows that were asked about: nodes that are there."""
    feasible: Mask
    """One for each of `rows`."""
    groups: list[tuple[Status, RowArray]] = field(default_factory=list)
    """Every refusal, with the rows it is about; a row may be in several."""
    state: CycleState = field(default_factory=CycleState)

    def of(self, row: int) -> list[Status]:
        """All refusals of a row."""
        return [status for status, rows in self.groups if row in rows]

    def number_of_refusals(self) -> dict[int, int]:
        """How many plugins refuse each row that is refused."""
        counts: dict[int, int] = {}
        for _, rows in self.groups:
            for row in rows.tolist():
                counts[row] = counts.get(row, 0) + 1
        return counts


def judge(framework: Framework, pod: PodInfo, rows: RowArray | None = None) -> Verdicts:
    """Ask all filters about all nodes, or about these rows."""
    snapshot = framework.snapshot
    if rows is None:
        rows = np.flatnonzero(snapshot.alive[: snapshot.size])
    found = Verdicts(rows, np.ones(len(rows), dtype=np.bool_))
    state = found.state
    for plugin in framework.pre_filters:
        try:
            answer = plugin.pre_filter(state, pod)
        except Exception as error:
            answer = Status(Code.ERROR, str(error) or type(error).__name__)
        if isinstance(answer, Status):
            if answer.is_skip:
                state.skip_filter.add(plugin.name)
            else:
                _refuse(found, answer.by(plugin.name), rows)
                state.skip_filter.add(plugin.name)
        elif isinstance(answer, PreFilterResult) and answer.node_names is not None:
            names = answer.node_names
            others = np.array([row for row in rows.tolist() if snapshot.names[row] not in names], dtype=np.intp)
            if len(others):
                said = f"node(s) didn't satisfy plugin(s) [{plugin.name}]"
                _refuse(found, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, said, plugin=plugin.name), others)
    for each in framework.filters:
        if each.name in state.skip_filter:
            continue
        try:
            refused = rows[~each.filter(state, pod, rows)]
            if len(refused):
                for status, some in each.refusals(state, pod, refused):
                    _refuse(found, status.by(each.name), some)
        except Exception as error:
            _refuse(found, Status(Code.ERROR, str(error) or type(error).__name__, plugin=each.name), rows)
    _count_nominated(framework, pod, found)
    return found


def diagnose_all(framework: Framework, pod: PodInfo, diagnosis: Diagnosis) -> None:
    """Note all reasons of all filters for every node; rows that the diagnosis knows (by extenders) keep theirs."""
    by_row: dict[int, list[Status]] = {}
    for status, rows in judge(framework, pod).groups:
        for row in rows.tolist():
            by_row.setdefault(row, []).append(status)
    groups: dict[tuple[Status, ...], list[int]] = {}
    for row, statuses in by_row.items():
        if diagnosis.status(row) is None:
            groups.setdefault(tuple(statuses), []).append(row)
    for alike, found in groups.items():
        merged = merge(alike)
        assert merged is not None
        diagnosis.refuse(merged, np.array(found, dtype=np.intp))
        for status in alike:
            diagnosis.note_plugin(status)


def _count_nominated(framework: Framework, pod: PodInfo, found: Verdicts) -> None:
    """Nodes that are full when the pods that will come there are counted."""
    for name in framework.nominator.nodes():
        row = framework.snapshot.row_of.get(name)
        if row is None:
            continue
        here = found.rows == row
        if (here & found.feasible).any():
            status = framework.run_filters(found.state, pod, row)
            if status is not None:
                _refuse(found, status, np.array([row], dtype=np.intp))


def _refuse(found: Verdicts, status: Status, rows: RowArray) -> None:
    found.groups.append((status, rows))
    found.feasible &= ~np.isin(found.rows, rows)
