"""Plans the next step of a StatefulSet, and its status.

In order (`OrderedReady`): pods are made from the first ordinal on, each when the one before is available; taken away
from the last on, each when all that stay are available; one thing at a time, and scaling before updating. All at once
(`Parallel`): whatever is missing or superfluous. A rolling update deletes old pods from the last ordinal down to the
partition; the next round makes them anew.

Pure: objects and the time in, steps out. Steps of one group may be done at once if the set is parallel; groups follow
each other, and a failure ends the round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

from pybernetes.api.apps.v1 import ControllerRevision, StatefulSet, StatefulSetStatus
from pybernetes.api.core.v1.persistentvolumeclaim import PersistentVolumeClaim
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.intstr import scaled_value

from ..common.history import template_of
from ..common.meta import generation_of, is_deleting, name_of
from ..common.pods import is_available, is_ready, is_terminal, phase_of
from .identity import (
    MAX_ORDINAL,
    claims_for,
    identity_matches,
    in_range,
    new_pod,
    ordinal_of,
    replicas_of,
    revision_of,
    spec_of,
    start_ordinal,
    storage_matches,
)
from .retention import DELETE, is_stale, is_up_to_date, policy_of

MOST_MISSING = 500
"""Missing pods that one plan is about; as many as a ReplicaSet makes in one round."""

Claims: TypeAlias = Callable[[str], PersistentVolumeClaim | None]
"""A claim of the set's namespace by its name."""


class Step(NamedTuple):
    """One thing to do with one pod."""

    do: Literal["create", "delete", "update", "ensure-claims", "fix-claims"]
    pod: Pod


class Plan(NamedTuple):
    """Groups of steps, and the status that goes with them."""

    groups: list[list[Step]]
    status: StatefulSetStatus


def is_parallel(statefulset: StatefulSet) -> bool:
    """Whether pods need not wait for each other."""
    return spec_of(statefulset).pod_management_policy == "Parallel"


def make_plan(
    statefulset: StatefulSet,
    current: ControllerRevision,
    update: ControllerRevision,
    collisions: int,
    pods: Sequence[Pod],
    claims: Claims,
    now: float,
) -> Plan:
    """Plan the next step of a set whose pods are at the current or at the update revision."""
    replicas, left = _replicas(statefulset, current, update, pods)
    condemned = [pod for pod in pods if ordinal_of(pod) >= 0 and not in_range(statefulset, pod)]
    condemned.sort(key=ordinal_of, reverse=True)
    status = calculate_status(statefulset, current, update, collisions, [*replicas, *condemned], now)
    if is_deleting(statefulset):
        return Plan([], status)
    look = _Look(statefulset, claims, now)
    groups, blocked = look.replicas(replicas)
    if not blocked:
        groups.append([Step("fix-claims", pod) for pod in condemned if not look.claims_up_to_date(pod)])
        group, blocked = look.condemned(condemned, _first_unavailable(statefulset, replicas, condemned, now))
        groups.append(group)
    if not blocked and _is_rolling_update(statefulset):
        outdated = _outdated(statefulset, replicas, left, name_of(update), now)
        groups.append([Step("delete", pod) for pod in outdated])
        status.current_replicas = max(0, (status.current_replicas or 0) - len(outdated))
    return Plan([group for group in groups if group], complete(statefulset, status))


def _replicas(
    statefulset: StatefulSet, current: ControllerRevision, update: ControllerRevision, pods: Sequence[Pod]
) -> tuple[list[Pod], int]:
    """The desired pods, by ordinal, and how many more are missing.

    Of the missing ones only the first are made up, in order the one that all others wait for: a set may ask for
    2,147,483,647 of them.
    """
    there = {ordinal_of(pod): pod for pod in pods if in_range(statefulset, pod)}
    start = start_ordinal(statefulset)
    end = min(start + replicas_of(statefulset), MAX_ORDINAL + 1)
    missing = (ordinal for ordinal in range(start, end) if ordinal not in there)
    most = MOST_MISSING if is_parallel(statefulset) else 1
    first = {ordinal: _missing(statefulset, current, update, ordinal) for ordinal in islice(missing, most)}
    wanted = sorted((there | first).items(), key=itemgetter(0))
    return [pod for _, pod in wanted], end - start - len(wanted)


def _missing(statefulset: StatefulSet, current: ControllerRevision, update: ControllerRevision, ordinal: int) -> Pod:
    """The pod of an ordinal that has none: below the partition as it was, otherwise as it shall be."""
    strategy = spec_of(statefulset).update_strategy
    rolling = strategy.rolling_update if strategy else None
    keep = 0
    if rolling is not None:
        keep = rolling.partition or 0
    elif _is_rolling_update(statefulset):
        keep = (statefulset.status.current_replicas if statefulset.status else None) or 0
    chosen = current if ordinal < start_ordinal(statefulset) + keep else update
    return new_pod(statefulset, template_of(chosen), ordinal, name_of(chosen))


def _is_rolling_update(statefulset: StatefulSet) -> bool:
    strategy = spec_of(statefulset).update_strategy
    return strategy is None or strategy.type != "OnDelete"


def _wait(statefulset: StatefulSet) -> int:
    return spec_of(statefulset).min_ready_seconds or 0


def _is_unavailable(statefulset: StatefulSet, pod: Pod, now: float) -> bool:
    return is_deleting(pod) or not is_available(pod, _wait(statefulset), now)


def _is_running_and_ready(pod: Pod) -> bool:
    return phase_of(pod) == "Running" and is_ready(pod)


