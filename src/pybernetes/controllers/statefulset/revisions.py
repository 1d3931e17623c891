"""The revisions of a StatefulSet: the current one of its pods, and the update revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pybernetes.api import errors
from pybernetes.api.apps.v1 import ControllerRevision, StatefulSet
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.equality import semantically_equal
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.client.client import Client
from pybernetes.client.keys import controller_reference, copy

from ..common.history import (
    in_order,
    next_collision,
    next_revision,
    revision_name,
    same_data,
    template_of,
    template_patch,
)
from ..common.meta import annotations_of, meta, name_of
from ..common.template_hash import compute_hash
from .identity import revision_of, spec_of

HASH: Final = "controller.kubernetes.io/hash"


class Revisions(NamedTuple):
    """The revision that pods were made from, the one for the present template, and how many hashes have collided."""

    current: ControllerRevision
    update: ControllerRevision
    collisions: int


def new_revision(statefulset: StatefulSet, number: int, collisions: int) -> ControllerRevision:
    """The revision of the set's template."""
    template = spec_of(statefulset).template
    data = template_patch(template)
    hashed = compute_hash(data, collisions)
    labels = (template.metadata.labels if template and template.metadata else None) or {}
    return ControllerRevision(
        metadata=ObjectMeta(
            name=revision_name(name_of(statefulset), hashed),
            namespace=meta(statefulset).namespace,
            labels={**labels, HASH: hashed},
            annotations=dict(annotations_of(statefulset)) or None,
            owner_references=[controller_reference(statefulset)],
        ),
        data=data,
        revision=number,
    )


async def find_revisions(
    client: Client,
    statefulset: StatefulSet,
    revisions: Sequence[ControllerRevision],
    wrote: Callable[[ControllerRevision], None],
) -> Revisions:
    """Both revisions, made or renumbered where needed. Calls `wrote` for each revision that is written."""
    known = in_order(revisions)
    status = statefulset.status
    collisions = (status.collision_count if status else None) or 0
    update = new_revision(statefulset, next_revision(known), collisions)
    equal = [each for each in known if same_data(each, update)]
    if known and (same_data(known[-1], update) or _means_the_same(statefulset, known[-1])):
        update = known[-1]
    elif equal:  # back to an old template: its revision becomes the newest
        renumbered = copy(equal[-1])
        renumbered.revision = update.revision
        update = await client.update(renumbered)
        wrote(update)
    else:
        update, collisions = await _create(client, statefulset, update, collisions)
        wrote(update)
    name = status.current_revision if status else None
    current = next((each for each in known if name_of(each) == name), update)
    return Revisions(current, update, collisions)


def _means_the_same(statefulset: StatefulSet, revision: ControllerRevision) -> bool:
    """Whether a revision only is written down differently, as after an upgrade; pods must not restart for that."""
    try:
        return semantically_equal(template_of(revision), spec_of(statefulset).template)
    except ValueError:
        return False


async def _create(
    client: Client, statefulset: StatefulSet, revision: ControllerRevision, collisions: int
) -> tuple[ControllerRevision, int]:
    while True:
        try:
            return await client.create(revision), collisions
        except errors.AlreadyExists:
            existing = await client.get(ControllerRevision, name_of(revision), meta(revision).namespace or "")
            if same_data(existing, revision):
                return existing, collisions
            collisions = next_collision(collisions)
            revision = new_revision(statefulset, revision.revision or 1, collisions)


def to_truncate(
    statefulset: StatefulSet, known: Sequence[ControllerRevision], found: Revisions, pods: Sequence[Pod]
) -> list[ControllerRevision]:
    """The oldest revisions beyond the limit that neither the set nor a pod uses."""
    live = {name_of(found.current), name_of(found.update), *map(revision_of, pods)}
    unused = [each for each in in_order(known) if name_of(each) not in live]
    limit = spec_of(statefulset).revision_history_limit
    keep = 10 if limit is None else limit
    return unused[: max(0, len(unused) - keep)] if keep >= 0 else []
