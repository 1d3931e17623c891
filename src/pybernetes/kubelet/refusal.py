"""Why a node does not take a pod that was given to it: the pod becomes Failed with this reason and message."""

from __future__ import annotations


class PodRefused(Exception):
    """Raised by whoever has a say in admitting a pod (devices, CPUs, eviction, shutdown...)."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
