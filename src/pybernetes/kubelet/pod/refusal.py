"""Why a node does not take a pod that was given to it: the pod becomes Failed with this reason and message."""

from __future__ import annotations

from pybernetes.api.core.podresources import qos_class
from pybernetes.api.core.v1 import Pod, PodStatus

from ..status.phase import FAILED


class PodRefused(Exception):
    """Raised by an admission check (devices, CPUs, eviction, shutdown...) that rejects a pod."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def refused_status(pod: Pod, refusal: PodRefused) -> PodStatus:
    """The status of a pod that the node rejected."""
    return PodStatus(
        phase=FAILED,
        reason=refusal.reason,
        message=f"Pod was rejected: {refusal.message}",
        qos_class=(pod.status.qos_class if pod.status else None) or qos_class(pod.spec),
        observed_generation=pod.metadata.generation if pod.metadata else None,
    )
