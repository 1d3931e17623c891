"""Finds the node for one pod: filters, extenders, scores, choice.

All nodes are looked at, because they are looked at all at once; `percentageOfNodesToScore` is honoured when it is set.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

import numpy as np

from .explain.verdicts import diagnose_all
from .framework.diagnosis import NO_NODES, Diagnosis
from .framework.extender import ExtenderError
from .framework.plugin import MAX_SCORE, Mask, Normalize, RowArray, Scores, default_normalize
from .framework.podinfo import PodInfo
from .framework.runtime import Framework, failed
from .framework.shared import PluginError, Shared, invalid_score
from .framework.state import CycleState
from .framework.status import Code, Status
from .nominated import FIT, PODS, by_reason, only_resources, short_of

_NO_ROWS: RowArray = np.empty(0, dtype=np.intp)
MIN_FEASIBLE_NODES = 100
MAX_EXTENDER_PRIORITY = 10
EXTENDER = "Extender"
"""Stands for extenders among the plugins that refused a pod."""
log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Result:
    """Where a pod goes, or why nowhere; and how that was found, for who explains it."""

    node_name: str = ""
    status: Status | None = None
    """ERROR, or UNRESOLVABLE without nodes; None with a node or a diagnosis."""
    diagnosis: Diagnosis | None = None
    masks: dict[str, Mask] = field(default_factory=dict)
    feasible: RowArray | None = None
    num_feasible: int = 0
    shared: Shared | None = None
    cluster_scores: dict[str, tuple[Scores, Scores]] = field(default_factory=dict)
    total: Scores | None = None
    whole: bool = False
    """Whether the scores that pods share are normalised over just the rows that are feasible for this one."""

    def scores_at(self, positions: RowArray | slice) -> dict[str, Scores]:
        """Normalised scores by plugin, of these positions of `feasible`."""
        found: dict[str, Scores] = {}
        if self.feasible is None or self.shared is None:
            return found
        rows = self.feasible[positions]
        for name in self.shared.score_names:
            if self.whole:
                found[name] = self.shared.normalized[name][rows]
            else:
                found[name] = self.shared.scores_of(name, self.feasible)[1][positions]
        for name, (_, scores) in self.cluster_scores.items():
            found[name] = scores[positions]
        return found


class Algorithm:
    """The choice of a node, for all profiles of a scheduler."""

    def __init__(self, percentage_of_nodes_to_score: int | None = None) -> None:
        self._percentage = percentage_of_nodes_to_score
        self._next_start = 0
        """Where sampling goes on, so that all nodes get their turn."""

    async def schedule(self, framework: Framework, state: CycleState, pod: PodInfo) -> Result:
        """Find a node. Awaits only extenders."""
        result = Result()
        if framework.snapshot.num_nodes == 0:
            result.status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NO_NODES)
            return result
        try:
            rows = await self._find(framework, state, pod, result)
            if rows is None:
                return result
            if len(rows) == 1:
                result.node_name = framework.snapshot.info(int(rows[0])).name
                return result
            await self._choose(framework, state, pod, rows, result)
        except PluginError as error:
            log.error("plugin %s failed", error.plugin, exc_info=error)
            if result.shared is not None:
                framework.shared.forget(result.shared)
            result.status = Status(Code.ERROR, str(error), plugin=error.plugin, error=error)
        except ExtenderError as error:
            result.status = Status.of_error(error)
        return result

    # -- filters

    async def _find(self, framework: Framework, state: CycleState, pod: PodInfo, result: Result) -> RowArray | None:
        snapshot = framework.snapshot
        shared = result.shared = framework.shared.get(pod)
        begun = time.perf_counter()
        names, status, naming = framework.run_pre_filters(state, pod, shared)
        framework.observe("PreFilter", begun, status)
        if status is not None:
            if not status.rejected:
                result.status = status
                return None
            diagnosis = result.diagnosis = Diagnosis(snapshot.num_nodes, snapshot.size)
            diagnosis.unschedulable_plugins |= naming
            diagnosis.pre_filter_message = status.message
            diagnosis.refuse(status, np.flatnonzero(snapshot.alive[: snapshot.size]))
            return None
        nominated = pod.pod.status.nominated_node_name if pod.pod.status else None
        if nominated:
            row = snapshot.row_of.get(nominated)
            if row is not None and snapshot.alive[row] and framework.run_filters(state, pod, row) is None:
                rows = np.array([row], dtype=np.intp)
                rows = await self._ask_extenders(framework, pod, rows, Diagnosis(snapshot.num_nodes, snapshot.size))
                if len(rows):
                    return rows
        return await self._pass_filters(framework, state, pod, result, names, naming)

    async def _pass_filters(
        self,
        framework: Framework,
        state: CycleState,
        pod: PodInfo,
        result: Result,
        names: frozenset[str] | None,
        naming: set[str],
    ) -> RowArray | None:
        snapshot, shared = framework.snapshot, result.shared
        assert shared is not None
        size, begun = snapshot.size, time.perf_counter()
        result.masks = dict(shared.masks)
        mask = shared.feasible[:size]
        considered: Mask | None = None
        if names is not None:
            considered = np.zeros(size, dtype=np.bool_)
            considered[[row for row in map(snapshot.row_of.get, names) if row is not None]] = True
            considered &= snapshot.alive[:size]
            mask = mask & considered
        rows = np.flatnonzero(mask)
        for plugin in framework.cluster_filters:
            if plugin.name in state.skip_filter:
                continue
            if not len(rows):
                break
            try:
                passed = plugin.filter(state, pod, rows)
            except Exception as error:
                raise PluginError(
                    plugin.name, failed(plugin, error, f'running "{plugin.name}" filter plugin').message
                ) from error
            whole = np.ones(size, dtype=np.bool_)
            whole[rows] = passed
            result.masks[plugin.name] = whole
            if not passed.all():
                rows = rows[passed]
        rows, by_nominated = self._without_nominated(framework, state, pod, rows)
        rows = self._sample(framework, rows)
        framework.observe("Filter", begun)
        diagnosis: Diagnosis | None = None
        if any(each.is_filter for each in framework.extenders) and len(rows):
            diagnosis = Diagnosis(snapshot.num_nodes, size)
            left = await self._ask_extenders(framework, pod, rows, diagnosis)
            if len(left) != len(rows):
                diagnosis.unschedulable_plugins.add(EXTENDER)
            rows = left
        result.num_feasible = len(rows)
        if len(rows):
            return rows
        result.diagnosis = self._diagnose(framework, state, pod, result, considered, naming, by_nominated, diagnosis)
        return None

    def _without_nominated(
        self, framework: Framework, state: CycleState, pod: PodInfo, rows: RowArray
    ) -> tuple[RowArray, RowArray]:
        """The rows that are left, and those that are full when the pods that are to come there are counted."""
        sums = framework.nominated.of(pod)
        if sums is None or not len(rows):
            return rows, _NO_ROWS
        if only_resources(framework.filters, state):
            full = np.zeros(len(rows), dtype=np.bool_)
            for _, where in short_of(framework.snapshot, state[FIT][0], sums, rows):
                full |= where
            return rows[~full], rows[full]
        full = np.zeros(len(rows), dtype=np.bool_)
        for position in np.flatnonzero(sums[PODS][rows]).tolist():
            status = framework.run_filters(state, pod, int(rows[position]))
            if status is not None:
                if not status.rejected:
                    raise PluginError(status.plugin, status.message)
                full[position] = True
        return rows[~full], rows[full]

    def _sample(self, framework: Framework, rows: RowArray) -> RowArray:
        percentage = framework.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self._percentage
        number = framework.snapshot.num_nodes
        if not percentage or percentage >= 100 or number < MIN_FEASIBLE_NODES:
            return rows
        most = max(MIN_FEASIBLE_NODES, number * percentage // 100)
        if len(rows) <= most:
            return rows
        start = int(np.searchsorted(rows, self._next_start))
        taken = np.concatenate((rows[start:], rows[:start]))[:most]
        self._next_start = (int(taken[-1]) + 1) % max(1, framework.snapshot.size)
        return np.sort(taken)

    async def _ask_extenders(
        self, framework: Framework, pod: PodInfo, rows: RowArray, diagnosis: Diagnosis
    ) -> RowArray:
        snapshot = framework.snapshot
        for extender in framework.extenders:
            if not len(rows):
                break
            if not extender.is_filter or not extender.is_interested(pod):
                continue
            nodes = [node for row in rows.tolist() if (node := snapshot.info(row).node) is not None]
            try:
                answer = await extender.filter(pod.pod, nodes)
            except ExtenderError as error:
                if extender.ignorable:
                    log.info("extender %s is skipped: %s", extender.name, error)
                    continue
                raise
            for failures, code in (
                (answer.failed_and_unresolvable, Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
                (answer.failed, Code.UNSCHEDULABLE),
            ):
                for name, message in failures.items():
                    row = snapshot.row_of.get(name)
                    known = code == Code.UNSCHEDULABLE and name in answer.failed_and_unresolvable
                    if row is not None and not known:
                        diagnosis.refuse(Status(code, message), np.array([row], dtype=np.intp))
            left = {row for name in answer.feasible if (row := snapshot.row_of.get(name)) is not None}
            rows = np.array([row for row in rows.tolist() if row in left], dtype=np.intp)
        return rows

    def _diagnose(
        self,
        framework: Framework,
        state: CycleState,
        pod: PodInfo,
        result: Result,
        considered: Mask | None,
        naming: set[str],
        by_nominated: RowArray,
        diagnosis: Diagnosis | None,
    ) -> Diagnosis:
        snapshot = framework.snapshot
        diagnosis = diagnosis or Diagnosis(snapshot.num_nodes, snapshot.size)
        if framework.check_all_filters:
            diagnose_all(framework, pod, diagnosis)
            return diagnosis
        left = snapshot.alive[: snapshot.size].copy()
        if considered is not None:
            others = np.flatnonzero(left & ~considered)
            left &= considered
            diagnosis.unschedulable_plugins |= naming
            if len(others):
                said = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(naming))}]"
                diagnosis.refuse(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, said), others)
        framework.explain_masks(state, pod, left, result.masks, diagnosis)
        for status, rows in self._full(framework, state, pod, by_nominated):
            diagnosis.refuse(status, rows)
        return diagnosis

    def _full(
        self, framework: Framework, state: CycleState, pod: PodInfo, rows: RowArray
    ) -> list[tuple[Status, RowArray]]:
        """Why rows are full when nominated pods are counted."""
        sums = framework.nominated.of(pod)
        if sums is None or not len(rows):
            return []
        if only_resources(framework.filters, state):
            return by_reason(short_of(framework.snapshot, state[FIT][0], sums, rows), rows)
        groups: dict[Status, list[int]] = {}
        for row in rows.tolist():
            status = framework.run_filters(state, pod, row)
            if status is not None:
                groups.setdefault(status, []).append(row)
        return [(status, np.array(found, dtype=np.intp)) for status, found in groups.items()]

    # -- scores

    async def _choose(
        self, framework: Framework, state: CycleState, pod: PodInfo, rows: RowArray, result: Result
    ) -> None:
        shared = result.shared
        assert shared is not None
        size = framework.snapshot.size
        if not framework.scores and not framework.extenders:
            result.node_name = framework.snapshot.info(int(rows[framework.random.randrange(len(rows))])).name
            return
        begun = time.perf_counter()
        shared.score(pod)
        state.data.update(shared.state.data)
        state.skip_score |= shared.state.skip_score
        for plugin in framework.cluster_pre_scores:
            try:
                status = plugin.pre_score(state, pod, rows)
            except Exception as error:
                raise PluginError(
                    plugin.name, failed(plugin, error, f'running PreScore plugin "{plugin.name}"').message
                ) from error
            if status is not None:
                if not status.is_skip:
                    raise PluginError(plugin.name, f'running PreScore plugin "{plugin.name}": {status.message}')
                state.skip_score.add(plugin.name)
        framework.observe("PreScore", begun)
        begun = time.perf_counter()
        # The common case: every row that the shared filters left is there, and its sum is known.
        whole = result.whole = len(rows) == int(np.count_nonzero(shared.feasible[:size]))
        total = shared.total[:size][rows] if whole else shared.total_of(rows)
        for score in framework.cluster_scores:
            if score.name in state.skip_score:
                continue
            try:
                raw = score.score(state, pod, rows)
                if score.normalize == Normalize.CUSTOM:
                    scores = score.normalize_scores(state, pod, raw.copy(), rows)
                elif score.normalize == Normalize.NONE:
                    scores = raw
                else:
                    scores = default_normalize(raw, score.normalize == Normalize.REVERSED)
            except Exception as error:
                doing = f'running Score plugins: plugin "{score.name}" failed with'
                raise PluginError(score.name, failed(score, error, doing).message) from error
            if scores.max() > MAX_SCORE or scores.min() < 0:
                raise invalid_score(score.name, scores)
            result.cluster_scores[score.name] = (raw, scores)
            total = total + scores * framework.weights[score.name]
        framework.observe("Score", begun)
        if framework.extenders:
            total = total + await self._ask_prioritizers(framework, pod, rows)
        best = np.flatnonzero(total == total.max())
        index = int(best[framework.random.randrange(len(best))]) if len(best) > 1 else int(best[0])
        result.feasible = rows
        result.total = total
        result.node_name = framework.snapshot.info(int(rows[index])).name

    async def _ask_prioritizers(self, framework: Framework, pod: PodInfo, rows: RowArray) -> Scores:
        snapshot = framework.snapshot
        total: Scores = np.zeros(len(rows), dtype=np.int64)
        index = {snapshot.info(row).name: position for position, row in enumerate(rows.tolist())}
        nodes = [node for row in rows.tolist() if (node := snapshot.info(row).node) is not None]
        for extender in framework.extenders:
            if not extender.is_prioritizer or not extender.is_interested(pod):
                continue
            try:
                answer = await extender.prioritize(pod.pod, nodes)
            except ExtenderError as error:
                log.info("extender %s gives no scores: %s", extender.name, error)
                continue
            for name, score in answer.items():
                if name in index:
                    total[index[name]] += score * extender.weight * (MAX_SCORE // MAX_EXTENDER_PRIORITY)
        return total
