"""Looks through rows for candidates: nodes on which the pod would fit if less important pods went.

From a random row on, until there are enough. Rows where only resources are in the way are looked at together: those
that every other filter accepts as they are, and would accept without any of their pods. The others are looked at one by
one, running every plugin at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from ..framework.diagnosis import Diagnosis
from ..framework.extender import Victims
from ..framework.handle import Handle
from ..framework.plugin import FilterPlugin, Mask, RowArray, Scope
from ..framework.podinfo import PodInfo
from ..framework.state import CycleState
from ..framework.status import Code, Status
from ..nominated import FIT, PODS, numbers_decide
from . import ranking
from .resources import Selection, select
from .table import VictimTable
from .victims import NO_VICTIMS, Budgets, nobody_has_to_go, select_victims

NOT_HELPFUL = "Preemption is not helpful for scheduling"
_CHUNK = 512
"""Rows looked at together, at least: with fewer, numpy's overhead is more than its work."""


class Candidates:
    """The result of a search: candidates, in its order, and why other rows are none."""

    def __init__(self, handle: Handle, table: VictimTable) -> None:
        self._handle = handle
        self._table = table
        self._many: list[tuple[Selection, RowArray]] = []
        """Found together: which lines of the selection are candidates."""
        self._single: list[tuple[str, Victims]] = []
        self.refused: list[Callable[[], Iterable[tuple[Status, RowArray]]]] = []
        """Why rows are no candidates; computed only if there is none, since only then it is reported."""
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
    hopeless = rows[~hopeful]
    if len(hopeless):
        found.refused.append(lambda: [(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NO_VICTIMS), hopeless)])
    rows = rows[hopeful]
    if len(rows):
        _Search(found, handle, table, budgets(), state, pod, enough).run(rows)
    return found


class _Search:
    def __init__(
        self,
        found: Candidates,
        handle: Handle,
        table: VictimTable,
        budgets: Budgets,
        state: CycleState,
        pod: PodInfo,
        enough: int,
    ) -> None:
        self._found = found
        self._handle = handle
        self._table = table
        self._budgets = budgets
        self._state = state
        self._pod = pod
        self._enough = enough
        self._harmless = False
        """Whether a candidate was found that breaks no budget; the search does not end before."""
        active = [each for each in handle.filters if each.name not in state.skip_filter]
        self._others = [each for each in active if each.scope != Scope.NODE and each.name != FIT]
        """Filters that look at pods, beside NodeResourcesFit."""
        self._alone = [each for each in active if each not in self._others]
        self._nominated = handle.nominated.of(pod)

    def run(self, rows: RowArray) -> None:
        """Look through the rows, in this order."""
        if not numbers_decide(self._state) or any(_may_hurt(each, self._pod) for each in self._others):
            for row in rows.tolist():
                if self._one(row):
                    return
            return
        for chunk in _chunks(rows, max(self._enough + self._enough // 2, _CHUNK)):
            if self._chunk(chunk):
                return

    def _chunk(self, rows: RowArray) -> bool:
        """Look at rows together, except where a plugin other than NodeResourcesFit rejects too; whether that is all."""
        plain = np.ones(len(rows), dtype=np.bool_)
        for plugin in self._others:
            plain &= plugin.filter(self._state, self._pod, rows)
        if self._others and self._nominated is not None:
            plain &= self._nominated[PODS][rows] == 0
        together = rows[plain]
        self._table.load(together)
        selection = select(
            self._handle.snapshot,
            self._table,
            together,
            self._pod,
            self._state[FIT][0],
            self._nominated,
            self._budgets,
        )
        passed = self._pass(selection)
        some = selection.victims.any(axis=1)
        for row in together[passed & ~some].tolist():
            self._found.refuse(nobody_has_to_go(self._handle.snapshot.names[row]), row)
        good = passed & some
        if plain.all():
            return self._add(selection, np.flatnonzero(good))
        # One row at a time takes long, so it is done only as far as needed.
        line = 0
        for position, row in enumerate(rows.tolist()):
            if not plain[position]:
                if self._one(row):
                    return True
                continue
            if good[line] and self._add(selection, np.array([line])):
                return True
            line += 1
        return False

    def _add(self, selection: Selection, lines: RowArray) -> bool:
        """These lines are candidates, as far as they are needed; whether there are enough now."""
        if not len(lines):
            return False
        violating = selection.violations[lines] > 0
        numbers = self._found.number + np.arange(1, len(lines) + 1)
        done = np.flatnonzero((numbers >= self._enough) & (self._harmless | np.logical_or.accumulate(~violating)))
        self._harmless |= not violating.all()
        self._found.add_many(selection, lines[: done[0] + 1] if len(done) else lines)
        return len(done) > 0

    def _pass(self, selection: Selection) -> Mask:
        """The lines that pass all filters without pods of lower priority; reasons of the others are recorded."""
        left = np.ones(len(selection.rows), dtype=np.bool_)
        for plugin in self._alone:
            mask = selection.fits if plugin.name == FIT else plugin.filter(self._state, self._pod, selection.rows)
            refused = left & ~mask
            if refused.any():
                out = selection.rows[refused]
                self._found.refused.append(partial(_why, plugin, selection, self._state, self._pod, out))
                left &= mask
        return left

    def _one(self, row: int) -> bool:
        """Look at one row, asking every plugin at every step; whether there are enough candidates now."""
        victims = select_victims(self._handle, self._state, self._pod, row, self._budgets)
        if isinstance(victims, Status):
            self._found.refuse(victims, row)
            return False
        self._found.add(self._handle.snapshot.names[row], victims)
        self._harmless |= not victims.num_pdb_violations
        return self._harmless and self._found.number >= self._enough


def _may_hurt(plugin: FilterPlugin, pod: PodInfo) -> bool:
    """Whether the going of other pods may make this filter refuse a row that it accepts with all of them there.

    Where it cannot, a row that passes now passes with any victims, and only resources decide who they are.
    """
    if plugin.name == "InterPodAffinity":
        return bool(pod.required_affinity)  # which may need the very pods that go; anti-affinity never minds
    return plugin.name not in _NEVER_HURT


# Not NodeVolumeLimits: a volume that a pod shares with another counts as new when the other is gone.
_NEVER_HURT = frozenset(
    {
        "DynamicResources",
        "NodePorts",
        "PodTopologySpread",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)


def _why(
    plugin: FilterPlugin, selection: Selection, state: CycleState, pod: PodInfo, out: RowArray
) -> Iterator[tuple[Status, RowArray]]:
    for status, rows in selection.statuses() if plugin.name == FIT else plugin.refusals(state, pod, out):
        yield status.by(plugin.name), rows[np.isin(rows, out)]


def _chunks(rows: RowArray, size: int) -> Iterator[RowArray]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
