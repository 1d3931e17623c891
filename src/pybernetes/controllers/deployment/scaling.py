"""How large each ReplicaSet of a Deployment should be now.

A rollout grows the new ReplicaSet within `replicas + maxSurge` pods in total, and shrinks the old ones while
`replicas - maxUnavailable` pods stay available: first what is broken in them, then what is not needed any more. One of
the two a step; the next step comes when the ReplicaSets report back.

A change of `replicas` in the middle of a rollout is shared among all ReplicaSets in proportion to their sizes, so that
scaling does not hurry the rollout along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pybernetes.api.apps.v1 import Deployment, ReplicaSet, RollingUpdateDeployment
from pybernetes.api.intstr import scaled_value
from pybernetes.client.keys import uid_of

from ..common.meta import annotations_of, by_creation
from .annotations import DESIRED_REPLICAS, desired_replicas_annotation, max_replicas_annotation, revision
from .replicasets import active, available, desired, size, spec_of


class Scale(NamedTuple):
    """A ReplicaSet and the size it should have; `force`: refresh its annotations even if it has that size."""

    replicaset: ReplicaSet
    replicas: int
    force: bool = False


def is_rolling_update(deployment: Deployment) -> bool:
    """Whether pods are replaced step by step."""
    strategy = spec_of(deployment).strategy
    return strategy is not None and strategy.type == "RollingUpdate"


def fenceposts(deployment: Deployment) -> tuple[int, int]:
    """maxSurge, rounded up, and maxUnavailable, rounded down; never both 0, or nothing could move."""
    strategy = spec_of(deployment).strategy
    rolling = (strategy.rolling_update if strategy else None) or RollingUpdateDeployment()
    total = desired(deployment)
    surge = 0 if rolling.max_surge is None else scaled_value(rolling.max_surge, total, round_up=True)
    unavailable = 0 if rolling.max_unavailable is None else scaled_value(rolling.max_unavailable, total, round_up=False)
    # Not 1 surge: a quota may stand in its way.
    return (surge, unavailable) if surge or unavailable else (0, 1)


def max_surge(deployment: Deployment) -> int:
    """How many pods there may be beyond the replicas."""
    return fenceposts(deployment)[0] if is_rolling_update(deployment) else 0


def max_unavailable(deployment: Deployment) -> int:
    """How many of the replicas may be missing."""
    if not is_rolling_update(deployment) or desired(deployment) == 0:
        return 0
    return min(fenceposts(deployment)[1], desired(deployment))


def new_replicas(deployment: Deployment, new: ReplicaSet, everything: Sequence[ReplicaSet]) -> int:
    """How large the new ReplicaSet may be beside the others, itself included in `everything`."""
    if not is_rolling_update(deployment):
        return desired(deployment)
    room = desired(deployment) + max_surge(deployment) - sum(map(size, everything))
    if room <= 0:
        return size(new)
    return size(new) + min(room, desired(deployment) - size(new))


def rolling(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scale]:
    """The next step of a rolling update; nothing if it has to wait or is done."""
    if size(new) != desired(deployment):
        if size(new) > desired(deployment):
            return [Scale(new, desired(deployment))]
        larger = new_replicas(deployment, new, [*old, new])
        if larger != size(new):
            return [Scale(new, larger)]
    return _scale_down_old(deployment, new, active(old))


def _scale_down_old(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scale]:
    ordered = sorted(old, key=by_creation)
    sizes = {uid_of(each): size(each) for each in ordered}
    least = desired(deployment) - max_unavailable(deployment)
    # What the new one still lacks must not be taken from the old ones a second time.
    room = sum(sizes.values()) + size(new) - least - (size(new) - available(new))
    if not ordered or room <= 0:
        return []
    steps: list[Scale] = []

    def shrink(replicaset: ReplicaSet, count: int) -> int:
        uid = uid_of(replicaset)
        count = max(0, min(count, sizes[uid]))
        if count:
            sizes[uid] -= count
            steps.append(Scale(replicaset, sizes[uid]))
        return count

    for each in ordered:  # broken pods go first: they do not count as available anyway, and would block the rollout
        room -= shrink(each, min(room, sizes[uid_of(each)] - available(each)))
    spare = available(new) + sum(map(available, ordered)) - least
    for each in ordered:
        spare -= shrink(each, spare)
    return steps


def is_scaling_event(deployment: Deployment, replicasets: Sequence[ReplicaSet]) -> bool:
    """Whether `replicas` has changed since a ReplicaSet was last scaled."""
    known = (desired_replicas_annotation(each) for each in active(replicasets))
    return any(each is not None and each != desired(deployment) for each in known)


def is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    """Whether the new ReplicaSet has all replicas, knows that it should, and all are available."""
    total = desired(deployment)
    return (
        new is not None
        and annotations_of(new).get(DESIRED_REPLICAS) == str(total)
        and size(new) == total
        and available(new) == total
    )


def find_active_or_latest(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The only ReplicaSet with pods, or the newest if none has; None if several have."""
    latest = sorted(old, key=by_creation, reverse=True)
    running = active([*latest, new] if new else latest)
    if len(running) > 1:
        return None
    return running[0] if running else new or (latest[0] if latest else None)


