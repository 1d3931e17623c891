"""Counts the affinity terms of existing pods by topology domain, kept up to date.

Pods of one controller all say the same, so terms are kept once with a count for each row: a term is a vote of so many
pods in each domain. A pod that is to be placed asks which terms speak of it; terms are found by one label that they
require, so that the thousands which speak of others are not looked at.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from pybernetes.api import labels

from ...framework import AffinityTerm, Mask, PodInfo

if TYPE_CHECKING:
    from ...snapshot.snapshot import Int64, Snapshot

_MANY = 64
"""Domains from which an array is quicker than a dictionary."""
_MOST = 4096


class Say(Enum):
    """The kind of a term that matches the pod."""

    NOT_HERE = "required anti-affinity"
    HERE = "required affinity"
    RATHER = "preferred affinity"
    RATHER_NOT = "preferred anti-affinity"


class Term:
    """One term, and on which rows how many pods have it.

    Invariant: `_sums[d]` is the sum of `rows[row]` over rows with `_domain[row] == d`; `_domain` is how the nodes were
    when the row got its first such pod or at `_position` of the journal, whichever was later.
    """

    __slots__ = ("_dense", "_domain", "_position", "_snapshot", "_sums", "rows", "say", "term")

    def __init__(self, snapshot: Snapshot, say: Say, term: AffinityTerm) -> None:
        self._snapshot = snapshot
        self.say = say
        self.term = term
        self.rows: dict[int, int] = {}
        self._domain: dict[int, int] = {}
        self._sums: dict[int, int] = {}
        self._dense: Int64 | None = None
        """`_sums` as an array, when there are many."""
        self._position = snapshot.node_changes.position

    def count(self, row: int, by: int) -> None:
        """So many more pods on the row say this."""
        number = self.rows.get(row, 0) + by
        if row not in self._domain:
            self._domain[row] = int(self._snapshot.label(self.term.topology_key)[row])
        self._add(self._domain[row], by)
        if number:
            self.rows[row] = number
        else:
            del self.rows[row], self._domain[row]

    def refresh(self) -> None:
        """Catch up with changes of nodes."""
        changes = self._snapshot.node_changes
        if self._position == changes.position:
            return
        changed = changes.since(self._position)
        self._position = changes.position
        rows = set(self.rows) if changed is None else self.rows.keys() & changed
        column = self._snapshot.label(self.term.topology_key)
        for row in rows:
            before, now = self._domain[row], int(column[row])
            if before != now:
                self._add(before, -self.rows[row])
                self._add(now, self.rows[row])
                self._domain[row] = now

    @property
    def anywhere(self) -> bool:
        """Whether any of these pods is in a domain."""
        return bool(self._sums)

    def forbid(self, allowed: Mask) -> None:
        """Take the domains of these pods from those allowed (by value id)."""
        dense = self._as_array(len(allowed))
        if dense is not None:
            allowed &= dense == 0
        else:
            for domain in self._sums:
                allowed[domain] = False

    def vote(self, votes: Int64, weight: int) -> None:
        """Add each domain's pods, weighed, to the votes (by value id)."""
        dense = self._as_array(len(votes))
        if dense is not None:
            votes += weight * dense
        else:
            for domain, number in self._sums.items():
                votes[domain] += weight * number

    def _add(self, domain: int, by: int) -> None:
        if not domain:
            return
        number = self._sums.get(domain, 0) + by
        if number:
            self._sums[domain] = number
        else:
            del self._sums[domain]
        if self._dense is not None:
            if domain < len(self._dense):
                self._dense[domain] = number
            else:
                self._dense = None

    def _as_array(self, length: int) -> Int64 | None:
        if self._dense is not None and len(self._dense) == length:
            return self._dense
        self._dense = None
        if len(self._sums) >= _MANY:
            self._dense = np.zeros(length, dtype=np.int64)
            self._dense[list(self._sums)] = list(self._sums.values())
        return self._dense


class Terms:
    """All terms of all pods that have a node: a `Tracker` of the snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._terms: dict[tuple[Say, AffinityTerm], Term] = {}
        self._by_label: dict[tuple[str, str] | None, dict[Term, None]] = {}
        """By a label that the term requires; under None those that require none."""
        self._known: dict[tuple[object, ...], tuple[Term, ...]] = {}
        """Terms that speak of pods with such labels in such a namespace; forgotten when terms or namespaces change."""

    def __len__(self) -> int:
        return len(self._terms)

    def about(self, pod: PodInfo, namespace_labels: labels.Labels) -> tuple[Term, ...]:
        """The terms that speak of this pod, up to date."""
        if not self._terms:
            return ()
        key = (pod.namespace, tuple(pod.labels.items()))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[key] = tuple(self._find(pod, namespace_labels))
        for each in found:
            each.refresh()
        return found

    def forget(self) -> None:
        """Labels of namespaces have changed."""
        self._known.clear()

    def _find(self, pod: PodInfo, namespace_labels: labels.Labels) -> list[Term]:
        return [
            each
            for label in (None, *pod.labels.items())
            for each in self._by_label.get(label, ())
            if each.term.matches(pod.namespace, pod.labels, namespace_labels)
        ]

    # -- the snapshot's Tracker

    def grow(self, capacity: int) -> None:
        pass

    def node_changed(self, row: int) -> None:
        pass

    def pod_added(self, pod: PodInfo, row: int) -> None:
        if pod.has_affinity:
            self._count(pod, row, 1)

    def pod_removed(self, pod: PodInfo, row: int) -> None:
        if pod.has_affinity:
            self._count(pod, row, -1)

    def _count(self, pod: PodInfo, row: int, by: int) -> None:
        for say, terms in (
            (Say.NOT_HERE, pod.required_anti_affinity),
            (Say.HERE, pod.required_affinity),
            (Say.RATHER, pod.preferred_affinity),
            (Say.RATHER_NOT, pod.preferred_anti_affinity),
        ):
            for term in terms:
                self._count_term(say, term, row, by)

    def _count_term(self, say: Say, term: AffinityTerm, row: int, by: int) -> None:
        found = self._terms.get((say, term))
        if found is None:
            found = self._terms[say, term] = Term(self._snapshot, say, term)
            self._by_label.setdefault(_required_label(term), {})[found] = None
            self._known.clear()
        found.count(row, by)
        if not found.rows:
            del self._terms[say, term], self._by_label[_required_label(term)][found]
            self._known.clear()


def _required_label(term: AffinityTerm) -> tuple[str, str] | None:
    for each in term.selector.requirements:
        if each.operator in (labels.EQUALS, labels.IN) and len(each.values) == 1:
            return each.key, each.values[0]
    return None
