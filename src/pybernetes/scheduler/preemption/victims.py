"""Selects the victims on a node: as few as possible, the less important ones, and within disruption budgets.

All pods of lower priority are removed for the sake of argument. If the pod fits then, they are let back one by one,
the most important first (those whose eviction would violate a budget before all others), and a pod that does not fit
beside the preemptor is a victim.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from pybernetes.api import labels
from pybernetes.api.policy.v1 import PodDisruptionBudget
from pybernetes.api.times import parse_time

from ..framework.extender import Victims
from ..framework.handle import Handle
from ..framework.podinfo import PodInfo
from ..framework.state import CycleState
from ..framework.status import Code, Status

NO_VICTIMS = "No preemption victims found for incoming pod"


def start_time(pod: PodInfo) -> float:
    """When the pod was started; one that has not been yet is younger than all."""
    status = pod.pod.status
    return parse_time(status.start_time) if status is not None and status.start_time else inf


def importance(pod: PodInfo) -> tuple[int, float, str]:
    """Smaller is more important: the priority counts first, then the age. The uid only makes the order total."""
    return -pod.priority, start_time(pod), pod.uid


class Budgets:
    """Disruption budgets, asked which pods they protect. Made anew when one changes."""

    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[tuple[int, labels.Selector, PodDisruptionBudget]]] = {}
        self._allowed: list[int] = []
        self._matching: dict[str, tuple[int, ...]] = {}
        for budget in budgets:
            try:
                selector = labels.from_label_selector(budget.spec.selector if budget.spec else None)
            except labels.SelectorError:
                continue  # matches nothing
            if not selector.requirements:
                continue  # neither does one that is empty
            namespace = (budget.metadata.namespace if budget.metadata else None) or ""
            self._by_namespace.setdefault(namespace, []).append((len(self._allowed), selector, budget))
            self._allowed.append((budget.status.disruptions_allowed if budget.status else None) or 0)

    def __bool__(self) -> bool:
        return bool(self._allowed)

    def matching(self, pod: PodInfo) -> tuple[int, ...]:
        """The budgets that count this pod's going, by number. One that the API server has counted is not among them."""
        found = self._matching.get(pod.uid)
        if found is None:
            found = tuple(
                number
                for number, selector, budget in self._by_namespace.get(pod.namespace, ())
                if pod.labels
                and selector.matches(pod.labels)
                and pod.name not in ((budget.status.disrupted_pods if budget.status else None) or {})
            )
            self._matching[pod.uid] = found
        return found

    def violating(self, pods: Sequence[PodInfo]) -> list[bool]:
        """For each of these pods, which go in this order, whether its going breaks a budget."""
        left: dict[int, int] = {}
        result: list[bool] = []
        for pod in pods:
            broken = False
            for number in self.matching(pod):
                left[number] = left.get(number, self._allowed[number]) - 1
                broken |= left[number] < 0
            result.append(broken)
        return result


def select_victims(handle: Handle, state: CycleState, pod: PodInfo, row: int, budgets: Budgets) -> Victims | Status:
    """The victims on this row for the pod to fit, or why it would not fit all the same.

    For any plugins: each step asks all of them. Leaves snapshot and state as they were.
    """
    snapshot = handle.snapshot
    potential = sorted(
        (each for each in snapshot.info(row).pods.values() if each.priority < pod.priority), key=importance
    )
    if not potential:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NO_VICTIMS)
    state = state.clone()
    with snapshot.what_if() as change:
        for each in potential:
            change.remove(each, row)
            if (status := handle.run_remove_pod(state, pod, each, row)) is not None:
                return _as_error(status)
        if (status := handle.run_filters(state, pod, row)) is not None:
            return status
        violating = budgets.violating(potential)
        victims: list[PodInfo] = []
        violations = 0
        for wanted in (True, False):
            for each, broken in zip(potential, violating, strict=True):
                if broken is not wanted:
                    continue
                change.add(each, row)
                if (status := handle.run_add_pod(state, pod, each, row)) is not None:
                    return _as_error(status)
                if handle.run_filters(state, pod, row) is None:
                    continue
                change.remove(each, row)
                if (status := handle.run_remove_pod(state, pod, each, row)) is not None:
                    return _as_error(status)
                victims.append(each)
                violations += wanted
    if not victims:
        return nobody_has_to_go(snapshot.names[row])
    victims.sort(key=importance)
    return Victims(victims, violations)


def nobody_has_to_go(node_name: str) -> Status:
    """A node that was refused and has room with all its pods: an inconsistency."""
    return Status(Code.ERROR, f'expected at least one victim pod on node "{node_name}"')


def _as_error(status: Status) -> Status:
    return Status(Code.ERROR, *status.reasons, plugin=status.plugin, error=status.error)
