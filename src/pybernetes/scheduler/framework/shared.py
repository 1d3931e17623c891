"""Caches plugins' results that equal pods share: those that depend, for a row, on that row alone.

Pods of one controller are equal in everything that such plugins sign. Their masks and scores are kept from pod to pod,
and only rows that changed since (mostly the one node that got the last pod) are asked about again: the work for a pod
is then a handful of operations on one row, and choosing the best of all.

Invariant after `sync`: for every row below the snapshot's size, `feasible[row]` is `alive` and all of `masks`;
`total[row]` is the weighted sum of `normalized` where feasible, else -1.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .plugin import (
    MAX_SCORE,
    FilterPlugin,
    Mask,
    Normalize,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    RowArray,
    Scope,
    ScorePlugin,
    Scores,
    default_normalize,
)
from .podinfo import PodInfo
from .state import CycleState
from .status import Code, Status

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot

MOST_BYTES = 64 << 20
"""The memory limit of all shared results of a profile."""
_BYTES_PER_ROW = 80
FEW = 4
"""Up to so many rows, plain numbers are quicker than arrays."""


class PluginError(Exception):
    """A plugin raised, or answered nonsense."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin


class LocalPlugins:
    """The plugins of a profile that take part, by extension point, in order."""

    def __init__(
        self,
        pre_filters: Sequence[PreFilterPlugin],
        filters: Sequence[FilterPlugin],
        pre_scores: Sequence[PreScorePlugin],
        scores: Sequence[ScorePlugin],
        weights: dict[str, int],
    ) -> None:
        def local(plugins: Sequence[Any]) -> list[Any]:
            return [each for each in plugins if each.scope != Scope.CLUSTER]

        self.pre_filters: list[PreFilterPlugin] = local(pre_filters)
        self.filters: list[FilterPlugin] = local(filters)
        self.pre_scores: list[PreScorePlugin] = local(pre_scores)
        self.scores: list[ScorePlugin] = [
            each for each in local(scores) if each.normalize != Normalize.CUSTOM
        ]  # one that normalises by a function of its own is asked as if its scope were the cluster
        self.weights = weights
        signers: dict[str, Plugin] = {}
        for each in (*self.pre_filters, *self.filters, *self.pre_scores, *self.scores):
            signers[each.name] = each
        self.signers = list(signers.values())


