"""What holds in every cluster at every moment, checked at each write.

A check is a function of the object before and after the write (None: it was not there, or is gone). It returns what is
wrong, or None. Users add theirs with `Simulation.always`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
Check = Callable[[Object | None, Object | None], str | None]


def pod_is_bound_once(before: Object | None, after: Object | None) -> str | None:
    """A pod that has a node keeps it."""
    if before and after and after.get("kind") == "Pod":
        old, new = before["spec"].get("nodeName"), after["spec"].get("nodeName")
        if old and new != old and before["metadata"]["uid"] == after["metadata"]["uid"]:
            return f"pod {_name(after)} moved from node {old} to {new}"
    return None


def finalizers_are_respected(before: Object | None, after: Object | None) -> str | None:
    """An object is gone only when it has no finalizers."""
    if before and after is None and (found := before["metadata"].get("finalizers")):
        return f"{before.get('kind')} {_name(before)} was removed with finalizers {', '.join(found)}"
    return None


def identity_stays(before: Object | None, after: Object | None) -> str | None:
    """The uid and the time of creation of an object do not change."""
    if before and after:
        for field in ("uid", "creationTimestamp"):
            if before["metadata"].get(field) != after["metadata"].get(field):
                return f"{after.get('kind')} {_name(after)}: {field} changed"
    return None


def finished_pods_stay_finished(before: Object | None, after: Object | None) -> str | None:
    """A pod that succeeded or failed does not run again."""
    if before and after and after.get("kind") == "Pod":
        old, new = before.get("status", {}).get("phase"), after.get("status", {}).get("phase")
        if old in ("Succeeded", "Failed") and new != old:
            return f"pod {_name(after)} was {old} and is {new}"
    return None


ALWAYS: tuple[Check, ...] = (
    pod_is_bound_once,
    finalizers_are_respected,
    identity_stays,
    finished_pods_stay_finished,
)


def _name(content: Object) -> str:
    metadata = content["metadata"]
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)
