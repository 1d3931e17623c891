"""Makes room for a pod that fits nowhere by evicting less important ones from one node.

The rows that were refused for a reason that goes away with other pods are looked at, from a random one on, until there
are enough candidates; the one that does the least harm is chosen, its victims are evicted while scheduling goes on, and
the pod is nominated to the node. Where only resources are in the way, which is nearly always, all rows are looked at
together (`preemption/resources.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pybernetes.api.core.podconditions import find_pod_condition
from pybernetes.api.core.v1 import Pod
from pybernetes.api.policy.v1 import PodDisruptionBudget
from pybernetes.client.keys import Key

from ..config.v1.args import DefaultPreemptionArgs
from ..framework.diagnosis import Diagnosis
from ..framework.events import Action, ClusterEvent, EventWithHint, Hint, Resource
from ..framework.extender import ExtenderError, Victims
from ..framework.handle import Handle
from ..framework.plugin import PostFilterPlugin, PostFilterResult, PreEnqueuePlugin
from ..framework.podinfo import PodInfo
from ..framework.state import CycleState
from ..framework.status import UNRESOLVABLE, UNSCHEDULABLE, Code, Status
from ..preemption import ranking
from ..preemption.executor import Executor
from ..preemption.search import search
from ..preemption.table import VictimTable
from ..preemption.victims import Budgets, importance


class DefaultPreemption(PostFilterPlugin, PreEnqueuePlugin):
    """Preemption as upstream does it by default."""

    name = "DefaultPreemption"
    Args = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._percentage = args.min_candidate_nodes_percentage or 0
        self._absolute = args.min_candidate_nodes_absolute or 0
        self._pods = handle.informer(Pod)
        self._budget_informer = handle.informer(PodDisruptionBudget)
        self._budget_informer.add_handler(self._forget_budgets, self._forget_budgets, self._forget_budgets)
        self._budgets: Budgets | None = None
        self._table = VictimTable(handle.snapshot)
        self.executor = Executor(handle, self.name)

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """A pod whose victims have not been deleted yet would only preempt again."""
        if self.executor.running(pod.uid):
            return Status(UNRESOLVABLE, "waiting for the preemption for this pod to be finished")
        self.executor.let_in(pod)
        return None

    def released(self, event: ClusterEvent, old: Any, new: Any) -> Iterable[Key] | None:
        """Those whose last victim this was; it would be much to ask of all whenever one victim of many goes."""
        return self.executor.released(old) if isinstance(old, Pod) and new is None else None

    def events_to_register(self) -> Sequence[EventWithHint]:
        # To look again at `pre_enqueue` when victims go. Whether the pod fits then is for others to say.
        return (EventWithHint(ClusterEvent(Resource.POD, Action.DELETE), lambda pod, old, new: Hint.SKIP),)

    async def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Find the best node to make room on, start the evictions and nominate the pod."""
        self.handle.metrics.preemption_attempts.inc()
        result, status = await self._preempt(state, pod, diagnosis)
        if status is not None and status.reasons:
            status = Status(status.code, f"preemption: {status.message}", plugin=status.plugin, error=status.error)
        return result, status

    async def _preempt(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        current = self._pods.get(pod.key)
        if current is None:
            return None, Status(Code.ERROR, f'pod "{pod.name}" not found')
        if why := self._not_eligible(current, pod, diagnosis):
            return None, Status(UNSCHEDULABLE, why)
        if not self.handle.snapshot.num_nodes:
            return None, Status(Code.ERROR, "no nodes available")
        rows = diagnosis.rows_with(Code.UNSCHEDULABLE)
        enough = self._enough(len(rows))
        candidates = search(self.handle, self._table, self._current_budgets, state, pod, rows, enough)
        if not candidates.number:
            if candidates.errors:
                return None, candidates.errors[0]
            message = candidates.message(self.handle.snapshot.num_nodes)
            return PostFilterResult(""), Status(UNSCHEDULABLE, message)
        interested = [each for each in self.handle.extenders if each.supports_preemption and each.is_interested(pod)]
        if interested:
            victims: Mapping[str, Victims] = candidates.all()
            for extender in interested:
                try:
                    victims = await extender.process_preemption(current, victims, self._pods_on)
                    victims = _checked(victims, extender.ignorable)
                except ExtenderError as error:
                    if extender.ignorable:
                        continue
                    return None, Status.of_error(error)
                if not victims:
                    return None, Status(UNSCHEDULABLE, "no candidate node for preemption")
            node_name, chosen = min(victims.items(), key=lambda item: ranking.harm(item[1]))
        else:
            node_name, chosen = candidates.best()
        self.executor.start(pod, node_name, chosen.pods)
        return PostFilterResult(node_name), None

    def _not_eligible(self, current: Pod, pod: PodInfo, diagnosis: Diagnosis) -> str:
        if pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        nominated = (current.status.nominated_node_name if current.status else None) or ""
        row = self.handle.snapshot.row_of.get(nominated) if nominated else None
        if row is None:
            return ""
        status = diagnosis.status(row)
        if status is not None and status.code == UNRESOLVABLE:
            return ""
        for each in self.handle.snapshot.info(row).pods.values():
            if each.priority < pod.priority and _terminating_by_preemption(each.pod):
                return "not eligible due to a terminating pod on the nominated node."
        return ""

    def _pods_on(self, node_name: str) -> Sequence[PodInfo]:
        row = self.handle.snapshot.row_of.get(node_name)
        if row is None:
            raise ExtenderError(f'nodeinfo not found for node name "{node_name}"')
        return list(self.handle.snapshot.info(row).pods.values())

    def _enough(self, potential: int) -> int:
        """How many candidates are enough of so many rows."""
        return min(max(potential * self._percentage // 100, self._absolute), potential)

    def _current_budgets(self) -> Budgets:
        if self._budgets is None:
            self._budgets = Budgets(list(self._budget_informer.items()))
        return self._budgets

    def _forget_budgets(self, *_: PodDisruptionBudget) -> None:
        self._budgets = None


def _checked(victims: Mapping[str, Victims], ignorable: bool) -> dict[str, Victims]:
    """Validate an extender's answer: each node needs victims, unless the extender may be ignored."""
    for node_name, each in victims.items():
        if not each.pods and not ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{node_name}"')
    return {
        name: Victims(sorted(each.pods, key=importance), each.num_pdb_violations)
        for name, each in victims.items()
        if each.pods
    }


def _terminating_by_preemption(pod: Pod) -> bool:
    if pod.metadata is None or pod.metadata.deletion_timestamp is None:
        return False
    condition = find_pod_condition(pod.status, "DisruptionTarget")
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"
