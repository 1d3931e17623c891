"""The history of a DaemonSet's templates: the revision of the current one, made where there is none, and old ones.

Pods carry the hash of their revision; a revision that a pod still runs is never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybernetes.api import errors
from pybernetes.api.apps.v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.client.client import Client
from pybernetes.client.keys import controller_reference, copy, key_of

from ..common.history import in_order, next_collision, next_revision, revision_name, template_patch
from ..common.meta import annotations_of, labels_of, meta, name_of
from ..common.template_hash import compute_hash
from .nodes import REVISION_HASH, template_of

Wrote = Callable[[ControllerRevision], None]


async def construct_history(
    client: Client,
    daemonset: DaemonSet,
    revisions: Sequence[ControllerRevision],
    pods: Sequence[Pod],
    wrote: Wrote,
) -> tuple[ControllerRevision, list[ControllerRevision]]:
    """The revision of the current template and all others. Calls `wrote` for each revision that is written."""
    labelled = []
    for each in revisions:
        if REVISION_HASH not in labels_of(each):
            each = copy(each)
            meta(each).labels = {**labels_of(each), REVISION_HASH: name_of(each)}
            each = await client.update(each)
            wrote(each)
        labelled.append(each)
    patch = template_patch(template_of(daemonset))
    current = [each for each in labelled if each.data == patch]
    old = [each for each in labelled if each.data != patch]
    number = next_revision(old)
    if not current:
        return await _snapshot(client, daemonset, number, wrote), old
    kept = await _deduplicate(client, current, pods)
    if (kept.revision or 0) < number:
        kept = copy(kept)
        kept.revision = number
        kept = await client.update(kept)
        wrote(kept)
    return kept, old


async def _snapshot(client: Client, daemonset: DaemonSet, number: int, wrote: Wrote) -> ControllerRevision:
    template = template_of(daemonset)
    collisions = daemonset.status.collision_count if daemonset.status else None
    hashed = compute_hash(template, collisions)
    key = key_of(daemonset)
    labels = (template.metadata.labels if template.metadata else None) or {}
    revision = ControllerRevision(
        metadata=ObjectMeta(
            name=revision_name(key.name, hashed),
            namespace=key.namespace,
            labels={**labels, REVISION_HASH: hashed},
            annotations=annotations_of(daemonset) or None,
            owner_references=[controller_reference(daemonset)],
        ),
        data=template_patch(template),
        revision=number,
    )
    try:
        made = await client.create(revision)
    except errors.AlreadyExists:
        existing = await client.get(ControllerRevision, name_of(revision), key.namespace)
        if existing.data == revision.data:
            return existing
        fresh = await client.get(DaemonSet, key.name, key.namespace)
        fresh.status = fresh.status or DaemonSetStatus()
        if fresh.status.collision_count == collisions:  # else: it is counted, the cache only does not know yet
            fresh.status.collision_count = next_collision(collisions)
            await client.update_status(fresh)
        raise
    wrote(made)
    return made


async def _deduplicate(
    client: Client, current: Sequence[ControllerRevision], pods: Sequence[Pod]
) -> ControllerRevision:
    """Keep one of several revisions with the same template, and move the pods of the others to it."""
    kept = in_order(current)[-1]
    if len(current) == 1:
        return kept
    hashed = labels_of(kept).get(REVISION_HASH)
    others = {labels_of(each).get(REVISION_HASH) for each in current} - {hashed}
    for pod in pods:
        if labels_of(pod).get(REVISION_HASH) in others:
            change = {"metadata": {"labels": {REVISION_HASH: hashed}}}
            await client.patch(Pod, name_of(pod), change, meta(pod).namespace or "")
    for each in current:
        if each is not kept:
            await client.delete(ControllerRevision, name_of(each), meta(each).namespace or "")
    return kept


async def clean_up_history(
    client: Client, daemonset: DaemonSet, old: Sequence[ControllerRevision], pods: Sequence[Pod]
) -> None:
    """Delete the oldest revisions beyond the limit that no pod runs."""
    limit = daemonset.spec.revision_history_limit if daemonset.spec else None
    surplus = len(old) - (10 if limit is None else limit)
    live = {labels_of(pod).get(REVISION_HASH) for pod in pods}
    for each in in_order(old):
        if surplus <= 0:
            return
        if labels_of(each).get(REVISION_HASH) in live:
            continue
        await client.delete(ControllerRevision, name_of(each), meta(each).namespace or "")
        surplus -= 1