def proportional(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Scale]:
    """New sizes after `replicas` has changed, or while the Deployment is paused."""
    only = find_active_or_latest(new, old)
    if only is not None:
        return [Scale(only, desired(deployment))] if size(only) != desired(deployment) else []
    if is_saturated(deployment, new):
        return [Scale(each, 0) for each in active(old)]
    if not is_rolling_update(deployment):
        return []
    running = active([*old, new] if new else old)
    allowed = desired(deployment) + max_surge(deployment) if desired(deployment) > 0 else 0
    change = allowed - sum(map(size, running))
    # The largest first; among equals newer ones grow first and older ones shrink first.
    if change:
        running.sort(key=by_creation, reverse=change > 0)
        running.sort(key=size, reverse=True)
    sizes, shared = [], 0
    for each in running:
        share = _proportion(deployment, each, change, shared)
        sizes.append(size(each) + share)
        shared += share
    if change and sizes:
        sizes[0] = max(0, sizes[0] + change - shared)  # what rounding left over
    return [Scale(each, replicas, force=True) for each, replicas in zip(running, sizes, strict=True)]


def _proportion(deployment: Deployment, replicaset: ReplicaSet, change: int, shared: int) -> int:
    if not size(replicaset) or change == shared:
        return 0
    rest = change - shared
    fraction = _fraction(deployment, replicaset)
    return min(fraction, rest) if change > 0 else max(fraction, rest)


def _fraction(deployment: Deployment, replicaset: ReplicaSet) -> int:
    """How much the ReplicaSet should grow for the Deployment's new size; negative: shrink."""
    if desired(deployment) == 0:
        return -size(replicaset)
    before = max_replicas_annotation(replicaset) or (deployment.status.replicas if deployment.status else None)
    if not before:
        return 0  # the annotation is gone and there is not a pod to go by
    target = size(replicaset) * (desired(deployment) + max_surge(deployment)) / before
    return int(target + 0.5) - size(replicaset)


def to_clean_up(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Old ReplicaSets beyond the history limit that are empty and have nothing left to do."""
    limit = spec_of(deployment).revision_history_limit
    if limit is None or limit == 2**31 - 1:
        return []
    alive = [each for each in old if each.metadata is None or each.metadata.deletion_timestamp is None]
    alive.sort(key=lambda each: (revision(each) or 0, by_creation(each)))
    return [each for each in alive[: max(0, len(alive) - limit)] if _is_settled_and_empty(each)]


def _is_settled_and_empty(replicaset: ReplicaSet) -> bool:
    status = replicaset.status
    generation = (replicaset.metadata.generation if replicaset.metadata else None) or 0
    observed = (status.observed_generation if status else None) or 0
    return not size(replicaset) and not (status and status.replicas) and generation <= observed
