"""What each pod on the node has been allocated, kept on disk, and the resizes that wait for room.

The kubelet works with `allocated(pod)` everywhere: the pod as it was admitted or last resized, whatever its spec asks
for meanwhile. What a spec asks for more becomes allocated by `retry`, when the node has room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pybernetes.api.core.v1 import Pod, PodCondition
from pybernetes.api.times import Clock

Admit = Callable[[Pod, list[Pod]], None]
"""Raises `PodRefused` if a pod does not fit beside others (their allocated forms)."""


class AllocationManager:
    """Allocated resources of pods by uid."""

    def __init__(
        self,
        root: Path,
        clock: Clock,
        *,
        active_pods: Callable[[], list[Pod]],
        admit: Admit,
        event: Callable[[Pod, str, str, str], None],
        cpu_manager_policy: str = "none",
    ) -> None:
        """`root` is the kubelet's folder; `active_pods` the pods that are not terminated (as the API has them);
        `admit` the node's own checks, asked again for a resize; `event(pod, type, reason, message)`."""
        raise NotImplementedError

    def allocated(self, pod: Pod) -> Pod:
        """The pod with what it has been allocated in its spec; the same object if nothing differs."""
        raise NotImplementedError

    def add(self, pod: Pod) -> Pod:
        """Admit a pod (`PodRefused` if not) and remember what it gets; returns the allocated form.

        A pod that was known before (the kubelet was restarted) is admitted with what it had.
        """
        raise NotImplementedError

    def push(self, uid: str) -> None:
        """Call when a pod is new after a restart, or its spec has changed: it may want a resize."""
        raise NotImplementedError

    def retry(self) -> list[Pod]:
        """Try all resizes that wait; returns pods that must be synced (allocated anew, or another condition).

        Call after `push`, when pods have been added, removed or terminated, and every `RETRY_SECONDS`.
        """
        raise NotImplementedError

    def conditions(self, uid: str) -> list[PodCondition]:
        """PodResizePending and PodResizeInProgress, as far as they hold: for the pod's status."""
        raise NotImplementedError

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        raise NotImplementedError

    def remove_orphans(self, known: Iterable[str]) -> None:
        """Forget all pods but these."""
        raise NotImplementedError
