"""Which pods must go so that a pod the node cannot do without has room. Pure.

Only pods of lower priority that are not critical themselves; best effort before burstable before guaranteed, and no
more than needed. The scheduler has its own preemption: this one is for static pods, and for what changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pybernetes.api.core.podrequests import pod_requests
from pybernetes.api.core.podresources import qos_class
from pybernetes.api.core.v1 import Node, Pod, PodCondition

from .admission import fits
from .critical import is_critical
from .refusal import PodRefused

MESSAGE: Final = "Preempted in order to admit critical pod"
_ORDER: Final = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}


def disruption() -> PodCondition:
    """The DisruptionTarget condition of a pod that the kubelet preempted."""
    return PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="TerminationByKubelet",
        message="Pod was preempted by Kubelet to accommodate a critical pod.",
    )


def victims(pod: Pod, others: Sequence[Pod], node: Node) -> list[Pod] | None:
    """The pods to end, none if it fits anyway; None if no sacrifice would help."""
    candidates = sorted((each for each in others if _may_preempt(pod, each)), key=_value)
    chosen: list[Pod] = []
    for candidate in candidates:
        if _fits(pod, others, chosen, node):
            break
        chosen.append(candidate)
    if not _fits(pod, others, chosen, node):
        return None
    # The dearest first: who was chosen early may have been for nothing.
    for candidate in reversed(list(chosen)):
        without = [each for each in chosen if each is not candidate]
        if _fits(pod, others, without, node):
            chosen = without
    return chosen


def _fits(pod: Pod, others: Sequence[Pod], gone: Sequence[Pod], node: Node) -> bool:
    doomed = {id(each) for each in gone}
    try:
        fits(pod, [each for each in others if id(each) not in doomed], node)
    except PodRefused:
        return False
    return True


def _may_preempt(pod: Pod, other: Pod) -> bool:
    if is_critical(pod) and not is_critical(other):
        return True
    return _priority(pod) > _priority(other)


def _priority(pod: Pod) -> int:
    return (pod.spec.priority if pod.spec else None) or 0


def _value(pod: Pod) -> tuple[int, int, int]:
    """The sort key for victims: QoS class, priority, memory; of equals the one that frees most memory comes first."""
    requests = pod_requests(pod, use_status=False)
    memory = requests.get("memory")
    return _ORDER[qos_class(pod.spec)], _priority(pod), -(memory.value() if memory else 0)