def _first_unavailable(
    statefulset: StatefulSet, replicas: Sequence[Pod], condemned: Sequence[Pod], now: float
) -> Pod | None:
    for pod in (*replicas, *reversed(condemned)):
        if _is_unavailable(statefulset, pod, now):
            return pod
    return None


class _Look:
    """A look at the pods one by one."""

    def __init__(self, statefulset: StatefulSet, claims: Claims, now: float) -> None:
        self.statefulset = statefulset
        self.claims = claims
        self.now = now
        self.in_order = not is_parallel(statefulset)

    def replicas(self, replicas: Sequence[Pod]) -> tuple[list[list[Step]], bool]:
        """The steps for the pods of the desired ordinals, and whether the rest must wait for them."""
        steps: list[Step] = []
        for pod in replicas:
            needed, blocks = self._replica(pod)
            steps += needed
            if blocks and self.in_order:
                return [steps], True
        return [steps], False

    def _replica(self, pod: Pod) -> tuple[list[Step], bool]:
        if is_terminal(pod):  # also with success: it was stopped from outside, and shall run
            return ([] if is_deleting(pod) else [Step("delete", pod)]), True
        if not phase_of(pod):
            if self._has_stale_claim(pod):
                return [], True
            return [Step("create", pod)], True
        steps = [Step("ensure-claims", pod)] if phase_of(pod) == "Pending" else []
        if self.in_order and (_is_unavailable(self.statefulset, pod, self.now) or not _is_running_and_ready(pod)):
            return steps, True
        if not (
            identity_matches(self.statefulset, pod)
            and storage_matches(self.statefulset, pod)
            and self.claims_up_to_date(pod)
        ):
            steps.append(Step("update", pod))
        return steps, False

    def condemned(self, condemned: Sequence[Pod], first_unavailable: Pod | None) -> tuple[list[Step], bool]:
        """The pods to take away now, and whether the rest must wait for it."""
        steps: list[Step] = []
        for pod in condemned:
            if is_deleting(pod):
                if self.in_order:
                    return steps, True
                continue
            ready = _is_running_and_ready(pod) and not _is_unavailable(self.statefulset, pod, self.now)
            if self.in_order and not ready and pod is not first_unavailable:
                return steps, True
            steps.append(Step("delete", pod))
            if self.in_order:
                return steps, True
        return steps, False

    def _own_claims(self, pod: Pod) -> list[PersistentVolumeClaim]:
        names = (name_of(each) for each in claims_for(self.statefulset, ordinal_of(pod)).values())
        return [found for name in names if (found := self.claims(name)) is not None]

    def claims_up_to_date(self, pod: Pod) -> bool:
        """Whether the claims of the pod belong to whom the policy says."""
        return all(is_up_to_date(claim, self.statefulset, pod) for claim in self._own_claims(pod))

    def _has_stale_claim(self, pod: Pod) -> bool:
        """Whether a claim will soon go with an earlier pod of this name: the new one must not use it."""
        if policy_of(self.statefulset)[1] != DELETE:
            return False
        return any(is_stale(claim, pod) for claim in self._own_claims(pod))


def _outdated(statefulset: StatefulSet, replicas: Sequence[Pod], left: int, update: str, now: float) -> list[Pod]:
    """Pods to delete so that they come back at the update revision, from the last one on.

    `left`: how many replicas are missing besides.
    """
    strategy = spec_of(statefulset).update_strategy
    rolling = strategy.rolling_update if strategy else None
    partition = (rolling.partition if rolling else None) or 0
    lowest = start_ordinal(statefulset) + partition
    candidates = [pod for pod in reversed(replicas) if ordinal_of(pod) >= lowest]
    limit = rolling.max_unavailable if rolling else None
    if limit is None:
        if left:
            return []
        # One at a time, and each waits for the ones after it.
        for pod in candidates:
            if revision_of(pod) != update and not is_deleting(pod):
                return [pod]
            if _is_unavailable(statefulset, pod, now):
                return []
        return []
    allowed = max(1, scaled_value(limit, replicas_of(statefulset), round_up=False))
    room = allowed - left - sum(_is_unavailable(statefulset, pod, now) for pod in replicas)
    outdated = [pod for pod in candidates if revision_of(pod) != update and not is_deleting(pod)]
    return outdated[: max(0, room)]


def calculate_status(
    statefulset: StatefulSet,
    current: ControllerRevision,
    update: ControllerRevision,
    collisions: int,
    pods: Sequence[Pod],
    now: float,
) -> StatefulSetStatus:
    """The counters; pods that are only planned have no phase and do not count."""
    created = [pod for pod in pods if phase_of(pod)]
    staying = [pod for pod in created if not is_deleting(pod)]
    ready = [pod for pod in created if _is_running_and_ready(pod)]
    return StatefulSetStatus(
        observed_generation=generation_of(statefulset),
        replicas=len(created),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, _wait(statefulset), now) for pod in ready),
        current_replicas=sum(revision_of(pod) == name_of(current) for pod in staying),
        updated_replicas=sum(revision_of(pod) == name_of(update) for pod in staying),
        current_revision=name_of(current),
        update_revision=name_of(update),
        collision_count=collisions,
        conditions=statefulset.status.conditions if statefulset.status else None,
    )


def complete(statefulset: StatefulSet, status: StatefulSetStatus) -> StatefulSetStatus:
    """When all pods are updated and ready, the update revision is the current one."""
    total = replicas_of(statefulset)
    counts = (status.updated_replicas, status.ready_replicas, status.replicas)
    if _is_rolling_update(statefulset) and counts == (total, total, total):
        status.current_replicas = status.updated_replicas
        status.current_revision = status.update_revision
    return status
