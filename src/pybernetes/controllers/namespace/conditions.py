"""Computes the conditions of a terminating namespace: failed discovery, failed deletions, remaining objects.

All five conditions are always present once deletion has begun, `False` where nothing is wrong. They are sorted and
worded so that the same findings make the same text: an unchanged status is not written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pybernetes.api.core.v1 import NamespaceCondition

DISCOVERY_FAILURE: Final = "NamespaceDeletionDiscoveryFailure"
GROUP_VERSION_PARSING_FAILURE: Final = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT_FAILURE: Final = "NamespaceDeletionContentFailure"
CONTENT_REMAINING: Final = "NamespaceContentRemaining"
FINALIZERS_REMAINING: Final = "NamespaceFinalizersRemaining"


class _Ok(NamedTuple):
    reason: str
    message: str


_OK: Final = {
    DISCOVERY_FAILURE: _Ok("ResourcesDiscovered", "All resources successfully discovered"),
    GROUP_VERSION_PARSING_FAILURE: _Ok("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT_FAILURE: _Ok("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    CONTENT_REMAINING: _Ok("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: _Ok("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass
class Findings:
    """The errors and remaining objects of one attempt to empty a namespace."""

    discovery: str | None = None
    group_version: str | None = None
    failures: list[str] = field(default_factory=list)
    remaining: dict[tuple[str, str], int] = field(default_factory=dict)
    """How many objects are left, by (plural, group)."""
    finalizers: dict[str, int] = field(default_factory=dict)
    """On how many of them each finalizer stands."""

    def failed(self) -> bool:
        """Whether the attempt must be repeated because something went wrong, not because something takes time."""
        return bool(self.discovery or self.group_version or self.failures)


def update_conditions(
    current: Sequence[NamespaceCondition] | None, findings: Findings, now: str
) -> list[NamespaceCondition] | None:
    """The conditions after these findings; None if they say what is said already."""
    wrong = _wrong(findings)
    conditions = list(current or ())
    at = {each.type: index for index, each in enumerate(conditions)}
    changed = False
    for kind, ok in _OK.items():
        status = "True" if kind in wrong else "False"
        reason, message = wrong.get(kind, ok)
        index = at.get(kind)
        new = NamespaceCondition(type=kind, status=status, reason=reason, message=message, last_transition_time=now)
        if index is None:
            conditions.append(new)
            changed = True
            continue
        old = conditions[index]
        if old.status == status:
            new.last_transition_time = old.last_transition_time
        if new != old:
            conditions[index] = new
            changed = True
    return conditions if changed else None


def _wrong(findings: Findings) -> Mapping[str, tuple[str, str]]:
    wrong: dict[str, tuple[str, str]] = {}
    if findings.discovery:
        wrong[DISCOVERY_FAILURE] = "DiscoveryFailed", findings.discovery
    if findings.group_version:
        wrong[GROUP_VERSION_PARSING_FAILURE] = "GroupVersionParsingFailed", findings.group_version
    if findings.failures:
        count, texts = len(findings.failures), ", ".join(sorted(findings.failures))
        message = f"Failed to delete all resource types, {count} remaining: {texts}"
        wrong[CONTENT_FAILURE] = "ContentDeletionFailed", message
    left = sorted(
        f"{plural}.{group} has {count} resource instances"
        for (plural, group), count in findings.remaining.items()
        if count
    )
    if left:
        wrong[CONTENT_REMAINING] = "SomeResourcesRemain", f"Some resources are remaining: {', '.join(left)}"
    held = sorted(f"{name} in {count} resource instances" for name, count in findings.finalizers.items() if count)
    if held:
        message = f"Some content in the namespace has finalizers remaining: {', '.join(held)}"
        wrong[FINALIZERS_REMAINING] = "SomeFinalizersRemain", message
    return wrong
