"""Looks through rows for candidates: nodes on which the pod would fit if less important pods went.

From a random row on, until there are enough. Which way a row is looked at depends on the pod: when every filter that
has something to say about it either is NodeResourcesFit or looks at node objects alone, the going of pods changes
nothing but resources, and rows are looked at together; otherwise one by one, asking every plugin at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from ..framework.diagnosis import Diagnosis
from ..framework.extender import Victims
from ..framework.handle import Handle
from ..framework.plugin import FilterPlugin, Mask, RowArray
from ..framework.podinfo import PodInfo
from ..framework.state import CycleState
from ..framework.status import Code, Status
from ..nominated import FIT, only_resources
from . import ranking
from .resources import Selection, select
from .table import VictimTable
from .victims import NO_VICTIMS, Budgets, nobody_has_to_go, select_victims

NOT_HELPFUL = "Preemption is not helpful for scheduling"
_CHUNK = 512
"""Rows looked at together, at least: with fewer, numpy's overhead is more than its work."""


class Candidates:
    """What a search has found: candidates, in its order, and why other rows are none."""

    def __init__(self, handle: Handle, table: VictimTable) -> None:
        self._handle = handle
        self._table = table
        self._many: list[tuple[Selection, RowArray]] = []
        """Found together: which lines of the selection are candidates."""
        self._single: list[tuple[str, Victims]] = []
        self.refused: list[Callable[[], Iterable[tuple[Status, RowArray]]]] = []
        """Why rows are no candidates; worked out only if there is none, which is when it is told."""
        self.errors: list[Status] = []
        self.number = 0

    def refuse(self, status: Status, *rows: int) -> None:
        """These rows are no candidates."""
        self.refused.append(lambda: [(status, np.array(rows, dtype=np.intp))])
        if status.code == Code.ERROR:
            self.errors.append(status)

    def add_many(self, selection: Selection, lines: RowArray) -> None:
        """These lines of a selection are candidates."""
        if len(lines):
            self._many.append((selection, lines))
            self.number += len(lines)

    def add(self, node_name: str, victims: Victims) -> None:
        """This node is one."""
        self._single.append((node_name, victims))
        self.number += 1

    def best(self) -> tuple[str, Victims]:
        """The candidate that does the least harm, the first of equals."""
        found = list(self._single)
        for selection, lines in self._many:
            rows = selection.rows[lines]
            width = selection.victims.shape[1]
            line = ranking.best(
                selection.victims[lines],
                selection.violations[lines],
                self._table.priority[rows, :width],
                self._table.start[rows, :width],
            )
            found.append(self._victims(selection, int(lines[line])))
        return min(found, key=lambda each: ranking.harm(each[1]))

    def all(self) -> dict[str, Victims]:
        """All of them, by the node's name."""
        found = dict(self._single)
        for selection, lines in self._many:
            found.update(self._victims(selection, line) for line in lines.tolist())
        return found

    def message(self, pod_nodes: int) -> str:
        """Why there is none, in the words of a pod that fits nowhere."""
        diagnosis = Diagnosis(pod_nodes, 0)
        absent = pod_nodes
        for why in self.refused:
            for status, rows in why():
                diagnosis.refuse(status, rows)
                absent -= len(rows)
        if absent > 0:
            diagnosis.refuse(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NOT_HELPFUL), np.zeros(absent, dtype=np.intp))
        return diagnosis.message()

    def _victims(self, selection: Selection, line: int) -> tuple[str, Victims]:
        row = int(selection.rows[line])
        pods = self._table.pods[row]
        chosen = [pods[k] for k in np.flatnonzero(selection.victims[line]).tolist()]
        return self._handle.snapshot.names[row], Victims(chosen, int(selection.violations[line]))


def search(
    handle: Handle,
    table: VictimTable,
    budgets: Callable[[], Budgets],
    state: CycleState,
    pod: PodInfo,
    potential: RowArray,
    enough: int,
) -> Candidates:
    """Candidates among these rows, whose refusal the going of pods may undo; at least so many if there are."""
    found = Candidates(handle, table)
    if not len(potential):
        return found
    table.refresh()
    rows = np.roll(potential, -handle.random.randrange(len(potential)))
    hopeful = table.lowest[rows] < pod.priority
    nobody = rows[~hopeful]
    if len(nobody):
        found.refused.append(lambda: [(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NO_VICTIMS), nobody)])
    rows = rows[hopeful]
    if not len(rows):
        return found
    filters = [each for each in handle.filters if each.name not in state.skip_filter]
    if only_resources(filters, state):
        _together(found, handle, table, budgets(), state, pod, rows, enough, filters)
    else:
        _one_by_one(found, handle, budgets(), state, pod, rows, enough)
    return found


def _together(
    found: Candidates,
    handle: Handle,
    table: VictimTable,
    budgets: Budgets,
    state: CycleState,
    pod: PodInfo,
    rows: RowArray,
    enough: int,
    filters: Sequence[FilterPlugin],
) -> None:
    asked = state[FIT][0]
    nominated = handle.nominated.of(pod)
    harmless = False
    for chunk in _chunks(rows, max(enough + enough // 2, _CHUNK)):
        table.load(chunk)
        selection = select(handle.snapshot, table, chunk, pod, asked, nominated, budgets)
        passed = _pass(found, selection, state, pod, filters)
        some = selection.victims.any(axis=1)
        for row in chunk[passed & ~some].tolist():
            found.refuse(nobody_has_to_go(handle.snapshot.names[row]), row)
        lines = np.flatnonzero(passed & some)
        if len(lines):
            violating = selection.violations[lines] > 0
            numbers = found.number + np.arange(1, len(lines) + 1)
            done = np.flatnonzero((numbers >= enough) & (harmless | np.logical_or.accumulate(~violating)))
            harmless |= not violating.all()
            found.add_many(selection, lines[: done[0] + 1] if len(done) else lines)
            if len(done):
                return


def _pass(
    found: Candidates, selection: Selection, state: CycleState, pod: PodInfo, filters: Sequence[FilterPlugin]
) -> Mask:
    """Which lines pass all filters with everybody lower gone; why the others do not is noted."""
    left = np.ones(len(selection.rows), dtype=np.bool_)
    for plugin in filters:
        mask = selection.fits if plugin.name == FIT else plugin.filter(state, pod, selection.rows)
        refused = left & ~mask
        if refused.any():
            found.refused.append(partial(_why, plugin, selection, state, pod, selection.rows[refused]))
            left &= mask
    return left


def _why(
    plugin: FilterPlugin, selection: Selection, state: CycleState, pod: PodInfo, out: RowArray
) -> Iterator[tuple[Status, RowArray]]:
    for status, rows in selection.statuses() if plugin.name == FIT else plugin.refusals(state, pod, out):
        yield status.by(plugin.name), rows[np.isin(rows, out)]


def _one_by_one(
    found: Candidates,
    handle: Handle,
    budgets: Budgets,
    state: CycleState,
    pod: PodInfo,
    rows: RowArray,
    enough: int,
) -> None:
    harmless = False
    for row in rows.tolist():
        victims = select_victims(handle, state, pod, row, budgets)
        if isinstance(victims, Status):
            found.refuse(victims, row)
            continue
        found.add(handle.snapshot.names[row], victims)
        harmless |= not victims.num_pdb_violations
        if harmless and found.number >= enough:
            return


def _chunks(rows: RowArray, size: int) -> Iterator[RowArray]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
