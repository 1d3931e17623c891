"""The annotations a Deployment writes on its ReplicaSets: revision, former revisions, and the sizes it was scaled
for."""

from __future__ import annotations

import re

from pybernetes.api.apps.v1 import Deployment, ReplicaSet
from pybernetes.api.base import Kind

from ..common.history import MAX_REVISION
from ..common.meta import annotations_of, meta

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

NOT_COPIED = frozenset({LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO})
"""Annotations of a Deployment that are not its ReplicaSets' business."""
MAX_HISTORY_LENGTH = 2000
"""Characters of the history of revisions; about a hundred rollbacks."""

_INTEGER = re.compile("[+-]?[0-9]{1,19}", re.ASCII).fullmatch
_UNSIGNED = re.compile("[0-9]{1,10}", re.ASCII).fullmatch


def revision(obj: Kind) -> int | None:
    """The revision; 0 if there is none, None if it cannot be read."""
    text = annotations_of(obj).get(REVISION)
    if text is None:
        return 0
    return int(text) if _INTEGER(text) and abs(int(text)) <= MAX_REVISION else None


def max_revision(replicasets: list[ReplicaSet]) -> int:
    """The highest revision; one less than the largest possible at most, so that there is a next one."""
    return min(max((revision(each) or 0 for each in replicasets), default=0), MAX_REVISION - 1)


def last_revision(replicasets: list[ReplicaSet]) -> int:
    """The second highest revision: the one before the current; 0 if there is none."""
    known = sorted((found for each in replicasets if (found := revision(each)) is not None), reverse=True)
    return max(known[1], 0) if len(known) > 1 else 0


def desired_replicas_annotation(replicaset: ReplicaSet) -> int | None:
    """How many replicas the Deployment wanted when it last scaled this ReplicaSet."""
    return _count(replicaset, DESIRED_REPLICAS)


def max_replicas_annotation(replicaset: ReplicaSet) -> int | None:
    """How many replicas, surge included, the Deployment could have then."""
    return _count(replicaset, MAX_REPLICAS)


def _count(replicaset: ReplicaSet, key: str) -> int | None:
    text = annotations_of(replicaset).get(key, "")
    value = int(text) if _UNSIGNED(text) else -1
    return value if 0 <= value < 1 << 31 else None


def replicas_annotations_need_update(replicaset: ReplicaSet, desired: int, most: int) -> bool:
    """Whether the sizes on the ReplicaSet are not these."""
    found = annotations_of(replicaset)
    return found.get(DESIRED_REPLICAS) != str(desired) or found.get(MAX_REPLICAS) != str(most)


def set_replicas_annotations(replicaset: ReplicaSet, desired: int, most: int) -> bool:
    """Write the sizes; whether they were others."""
    changed = replicas_annotations_need_update(replicaset, desired, most)
    sizes = {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(most)}
    meta(replicaset).annotations = {**annotations_of(replicaset), **sizes}
    return changed


def set_new_replicaset_annotations(deployment: Deployment, replicaset: ReplicaSet, new_revision: int) -> bool:
    """Bring the annotations of the new ReplicaSet up to date; whether anything changed.

    Its revision only grows: old ReplicaSets may have been deleted since it got one. When it grows, the former one goes
    to the history, for this is a rollback.
    """
    before = annotations_of(replicaset)
    after = dict(before)
    after |= {key: value for key, value in annotations_of(deployment).items() if key not in NOT_COPIED}
    text = before.get(REVISION, "")
    current = int(text) if _INTEGER(text) else 0
    unreadable = bool(text) and not _INTEGER(text)  # not ours; leave it alone
    if not unreadable and current < new_revision:
        after[REVISION] = str(new_revision)
        if REVISION in before:
            history = _with_history(before.get(REVISION_HISTORY, ""), text)
            if history is not None:
                after[REVISION_HISTORY] = history
    meta(replicaset).annotations = after
    return after != before


def _with_history(history: str, entry: str) -> str | None:
    """The history with one more revision, the oldest dropped where it gets too long; None if there is no room."""
    entries = [*(history.split(",") if history else ()), entry]
    while entries and len(",".join(entries)) > MAX_HISTORY_LENGTH:
        del entries[0]
    return ",".join(entries) or None


def set_deployment_annotations(deployment: Deployment, replicaset: ReplicaSet) -> None:
    """On a rollback the Deployment takes the annotations of the ReplicaSet, change cause and all, for its own."""
    own = {key: value for key, value in annotations_of(deployment).items() if key in NOT_COPIED}
    other = {key: value for key, value in annotations_of(replicaset).items() if key not in NOT_COPIED}
    meta(deployment).annotations = own | other


def rollback_to(deployment: Deployment) -> int | None:
    """The revision an old client asked to go back to (0: the last one); None without the annotation."""
    text = annotations_of(deployment).get(ROLLBACK_TO, "")
    return int(text) if _INTEGER(text) else None
