"""Places pods beside those they want to be with, and away from those they, or who, cannot bear them.

Filter: a node must be in the same domain (the same value of a label) as a pod that all required affinity terms speak
of, and in no domain of a pod that a required anti-affinity term speaks of, be it a term of this pod or of the other.
The first pod of a series that wants to be beside its like may go where there are none yet. Score: the sum of the
weights of preferred terms, both ways, where others' required affinity counts too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pybernetes.api import labels
from pybernetes.api.core.v1 import Namespace

from ...config.v1.args import InterPodAffinityArgs
from ...framework import (
    MAX_SCORE,
    SKIP,
    UNRESOLVABLE,
    UNSCHEDULABLE,
    AffinityTerm,
    CycleState,
    EventWithHint,
    FilterPlugin,
    Handle,
    Mask,
    Normalize,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Refusals,
    RowArray,
    Rows,
    ScorePlugin,
    Scores,
    Status,
)
from ...snapshot.domains import DomainCache, Domains
from .hints import Hints
from .others import Say, Term, Terms

if TYPE_CHECKING:
    from ...snapshot.snapshot import Int64

NOT_LIKED = Status(UNRESOLVABLE, "node(s) didn't match pod affinity rules")
DISLIKED = Status(UNSCHEDULABLE, "node(s) didn't match pod anti-affinity rules")
DISLIKED_BY_OTHERS = Status(UNSCHEDULABLE, "node(s) didn't satisfy existing pods anti-affinity rules")

_MOST = 4096


class _Counted(NamedTuple):
    """Which pods a term (or several together) speaks of."""

    key: Hashable
    matches: Callable[[PodInfo], bool]
    namespaces: frozenset[str] | None
    """None = all."""

    def amount(self, pod: PodInfo) -> int:
        return int(self.matches(pod))


@dataclass(slots=True)
class _Required:
    """The filter's state, computed for one pod."""

    affinity: list[Domains]
    """Of each term, the pods that all the terms speak of."""
    anti_affinity: list[Domains]
    first_of_series: bool
    """Whether the pod's affinity speaks of itself."""


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """See the module."""

    name = "InterPodAffinity"
    Args = InterPodAffinityArgs
    normalize = Normalize.CUSTOM

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        weight = args.hard_pod_affinity_weight
        self._hard_weight = 1 if weight is None else weight
        self._ignore_others = bool(args.ignore_preferred_terms_of_existing_pods)
        self._namespaces = handle.informer(Namespace)
        self._resolved: dict[AffinityTerm, _Counted] = {}
        """Terms with their namespace selectors resolved; forgotten when namespaces change."""
        self._domains = DomainCache(handle.snapshot)
        self._others = Terms(handle.snapshot)
        handle.snapshot.track(self._others)
        self._hints = Hints(self._labels_of)
        self._namespaces.add_handler(self._namespace_changed, self._namespace_updated, self._namespace_changed)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return self._hints.events()

    # -- filter

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        if pod.affinity_error is not None:
            return Status(UNRESOLVABLE, f"parsing pod: {pod.affinity_error}")
        affinity, anti_affinity = pod.required_affinity, pod.required_anti_affinity
        if not affinity and not anti_affinity and not self._forbidding(pod):
            return SKIP
        required = _Required([], [], False)
        if affinity:
            together = self._together(affinity)
            required.affinity = [self._sums(together, each.topology_key) for each in affinity]
            required.first_of_series = together.matches(pod) and _in(together.namespaces, pod)
        required.anti_affinity = [self._sums(self._counted(each), each.topology_key) for each in anti_affinity]
        state[self.name] = required
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        required: _Required = state[self.name]
        mask = self._apart(required.anti_affinity, self._forbidding(pod), rows)
        return mask & self._liked(required, rows) if required.affinity else mask

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        required: _Required = state[self.name]
        found: list[tuple[Status, RowArray]] = []
        answers: tuple[tuple[Status, Callable[[Rows], Mask]], ...] = (
            (NOT_LIKED, lambda some: self._liked(required, some)),
            (DISLIKED, lambda some: self._apart(required.anti_affinity, (), some)),
            (DISLIKED_BY_OTHERS, lambda some: self._apart((), self._forbidding(pod), some)),
        )
        for status, answer in answers:
            mask = answer(rows)
            if not mask.all():
                found.append((status, rows[~mask]))
                rows = rows[mask]
        return found

    def _liked(self, required: _Required, rows: Rows) -> Mask:
        snapshot = self.handle.snapshot
        mask: Mask = np.ones(snapshot.count(rows), dtype=np.bool_)
        alone = required.first_of_series and not any(each.sums.any() for each in required.affinity)
        for each in required.affinity:
            values = snapshot.label(each.key)[rows]
            mask &= values != 0 if alone else (each.sums > 0).take(values)
        return mask

    def _apart(self, disliked: Sequence[Domains], forbidding: Sequence[Term], rows: Rows) -> Mask:
        """Where none of those is that the pod, or who, cannot bear the other. Domains first, then rows once a label."""
        snapshot = self.handle.snapshot
        allowed: dict[str, Mask] = {}
        for key in (*(each.key for each in disliked), *(each.term.topology_key for each in forbidding)):
            if key not in allowed:
                snapshot.label(key)  # brings its values, if it was never asked for
                allowed[key] = np.ones(len(snapshot.label_values), dtype=np.bool_)
        for each in disliked:
            allowed[each.key][: len(each.sums)] &= each.sums == 0
        for term in forbidding:
            term.forbid(allowed[term.term.topology_key])
        mask: Mask | None = None
        for key, by_value in allowed.items():
            here = by_value.take(snapshot.label(key)[rows])
            mask = here if mask is None else mask & here
        return np.ones(snapshot.count(rows), dtype=np.bool_) if mask is None else mask

    def _forbidding(self, pod: PodInfo) -> list[Term]:
        found = self._others.about(pod, self._labels_of(pod.namespace))
        return [each for each in found if each.say is Say.NOT_HERE and each.anywhere]

    # -- score

    def pre_score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Status | None:
        own = pod.preferred_affinity or pod.preferred_anti_affinity
        if not own and (self._ignore_others or not len(self._others)):
            return SKIP
        votes: dict[str, Int64] = {}
        for sign, terms in ((1, pod.preferred_affinity), (-1, pod.preferred_anti_affinity)):
            for term in terms:
                sums = self._sums(self._counted(term), term.topology_key).sums
                if sums.any():
                    ballot = self._ballot(votes, term.topology_key)
                    ballot[: len(sums)] += sign * term.weight * sums
        for each in self._others.about(pod, self._labels_of(pod.namespace)):
            weight = self._weight(each)
            if weight and each.anywhere:
                each.vote(self._ballot(votes, each.term.topology_key), weight)
        if not votes:
            return SKIP
        state[f"{self.name}/score"] = votes
        return None

    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        votes: dict[str, Int64] = state[f"{self.name}/score"]
        snapshot = self.handle.snapshot
        scores: Scores = np.zeros(snapshot.count(rows), dtype=np.int64)
        for key, by_value in votes.items():
            scores += by_value.take(snapshot.label(key)[rows])
        return scores

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores, rows: RowArray) -> Scores:
        lowest, highest = (int(scores.min()), int(scores.max())) if len(scores) else (0, 0)
        if highest == lowest:
            return np.zeros_like(scores)
        if highest - lowest < len(scores):  # few distinct scores: divide each once
            table = _spread_out(np.arange(highest - lowest + 1), highest - lowest)
            return table.take(scores - lowest)
        return _spread_out(scores - lowest, highest - lowest)

    def _ballot(self, votes: dict[str, Int64], key: str) -> Int64:
        length = len(self.handle.snapshot.label_values)
        found = votes.get(key)
        if found is None or len(found) < length:  # the column of another label may have brought new values
            longer = np.zeros(length, dtype=np.int64)
            if found is not None:
                longer[: len(found)] = found
            found = votes[key] = longer
        return found

    def _weight(self, term: Term) -> int:
        if term.say is Say.HERE:
            return self._hard_weight
        return term.term.weight if term.say is Say.RATHER else -term.term.weight if term.say is Say.RATHER_NOT else 0

    # -- which pods terms speak of

    def _sums(self, counted: _Counted, topology_key: str) -> Domains:
        return self._domains.get(counted.key, counted.amount, counted.namespaces, topology_key)

    def _counted(self, term: AffinityTerm) -> _Counted:
        """The pods a term speaks of.

        Upstream 1.36 also counts pods of all namespaces when a namespace selector matches no labels at all (NotIn,
        DoesNotExist), because it drops the selector from a copy of the term only; we do what is documented.
        """
        found = self._resolved.get(term)
        if found is None:
            if len(self._resolved) >= _MOST:
                self._resolved.clear()
            found = self._resolved[term] = self._resolve(term)
        return found

    def _resolve(self, term: AffinityTerm) -> _Counted:
        chosen, selector = term.namespace_selector, term.selector
        namespaces: frozenset[str] | None = term.namespaces
        if chosen.empty():
            namespaces = None
        elif not chosen.selects_nothing:
            namespaces = term.namespaces | {
                each.metadata.name or ""
                for each in self._namespaces.items()
                if each.metadata and chosen.matches(each.metadata.labels)
            }
        wanted = "nothing" if selector.selects_nothing else f"={selector}"
        where = "*" if namespaces is None else ",".join(sorted(namespaces))
        return _Counted(f"pods/{where}/{wanted}", lambda pod: selector.matches(pod.labels), namespaces)

    def _together(self, terms: tuple[AffinityTerm, ...]) -> _Counted:
        """The pods that all the terms speak of."""
        if len(terms) == 1:
            return self._counted(terms[0])
        counted = [self._counted(each) for each in terms]
        limited = [each.namespaces for each in counted if each.namespaces is not None]
        namespaces = frozenset.intersection(*limited) if limited else None
        return _Counted(
            tuple(each.key for each in counted), lambda pod: all(each.matches(pod) for each in counted), namespaces
        )

    def _labels_of(self, namespace: str) -> labels.Labels:
        found = self._namespaces.named(namespace)
        return found.metadata.labels if found is not None and found.metadata else None

    def _namespace_changed(self, namespace: Namespace) -> None:
        self._resolved.clear()
        self._others.forget()

    def _namespace_updated(self, old: Namespace, new: Namespace) -> None:
        if (old.metadata and old.metadata.labels) != (new.metadata and new.metadata.labels):
            self._namespace_changed(new)


def _spread_out(scores: Scores, highest: int) -> Scores:
    return (float(MAX_SCORE) * (scores / highest)).astype(np.int64)


def _in(namespaces: frozenset[str] | None, pod: PodInfo) -> bool:
    return namespaces is None or pod.namespace in namespaces
