"""Revisions of a pod template, kept as ControllerRevisions: what StatefulSets and DaemonSets roll back to.

The data of a revision is the patch that brings its template back, as `kubectl rollout undo` sends it. Numbers grow;
going back to an old template gives its revision a new number instead of making another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from pybernetes.api.apps.v1 import ControllerRevision
from pybernetes.api.core.v1.pod import PodTemplateSpec

from .meta import by_creation

MAX_REVISION = 2**63 - 1
MAX_COLLISIONS = 2**31 - 1
"""The greatest `status.collisionCount`; the count begins anew after it."""


def template_patch(template: PodTemplateSpec | None) -> dict[str, Any]:
    """The patch that brings a template back, its keys sorted: clients compare it with their own byte by byte."""
    value: dict[str, Any] = msgspec.to_builtins(template or PodTemplateSpec())
    patch = {"spec": {"template": {**value, "$patch": "replace"}}}
    ordered: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(patch, order="sorted"))
    return ordered


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The template that a revision brings back; `ValueError` if its data is something else."""
    try:
        value = dict(revision.data["spec"]["template"])
        value.pop("$patch", None)
        return msgspec.convert(value, PodTemplateSpec)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        name = revision.metadata.name if revision.metadata else ""
        raise ValueError(f"ControllerRevision {name} holds no pod template: {error}") from error


def same_data(one: ControllerRevision, other: ControllerRevision) -> bool:
    """Whether two revisions bring back the same."""
    return bool(one.data == other.data)


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """From the oldest number to the newest; equal ones by age and name."""
    return sorted(revisions, key=lambda each: (each.revision or 0, *by_creation(each)))


def next_revision(revisions: Iterable[ControllerRevision]) -> int:
    """The number of a new revision; the largest one again where there is no larger: equal ones are ordered by age."""
    return min(max((each.revision or 0 for each in revisions), default=0) + 1, MAX_REVISION)


def next_collision(collisions: int | None) -> int:
    """One more collision of hashes."""
    return (collisions or 0) + 1 if (collisions or 0) < MAX_COLLISIONS else 0


def revision_name(prefix: str, hashed: str) -> str:
    """The owner's name, cut so that the whole fits, and the hash."""
    return f"{prefix[:223]}-{hashed}"
