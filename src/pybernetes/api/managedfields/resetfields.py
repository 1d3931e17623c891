"""Fields that a request cannot write, and so cannot own.

The main resource does not touch the status, the status subresource does not touch the spec: what a client sends there
is reset before it is stored. `for_request` says what upstream's endpoints say about it; those of a pod's ephemeral
containers and resources say nothing, and who sends more to them owns what was not written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from ..resources import Resource
from .fieldset import Set, without_below
from .paths import Path, field

Filter = Callable[[Set], Set]
"""Removes fields from a set."""


@dataclass(frozen=True, slots=True)
class Exclude:
    """Drops these fields and all below them."""

    fields: Set

    def __call__(self, fields: Set) -> Set:
        return without_below(fields, self.fields)


def _path(text: str) -> Path:
    return tuple(map(field, text.split(".")))


def exclude(*paths: str) -> Exclude:
    """Drops fields, written with dots: `metadata.labels`."""
    return Exclude(frozenset(map(_path, paths)))


_SPECIAL: dict[tuple[str, str], Filter] = {
    ("certificatesigningrequests", ""): exclude("spec", "status"),
    ("certificatesigningrequests", "status"): exclude("spec", "status.conditions"),
    ("certificatesigningrequests", "approval"): exclude("spec", "status.certificate"),
    ("deployments", "status"): exclude("spec", "metadata.labels"),
    ("namespaces", "finalize"): exclude("status"),
    ("pods", "status"): exclude("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
}
# The statuses that take no metadata along.
_STATUS_ONLY = {
    "apiservices",
    "customresourcedefinitions",
    "flowschemas",
    "prioritylevelconfigurations",
    "resourceclaims",
    "servicecidrs",
    "validatingadmissionpolicies",
    "volumeattachments",
}
_STATUS = exclude("status")
_SPEC = exclude("spec")
_SPEC_AND_METADATA = exclude("spec", "metadata")


@cache
def for_request(resource: Resource, subresource: str = "") -> Filter | None:
    """The fields that requests to a built-in resource cannot write; none if they can write all."""
    special = _SPECIAL.get((resource.plural, subresource))
    if special is not None:
        return special
    if subresource == "status":
        return _SPEC_AND_METADATA if resource.plural in _STATUS_ONLY else _SPEC
    if not subresource and any(each.name == "status" for each in resource.subresources):
        return _STATUS
    return None


def for_custom(has_status: bool, subresource: str = "") -> Filter | None:
    """The same for a custom resource."""
    if subresource == "status":
        return _SPEC_AND_METADATA
    return _STATUS if has_status and not subresource else None
