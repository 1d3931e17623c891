"""How many pods match something in each topology domain, kept up to date. A domain is one value of a label of nodes.

Spreading and affinity compare domains for every pod. Summed from nothing that is a walk over all rows; here it is one
addition when a pod comes or goes, because these sums follow a `PodCounter`, also during a what-if and when that is
undone. Nodes change rarely and never during a what-if: their changes are caught up with when the sums are asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from ..framework.plugin import Mask, Rows

if TYPE_CHECKING:
    from .counters import Amount, PodCounter
    from .snapshot import Int32, Int64, Snapshot

T = TypeVar("T", np.int32, np.int64)
Eligible = Callable[[Rows], Mask]
"""Which of the rows count at all, by their nodes alone."""

NO_DOMAIN = 0
"""The row is in no domain: its node lacks the label, does not count, or is not there."""
FAR = np.int64(1) << 60
"""More than any count."""
_MANY = 256
"""Rows changed at once from which it is quicker to sum everything anew."""


class Domains:
    """The sums of one counter by one label. Index `sums` with value ids: `sums[snapshot.label(key)[rows]]`.

    Invariant: `sums[d]` is the sum of `counter.counts[row]` over rows with `_domain[row] == d`, at any time; `_domain`
    is how the nodes were at `_position` of the journal.
    """

    __slots__ = ("_absent", "_domain", "_eligible", "_nodes", "_position", "_snapshot", "counter", "key", "sums")

    def __init__(self, snapshot: Snapshot, counter: PodCounter, key: str, eligible: Eligible | None = None) -> None:
        self._snapshot = snapshot
        self.counter = counter
        self.key = key
        self._eligible = eligible
        self.sums: Int64
        """By value id; `sums[0]` is always 0."""
        self._absent: Int64
        """FAR where no node of the domain counts, else 0."""
        self._nodes: Int32
        """How many rows are in a domain."""
        self._domain: Int32
        """Of each row."""
        self._position = -1
        self._sum()
        counter.followers.append(self._moved)

    @property
    def number(self) -> int:
        """How many domains there are."""
        return int(np.count_nonzero(self._nodes))

    def least(self) -> int:
        """The smallest sum of a domain; FAR without any domain."""
        return int((self.sums + self._absent).min())

    def refresh(self) -> None:
        """Catch up with changes of nodes."""
        changes = self._snapshot.node_changes
        if self._position == changes.position:
            return
        rows = changes.since(self._position)
        if rows is None or len(rows) > _MANY:
            self._sum()
        else:
            self._grow()
            self._move(sorted(set(rows)))
            self._position = changes.position

    def close(self) -> None:
        """Follow no longer."""
        if self._moved in self.counter.followers:
            self.counter.followers.remove(self._moved)

    def _moved(self, row: int, by: int) -> None:
        # A row beyond what we know is one whose node we have not caught up with: it is counted then.
        if row < len(self._domain):
            domain = self._domain[row]
            if domain:
                self.sums[domain] += by

    def _sum(self) -> None:
        snapshot = self._snapshot
        size = snapshot.size
        rows = snapshot.all_rows
        domain = snapshot.label(self.key)[:size].copy()
        if self._eligible is not None:
            domain[~self._eligible(rows)] = NO_DOMAIN
        values = len(snapshot.label_values)
        self._domain = domain
        # Counts are far below 2**53, so sums of floats are exact.
        self.sums = np.bincount(domain, weights=self.counter.counts[:size], minlength=values).astype(np.int64)
        self._nodes = np.bincount(domain, minlength=values).astype(np.int32)
        self.sums[NO_DOMAIN] = self._nodes[NO_DOMAIN] = 0
        self._absent = np.where(self._nodes > 0, np.int64(0), FAR)
        self._position = snapshot.node_changes.position

    def _grow(self) -> None:
        size, values = self._snapshot.size, len(self._snapshot.label_values)
        if size > len(self._domain):
            self._domain = _longer(self._domain, size, 0)
        if values > len(self.sums):
            self.sums = _longer(self.sums, values, 0)
            self._nodes = _longer(self._nodes, values, 0)
            self._absent = _longer(self._absent, values, int(FAR))

    def _move(self, changed: list[int]) -> None:
        rows = np.array([row for row in changed if row < self._snapshot.size], dtype=np.intp)
        domains = self._snapshot.label(self.key)[rows]
        if self._eligible is not None:
            domains = np.where(self._eligible(rows), domains, NO_DOMAIN)
        for row, domain in zip(rows.tolist(), domains.tolist(), strict=True):
            before = int(self._domain[row])
            if domain == before:
                continue
            count = self.counter.counts[row]
            self._domain[row] = domain
            if before:
                self.sums[before] -= count
                self._nodes[before] -= 1
                if not self._nodes[before]:
                    self._absent[before] = FAR
            if domain:
                self.sums[domain] += count
                self._nodes[domain] += 1
                self._absent[domain] = 0


class DomainCache:
    """All sums that were asked for lately."""

    MOST = 512
    """Sums kept; those not asked for longest go first."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._found: OrderedDict[Hashable, Domains] = OrderedDict()

    def get(
        self,
        counted: Hashable,
        amount: Amount,
        namespaces: Iterable[str] | None,
        key: str,
        eligible: Eligible | None = None,
        eligible_key: Hashable = None,
    ) -> Domains:
        """Sums by the label `key` of the counter `counted` (see `PodCounters.get`), up to date.

        Equal `eligible_key` must mean that the same nodes are eligible.
        """
        counter = self._snapshot.counters.get(counted, amount, namespaces)
        cache_key = (counted, key, eligible_key)
        found = self._found.get(cache_key)
        if found is not None and found.counter is counter:
            self._found.move_to_end(cache_key)
            found.refresh()
            return found
        if found is not None:
            found.close()
        elif len(self._found) >= self.MOST:
            self._found.popitem(last=False)[1].close()
        made = self._found[cache_key] = Domains(self._snapshot, counter, key, eligible)
        self._found.move_to_end(cache_key)
        return made


def _longer(column: npt.NDArray[T], length: int, fill: int) -> npt.NDArray[T]:
    result = np.full(length, fill, dtype=column.dtype)
    result[: len(column)] = column
    return result