class Shared:
    """The answers for one signature."""

    def __init__(self, plugins: LocalPlugins, snapshot: Snapshot, pod: PodInfo) -> None:
        self._plugins = plugins
        self._snapshot = snapshot
        self.state = CycleState()
        self.pre_filter: dict[str, PreFilterResult | Status | None] = {}
        self.masks: dict[str, Mask] = {}
        self.raw: dict[str, Scores] = {}
        self.normalized: dict[str, Scores] = {}
        self._highest: dict[str, int] = {}
        self.feasible: Mask
        self.total: Scores
        self._filters: list[FilterPlugin] = []
        self._scores: list[ScorePlugin] | None = None
        """None until the first pod needs scores."""
        self._pod_position = self._node_position = -1
        self._capacity = 0
        self._ask_pre_filters(pod)

    def sync(self, pod: PodInfo) -> None:
        """Catch up with what has changed."""
        snapshot = self._snapshot
        nodes = snapshot.node_changes.since(self._node_position)
        pods = snapshot.pod_changes.since(self._pod_position)
        most = max(16, snapshot.size >> 3)
        if nodes is None or pods is None or self._capacity != snapshot.capacity or len(nodes) + len(pods) > most:
            self._begin(pod)
        elif nodes or pods:
            changed = set(nodes)
            both = changed.union(pods)
            if len(both) <= FEW and not self._update_few(pod, changed, both):
                self._begin(pod)
            elif len(both) > FEW:
                self._update(pod, _rows(changed), _rows(both))
        self._node_position = snapshot.node_changes.position
        self._pod_position = snapshot.pod_changes.position

    def score(self, pod: PodInfo) -> None:
        """Keep scores, too."""
        if self._scores is None:
            self._ask_pre_scores(pod)
            self._begin_scores(pod)

    def scores_of(self, name: str, rows: RowArray) -> tuple[Scores, Scores]:
        """A plugin's scores of some feasible rows, raw and normalised over these."""
        raw = self.raw[name][rows]
        how = next(each.normalize for each in self._scores or () if each.name == name)
        if how == Normalize.NONE:
            return raw, raw
        if len(raw) and int(raw.max()) == self._highest[name]:
            return raw, self.normalized[name][rows]
        return raw, default_normalize(raw, how == Normalize.REVERSED)

    def total_of(self, rows: RowArray) -> Scores:
        """The weighted sum for some feasible rows, normalised over these."""
        for each in self._scores or ():
            if each.normalize != Normalize.NONE and int(self.raw[each.name][rows].max()) != self._highest[each.name]:
                break
        else:
            return self.total[rows]
        total: Scores = np.zeros(len(rows), dtype=np.int64)
        for each in self._scores or ():
            total += self.scores_of(each.name, rows)[1] * self._plugins.weights[each.name]
        return total

    @property
    def score_names(self) -> list[str]:
        """The plugins whose scores are cached."""
        return [each.name for each in self._scores or ()]

    # -- asking plugins

    def _ask_pre_filters(self, pod: PodInfo) -> None:
        for plugin in self._plugins.pre_filters:
            try:
                result = plugin.pre_filter(self.state, pod)
            except Exception as error:
                raise _failed(plugin, error, "PreFilter") from error
            self.pre_filter[plugin.name] = result
            if isinstance(result, Status) and result.code == Code.SKIP:
                self.state.skip_filter.add(plugin.name)
        refused = any(isinstance(each, Status) and each.code != Code.SKIP for each in self.pre_filter.values())
        if not refused:
            self._filters = [each for each in self._plugins.filters if each.name not in self.state.skip_filter]

    def _ask_pre_scores(self, pod: PodInfo) -> None:
        nothing = np.empty(0, dtype=np.intp)
        for plugin in self._plugins.pre_scores:
            try:
                status = plugin.pre_score(self.state, pod, nothing)
            except Exception as error:
                raise _failed(plugin, error, "PreScore") from error
            if status is None:
                continue
            if status.code != Code.SKIP:
                raise PluginError(plugin.name, f'running PreScore plugin "{plugin.name}": {status.message}')
            self.state.skip_score.add(plugin.name)
        self._scores = [each for each in self._plugins.scores if each.name not in self.state.skip_score]

    def _filter(self, plugin: FilterPlugin, pod: PodInfo, rows: RowArray | slice) -> Mask:
        try:
            return plugin.filter(self.state, pod, rows)
        except Exception as error:
            raise _failed(plugin, error, "filter") from error

    def _score(self, plugin: ScorePlugin, pod: PodInfo, rows: RowArray | slice) -> Scores:
        try:
            return plugin.score(self.state, pod, rows)
        except Exception as error:
            raise _failed(plugin, error, "Score") from error

    # -- everything

    def _begin(self, pod: PodInfo) -> None:
        snapshot = self._snapshot
        size, rows = snapshot.size, snapshot.all_rows
        self._capacity = snapshot.capacity
        self.feasible = np.zeros(self._capacity, dtype=np.bool_)
        mask = snapshot.alive[:size].copy()
        for plugin in self._filters:
            kept = np.zeros(self._capacity, dtype=np.bool_)
            kept[:size] = self._filter(plugin, pod, rows)
            self.masks[plugin.name] = kept
            mask &= kept[:size]
        self.feasible[:size] = mask
        if self._scores is not None:
            self._begin_scores(pod)

    def _begin_scores(self, pod: PodInfo) -> None:
        snapshot = self._snapshot
        size = snapshot.size
        self.total = np.full(self._capacity, -1, dtype=np.int64)
        total: Scores = np.zeros(size, dtype=np.int64)
        feasible = self.feasible[:size]
        for plugin in self._scores or ():
            raw = np.zeros(self._capacity, dtype=np.int64)
            raw[:size] = self._score(plugin, pod, snapshot.all_rows)
            self.raw[plugin.name] = raw
            self._normalize_all(plugin)
            total += self.normalized[plugin.name][:size] * self._plugins.weights[plugin.name]
        self.total[:size] = np.where(feasible, total, -1)

    def _normalize_all(self, plugin: ScorePlugin) -> None:
        name, size = plugin.name, self._snapshot.size
        raw = self.raw[name]
        if plugin.normalize == Normalize.NONE:
            self.normalized[name] = raw
            scores = raw[:size][self.feasible[:size]]
        else:
            scores = raw[:size][self.feasible[:size]]
            highest = self._highest[name] = int(scores.max()) if len(scores) else 0
            self.normalized[name] = _scale(raw, highest, plugin.normalize == Normalize.REVERSED)
            return
        if len(scores) and (scores.max() > MAX_SCORE or scores.min() < 0):
            raise invalid_score(name, scores)

    # -- a few rows

    def _update(self, pod: PodInfo, nodes: RowArray, rows: RowArray) -> None:
        snapshot = self._snapshot
        was = self.feasible[rows]
        mask = snapshot.alive[rows]
        for plugin in self._filters:
            changed = nodes if plugin.scope == Scope.NODE else rows
            kept = self.masks[plugin.name]
            if len(changed):
                kept[changed] = self._filter(plugin, pod, changed)
            mask &= kept[rows]
        self.feasible[rows] = mask
        if self._scores is None:
            return
        total: Scores = np.zeros(len(rows), dtype=np.int64)
        again = False
        for score in self._scores:
            name = score.name
            changed = nodes if score.scope == Scope.NODE else rows
            raw = self.raw[name]
            before = raw[rows]
            if len(changed):
                raw[changed] = self._score(score, pod, changed)
            if score.normalize != Normalize.NONE:
                after = raw[rows]
                if self._highest_moved(name, before, was, after, mask):
                    self._normalize_all(score)
                    again = True
                else:
                    self.normalized[name][rows] = _scale(
                        after, self._highest[name], score.normalize == Normalize.REVERSED
                    )
            total += self.normalized[name][rows] * self._plugins.weights[name]
        if again:
            self._sum()
        else:
            self.total[rows] = np.where(mask, total, -1)

    def _update_few(self, pod: PodInfo, nodes: set[int], rows: set[int]) -> bool:
        """As `_update`, row by row; False when what scores are scaled by has moved, so that all must be scaled anew."""
        state = self.state
        doing: Plugin | None = None
        try:
            for row in rows:
                was = self.feasible.item(row)
                feasible = self._snapshot.alive.item(row)
                for plugin in self._filters:
                    doing = plugin
                    mask = self.masks[plugin.name]
                    if plugin.scope == Scope.ROW or row in nodes:
                        passed = mask[row] = plugin.filter_row(state, pod, row)
                    else:
                        passed = mask.item(row)
                    feasible = feasible and passed
                self.feasible[row] = feasible
                total = 0
                for score in self._scores or ():
                    doing = score
                    name = score.name
                    raw = self.raw[name]
                    before = after = raw.item(row)
                    if score.scope == Scope.ROW or row in nodes:
                        after = raw[row] = score.score_row(state, pod, row)
                    if score.normalize == Normalize.NONE:
                        if feasible and not 0 <= after <= MAX_SCORE:
                            raise invalid_score(name, np.array([after]))
                        total += after * self._plugins.weights[name]
                        continue
                    highest = self._highest[name]
                    if (feasible and after > highest) or (
                        was and highest and before == highest and not (feasible and after == highest)
                    ):
                        return False
                    scaled = after * MAX_SCORE // highest if highest else after
                    if score.normalize == Normalize.REVERSED:
                        scaled = MAX_SCORE - scaled if highest else MAX_SCORE
                    self.normalized[name][row] = scaled
                    total += scaled * self._plugins.weights[name]
                if self._scores is not None:
                    self.total[row] = total if feasible else -1
        except Exception as error:
            assert doing is not None
            raise _failed(doing, error, "filter" if doing in self._filters else "Score") from error
        return True

    def _highest_moved(self, name: str, before: Scores, was: Mask, after: Scores, now: Mask) -> bool:
        highest = self._highest[name]
        if highest == 0 and not after.any():
            return False
        if (after[now] > highest).any():
            return True
        lost = was & (before == highest) & ~(now & (after == highest))
        return bool(lost.any())

    def _sum(self) -> None:
        size = self._snapshot.size
        total: Scores = np.zeros(size, dtype=np.int64)
        for each in self._scores or ():
            total += self.normalized[each.name][:size] * self._plugins.weights[each.name]
        self.total[:size] = np.where(self.feasible[:size], total, -1)


