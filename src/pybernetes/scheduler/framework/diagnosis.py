"""Why a pod fits nowhere, in the words that end up in its condition and event."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .plugin import RowArray
from .status import Code, Status

NO_NODES = "no nodes available to schedule pods"


class Diagnosis:
    """The refusals of one attempt: rows in groups of one Status each, and who refused."""

    def __init__(self, num_all_nodes: int, size: int) -> None:
        self.num_all_nodes = num_all_nodes
        self.groups: list[tuple[Status, RowArray]] = []
        """Every refused row is in exactly one group."""
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.pre_filter_message = ""
        """Said when a PreFilter refused the pod on all nodes at once."""
        self.post_filter_message = ""
        self._size = size
        self._by_row: list[Status | None] | None = None

    def refuse(self, status: Status, rows: RowArray) -> None:
        """Note why these rows are out."""
        self.groups.append((status, rows))
        self._by_row = None
        self.note_plugin(status)

    def note_plugin(self, status: Status) -> None:
        """Remember whose events can help."""
        if status.plugin:
            self.unschedulable_plugins.add(status.plugin)
            if status.code == Code.PENDING:
                self.pending_plugins.add(status.plugin)

    def status(self, row: int) -> Status | None:
        """Why this row was refused; None if it was not."""
        if self._by_row is None:
            by_row: list[Status | None] = [None] * self._size
            for status, rows in self.groups:
                for each in rows.tolist():
                    by_row[each] = status
            self._by_row = by_row
        return self._by_row[row]

    def rows_with(self, code: Code) -> RowArray:
        """The rows that were refused with this code, in order: those of UNSCHEDULABLE are where preemption may help."""
        found = [rows for status, rows in self.groups if status.code == code]
        return np.sort(np.concatenate(found)) if found else np.empty(0, dtype=np.intp)

    def reasons(self) -> Iterator[tuple[str, int]]:
        """Every reason, and on how many nodes."""
        counts: dict[str, int] = {}
        for status, rows in self.groups:
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + len(rows)
        yield from counts.items()

    def message(self) -> str:
        """`0/5 nodes are available: 2 Insufficient cpu, 3 node(s) ...` as upstream words it."""
        text = f"0/{self.num_all_nodes} nodes are available:"
        if self.pre_filter_message:  # then all rows have this one reason, which need not be said twice
            text += f" {self.pre_filter_message}."
        elif histogram := sorted(f"{count} {reason}" for reason, count in self.reasons()):
            text += f" {', '.join(histogram)}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text
