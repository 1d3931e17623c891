"""Whether a simulated node takes a pod that was given to it: the kubelet's own rules, but for hardware and kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybernetes.api.core.v1 import Node, Pod, PodCondition

from ..events import PREEMPTING
from ..eviction.manager import admit as admit_under_pressure
from ..pod import admission
from ..pod.critical import is_critical
from ..pod.preemption import MESSAGE, disruption, victims
from ..pod.refusal import PodRefused
from ..status.pod_status import Eviction

Doomed = tuple[str, Eviction, PodCondition]
"""The uid of a pod that must go, why, and what its status says of that."""


class Admitting:
    """Admits pods. `active(node)` are the pods that have something of a node, `event` tells of one."""

    def __init__(self, active: Callable[[str], list[Pod]], event: Callable[[Pod, str, str, str], None]) -> None:
        self._active = active
        self._event = event

    def admit(self, pod: Pod, node: Node, pressures: Sequence[str]) -> list[Doomed]:
        """Raises `PodRefused`; else the lesser pods that must go because the node cannot do without this one."""
        admit_under_pressure(pod, pressures)
        others = self._others(pod)
        try:
            admission.admit(pod, others, node)
        except PodRefused as refusal:
            if not is_critical(pod) or not refusal.reason.startswith(admission.OUT_OF):
                raise
            doomed = victims(pod, others, node)
            if not doomed:
                raise
            admission.admit(pod, [each for each in others if each not in doomed], node)
            return [self._doom(each) for each in doomed]
        return []

    def fits(self, pod: Pod, node: Node) -> None:
        """Raises `PodRefused` if the node has not what a pod of its asks for."""
        admission.fits(pod, self._others(pod), node)

    def _others(self, pod: Pod) -> list[Pod]:
        assert pod.spec is not None
        mine = pod.metadata.uid if pod.metadata else None
        others = self._active(pod.spec.node_name or "")
        return [each for each in others if each.metadata and each.metadata.uid != mine]

    def _doom(self, pod: Pod) -> Doomed:
        self._event(pod, "Warning", PREEMPTING, MESSAGE)
        return (pod.metadata.uid if pod.metadata else None) or "", Eviction(PREEMPTING, MESSAGE), disruption()
