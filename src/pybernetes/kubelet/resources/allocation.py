"""Keeps on disk the resources that each pod has been allocated, and the resizes that wait for room.

The kubelet works with `allocated(pod)` everywhere: the pod as it was admitted or last resized, whatever its spec asks
for meanwhile. What a spec asks for more becomes allocated by `retry`, when the node has room for it. Resizes that ask
for no more than before go first, then those of high priority, then of Guaranteed pods, then those that wait longest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from pybernetes.api.core.podrequests import pod_requests
from pybernetes.api.core.podresources import qos_class
from pybernetes.api.core.v1 import Pod, PodCondition, PodSpec
from pybernetes.api.times import Clock
from pybernetes.client.keys import uid_of

from ..pod.refusal import PodRefused
from . import summary
from .amounts import amounts, resizable, with_resources
from .conditions import INFEASIBLE, ResizeConditions
from .state import PodResources, ResourceState, resources_of

STATE_FILE: Final = "allocated_pods_state"
RETRY_SECONDS: Final = 180.0
"""How often deferred resizes are tried without a reason."""

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
        fits: Admit | None = None,
    ) -> None:
        """`root` is the kubelet's folder; `active_pods` the pods that are not terminated (as the API has them);
        `admit` all checks of the node for a new pod, `fits` those that a resize must pass too (default: the same);
        `event(pod, type, reason, message)`."""
        self._allocated = ResourceState(root / STATE_FILE)
        self._active_pods, self._admit, self._fits, self._event = active_pods, admit, fits or admit, event
        self._cpu_manager_policy = cpu_manager_policy
        self.resize_conditions = ResizeConditions(clock)
        self.infeasible: Counter[str] = Counter()
        """Resizes that can never be, by the check that refused them."""
        self._waiting: list[str] = []
        """Uids of pods whose resize is to be tried."""

    def allocated(self, pod: Pod) -> Pod:
        """The pod with what it has been allocated in its spec; the same object if nothing differs."""
        found = self._allocated.get(uid_of(pod))
        return pod if found is None else with_resources(pod, found.containers, found.pod)

    def add(self, pod: Pod) -> Pod:
        """Admit a pod (`PodRefused` if not) and remember what it gets; returns the allocated form. Then call `save`.

        A pod that was known before (the kubelet was restarted) is admitted with what it had.
        """
        mine = self.allocated(pod)
        self._admit(mine, self._others(mine))
        self._allocated.set(uid_of(mine), resources_of(mine))
        self.resize_conditions.backfill(pod)
        if mine is not pod:
            self.push(uid_of(pod))
        return mine

    def save(self) -> None:
        """Write down what pods have got, before anything is done with it."""
        self._allocated.save()

    def push(self, uid: str) -> None:
        """Call when the spec of a pod has changed: it may want a resize, or none any more."""
        if uid not in self._waiting:
            self._waiting.append(uid)

    @property
    def pending(self) -> bool:
        """Whether resizes wait."""
        return bool(self._waiting)

    def retry(self) -> list[Pod]:
        """Try all resizes that wait; returns pods that must be synced (allocated anew, or another condition).

        Call after `push`, when pods have been added, removed, terminated or resized, and every `RETRY_SECONDS`.
        """
        if not self._waiting:
            return []
        pods = {uid_of(each): each for each in self._active_pods()}
        waiting = sorted((pods[uid] for uid in self._waiting if uid in pods), key=self._order)
        self._waiting = []
        to_sync = []
        for pod in waiting:
            uid = uid_of(pod)
            before = _said(self.resize_conditions.list(uid))
            resized = self._resize(pod)
            if self.resize_conditions.pending_reason(uid) not in ("", INFEASIBLE):
                self._waiting.append(uid)
            if resized or _said(self.resize_conditions.list(uid)) != before:
                to_sync.append(pod)
        self.save()
        return to_sync

    def conditions(self, uid: str) -> list[PodCondition]:
        """PodResizePending and PodResizeInProgress, as far as they hold: for the pod's status."""
        return self.resize_conditions.list(uid)

    def note_progress(self, pod: Pod, in_progress: bool) -> bool:
        """Call in each sync with `ResizeActuator.in_progress`; whether the pod's status has to say something new."""
        uid = uid_of(pod)
        if in_progress:
            return self.resize_conditions.set_in_progress(uid, _generation(pod))[1]
        generation = self.resize_conditions.clear_in_progress(uid)
        if generation is None:
            return False
        self._event(pod, "Normal", "ResizeCompleted", summary.completed(pod, generation))
        return True

    def note_error(self, pod: Pod, message: str) -> bool:
        """Call when what was allocated could not be given to the containers; whether that is something new."""
        generation, new = self.resize_conditions.set_in_progress(uid_of(pod), _generation(pod), "Error", message)
        if new:
            self._event(pod, "Warning", "ResizeError", summary.failed(pod, generation, message))
        return new

    def terminated(self, uid: str) -> None:
        """A pod that has ended is resized no more."""
        self.resize_conditions.remove(uid)

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        self._allocated.remove(uid)
        self.resize_conditions.remove(uid)

    def remove_orphans(self, known: Iterable[str]) -> None:
        """Forget all pods but these."""
        self._allocated.keep(known)

    def get(self, uid: str) -> PodResources | None:
        """The resources a pod has been allocated; None if it was not admitted."""
        return self._allocated.get(uid)

    def _others(self, pod: Pod) -> list[Pod]:
        return [self.allocated(each) for each in self._active_pods() if uid_of(each) != uid_of(pod)]

    def _resize(self, pod: Pod) -> bool:
        """Whether something was allocated."""
        uid = uid_of(pod)
        now = self.allocated(pod)
        if now is pod:
            self.resize_conditions.clear_pending(uid)
            return False
        generation = _generation(pod)
        try:
            self._check_policy(pod, now)
            self._fits(pod, self._others(pod))
        except PodRefused as refused:
            if self.resize_conditions.set_pending(uid, refused.reason, refused.message, generation):
                reason = self.resize_conditions.pending_reason(uid)
                if reason == INFEASIBLE:
                    self.infeasible[refused.reason] += 1
                message = summary.pending(pod, refused.reason, refused.message, generation)
                self._event(pod, "Warning", f"Resize{reason}", message)
            return False
        self._allocated.set(uid, resources_of(pod))
        self.resize_conditions.clear_pending(uid)
        self.resize_conditions.clear_in_progress(uid)
        self.resize_conditions.set_in_progress(uid, generation)
        self._event(pod, "Normal", "ResizeStarted", summary.started(pod, generation))
        return True

    def _check_policy(self, pod: Pod, now: Pod) -> None:
        """CPUs of its own cannot be counted anew while a container runs on them."""
        if self._cpu_manager_policy != "static" or qos_class(pod.spec) != "Guaranteed":
            return
        wanted, had = pod.spec or PodSpec(), now.spec or PodSpec()
        for new, old in zip(resizable(wanted), resizable(had), strict=True):
            if amounts(new.resources).cpu_request != amounts(old.resources).cpu_request:
                message = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
                raise PodRefused(INFEASIBLE, message)

    def _order(self, pod: Pod) -> tuple[bool, int, bool, bool, str]:
        old, new = (pod_requests(each, use_status=False) for each in (self.allocated(pod), pod))
        grows = any(name in new and (name not in old or new[name] > old[name]) for name in ("cpu", "memory"))
        since = self.resize_conditions.pending_since(uid_of(pod))
        priority = (pod.spec.priority or 0) if pod.spec else 0
        return grows, -priority, qos_class(pod.spec) != "Guaranteed", since is None, since or ""


def _said(conditions: list[PodCondition]) -> list[tuple[str | None, str | None, str | None, int | None]]:
    """The content of conditions, without their times."""
    return [(each.type, each.reason, each.message, each.observed_generation) for each in conditions]


def _generation(pod: Pod) -> int:
    assert pod.metadata is not None
    return pod.metadata.generation or 0
