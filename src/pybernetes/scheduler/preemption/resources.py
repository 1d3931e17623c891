"""Victims on many rows at once, where nothing but resources is in the pod's way.

The same steps as `victims.select_victims`, each for all rows together: send away, fit, let back in order of importance.
Whether a pod fits is arithmetic here: what it asks for against what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..framework.plugin import Mask, RowArray
from ..framework.podinfo import PodInfo
from ..framework.status import Status
from ..nominated import PODS, by_reason
from ..snapshot.snapshot import Snapshot
from .table import VictimTable
from .victims import Budgets

Int64 = npt.NDArray[np.int64]
TOO_MANY_PODS = "Too many pods"


@dataclass(slots=True)
class Selection:
    """The result for `rows`, one element (or line) for each."""

    rows: RowArray
    fits: Mask
    """With all lower pods gone the pod fits."""
    victims: Mask
    """[row, k]: the k-th most important pod of the row has to go."""
    violations: Int64
    """How many of them break a budget by going."""
    short: list[tuple[str, Mask]]
    """By reason: where it is still in the way when all lower pods are gone."""

    def statuses(self) -> list[tuple[Status, RowArray]]:
        """Why the pod does not fit where it does not, by reason."""
        return by_reason(self.short, self.rows)


def select(
    snapshot: Snapshot,
    table: VictimTable,
    rows: RowArray,
    pod: PodInfo,
    asked: Sequence[tuple[str, int]],
    nominated: Mapping[str, Int64] | None,
    budgets: Budgets,
) -> Selection:
    """Victims on these rows, which the table has loaded. `nominated` is what others will use that come to rows."""
    lower = table.priority[rows] < pod.priority
    extra = nominated or {}
    # How much is left for others beside the pod; negative = it does not fit.
    left = [snapshot.allowed_pods[rows] - snapshot.pod_count[rows] + lower.sum(axis=1) - 1]
    if PODS in extra:
        left[0] -= extra[PODS][rows]
    needs: list[Int64] = [lower.astype(np.int64)]
    for name, amount in asked:
        need = np.where(lower, table.requests(name)[rows], 0)
        needs.append(need)
        room = snapshot.allocatable(name)[rows] - snapshot.requested(name)[rows] + need.sum(axis=1)
        if name in extra:
            room -= extra[name][rows]
        left.append(room - amount)
    names = [TOO_MANY_PODS, *(f"Insufficient {name}" for name, _ in asked)]
    short = [(name, room < 0) for name, room in zip(names, left, strict=True)]
    fits: Mask = np.asarray(lower.any(axis=1))
    for _, where in short:
        fits &= ~where
    violating = _violating(table, rows, lower, fits, budgets)
    if violating is None:
        return Selection(rows, fits, _reprieve(lower, needs, left), np.zeros(len(rows), dtype=np.int64), short)
    order = np.argsort(~violating, axis=1, kind="stable")
    in_order = _reprieve(
        np.take_along_axis(lower, order, 1), [np.take_along_axis(need, order, 1) for need in needs], left
    )
    victims = np.empty_like(lower)
    np.put_along_axis(victims, order, in_order, 1)
    return Selection(rows, fits, victims, (victims & violating).sum(axis=1), short)


def _reprieve(lower: Mask, needs: Sequence[Int64], left: Sequence[Int64]) -> Mask:
    """Reprieve pods column after column where they fit; the others are victims. Uses up `left`."""
    victims = lower.copy()
    for k in np.flatnonzero(lower.any(axis=0)).tolist():
        back = lower[:, k].copy()
        for need, room in zip(needs, left, strict=True):
            back &= need[:, k] <= room
        for need, room in zip(needs, left, strict=True):
            room -= need[:, k] * back
        victims[:, k] &= ~back
    return victims


def _violating(table: VictimTable, rows: RowArray, lower: Mask, fits: Mask, budgets: Budgets) -> Mask | None:
    if not budgets:
        return None
    result: Mask | None = None
    for index in np.flatnonzero(fits).tolist():
        pods = [pod for pod, may in zip(table.pods[rows[index]], lower[index].tolist(), strict=False) if may]
        if not any(map(budgets.matching, pods)):
            continue
        if result is None:
            result = np.zeros_like(lower)
        result[index, lower[index]] = budgets.violating(pods)
    return result
