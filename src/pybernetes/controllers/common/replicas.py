"""The core of ReplicaSets and ReplicationControllers, which do the same: how many pods to make or give up, the status.

Pure: sets, pods and the time in, numbers and a status out. The loop around it is in `replicaset.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from pybernetes.api import labels
from pybernetes.api.apps.v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from pybernetes.api.core.v1.pod import Pod, PodTemplateSpec
from pybernetes.api.core.v1.replicationcontroller import (
    ReplicationController,
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)
from pybernetes.api.times import rfc3339

from .conditions import find_condition, with_condition, without_condition
from .meta import generation_of, labels_of
from .pods import is_available, is_ready

ReplicaOwner: TypeAlias = ReplicaSet | ReplicationController

BURST_REPLICAS = 500
"""The most pods made or deleted in one go; the next go comes after all of them have been seen."""
REPLICA_FAILURE = "ReplicaFailure"


def desired_replicas(owner: ReplicaOwner) -> int:
    """How many pods there should be."""
    replicas = owner.spec.replicas if owner.spec else None
    return 1 if replicas is None else replicas


def min_ready_seconds(owner: ReplicaOwner) -> int:
    """How long a pod must be ready to be available."""
    return (owner.spec.min_ready_seconds if owner.spec else None) or 0


def template_of(owner: ReplicaOwner) -> PodTemplateSpec:
    """The pod template."""
    return (owner.spec.template if owner.spec else None) or PodTemplateSpec()


def selector_of(owner: ReplicaOwner) -> labels.Selector:
    """Which pods the set wants; nothing if it does not say."""
    selector: Any = owner.spec.selector if owner.spec else None
    if isinstance(owner, ReplicationController):
        return labels.from_set(selector) if selector else labels.Selector(selects_nothing=True)
    return labels.from_label_selector(selector)


def missing(owner: ReplicaOwner, active: Sequence[Pod], burst: int = BURST_REPLICAS) -> int:
    """How many pods to make now; negative: how many to delete."""
    difference = desired_replicas(owner) - len(active)
    return max(-burst, min(burst, difference))


def calculate_status(
    owner: ReplicaOwner,
    active: Sequence[Pod],
    terminating: Iterable[Pod],
    failure: Exception | None,
    now: float,
) -> ReplicaSetStatus | ReplicationControllerStatus:
    """The status that these pods make; `failure` is why pods could not be made or deleted."""
    template = template_of(owner).metadata
    wanted = labels.from_set(template.labels if template else None)
    wait = min_ready_seconds(owner)
    counts = {
        "replicas": len(active),
        "fully_labeled_replicas": sum(wanted.matches(labels_of(pod)) for pod in active),
        "ready_replicas": sum(is_ready(pod) for pod in active),
        "available_replicas": sum(is_available(pod, wait, now) for pod in active),
        "observed_generation": generation_of(owner),
    }
    conditions: list[Any] | None = list((owner.status.conditions if owner.status else None) or ()) or None
    is_replica_set = isinstance(owner, ReplicaSet)
    if failure is None:
        conditions = without_condition(conditions, REPLICA_FAILURE)
    elif find_condition(conditions, REPLICA_FAILURE) is None:
        difference = len(active) - desired_replicas(owner)
        kind = ReplicaSetCondition if is_replica_set else ReplicationControllerCondition
        condition = kind(
            type=REPLICA_FAILURE,
            status="True",
            reason="FailedCreate" if difference < 0 else "FailedDelete" if difference > 0 else None,
            message=str(failure),
            last_transition_time=rfc3339(now),
        )
        conditions = with_condition(conditions, condition)
    if is_replica_set:
        # ReplicationControllers, frozen long ago, do not report this.
        ending = sum(1 for _ in terminating)
        return ReplicaSetStatus(**counts, terminating_replicas=ending, conditions=conditions)
    return ReplicationControllerStatus(**counts, conditions=conditions)