class SharedWork:
    """All signatures of a profile that were asked for lately."""

    def __init__(self, plugins: LocalPlugins, snapshot: Snapshot) -> None:
        self._plugins = plugins
        self._snapshot = snapshot
        self._known: OrderedDict[Hashable, Shared] = OrderedDict()

    def get(self, pod: PodInfo) -> Shared:
        """The cached results for pods with this signature, up to date."""
        key = tuple([self._sign(each, pod) for each in self._plugins.signers])
        found = self._known.get(key)
        if found is None:
            most = max(8, MOST_BYTES // (self._snapshot.capacity * _BYTES_PER_ROW))
            while len(self._known) >= most:
                self._known.popitem(last=False)
            found = Shared(self._plugins, self._snapshot, pod)
            self._known[key] = found
        else:
            self._known.move_to_end(key)
        try:
            found.sync(pod)
        except Exception:
            del self._known[key]  # half updated
            raise
        return found

    def forget(self, shared: Shared) -> None:
        """Drop what turned out to be half updated."""
        self._known = OrderedDict((key, each) for key, each in self._known.items() if each is not shared)

    def _sign(self, plugin: Plugin, pod: PodInfo) -> Hashable:
        try:
            return plugin.sign(pod)
        except Exception as error:
            raise _failed(plugin, error, "signing") from error


def invalid_score(name: str, scores: Scores) -> PluginError:
    """Scores that are out of range, in upstream's words."""
    wrong = int(scores.max()) if scores.max() > MAX_SCORE else int(scores.min())
    return PluginError(
        name,
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score {wrong}, '
        f"it should in the range of [0, {MAX_SCORE}] after normalizing",
    )


def _scale(raw: Scores, highest: int, reverse: bool) -> Scores:
    if highest == 0:
        return np.full_like(raw, MAX_SCORE) if reverse else raw.copy()
    scaled = raw * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled


def _rows(numbers: set[int]) -> RowArray:
    return np.fromiter(numbers, dtype=np.intp, count=len(numbers))


def _failed(plugin: Plugin, error: Exception, point: str) -> PluginError:
    if isinstance(error, PluginError):
        return error
    return PluginError(plugin.name, f'running {point} plugin "{plugin.name}": {error or type(error).__name__}')
