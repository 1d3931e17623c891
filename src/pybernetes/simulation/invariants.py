"""Invariants of every cluster, checked at each write.

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
    """An object with finalizers is gone only when it was being deleted: who takes the last one away removes it."""
    if before and after is None and not before["metadata"].get("deletionTimestamp"):
        found = before["metadata"].get("finalizers")
        return f"{before.get('kind')} {_name(before)} was removed with finalizers {', '.join(found)}" if found else None
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


def quota_is_kept(before: Object | None, after: Object | None) -> str | None:
    """The usage that a ResourceQuota counts does not grow beyond its limit."""
    if before and after and after.get("kind") == "ResourceQuota":
        hard, used = after.get("status", {}).get("hard") or {}, after.get("status", {}).get("used") or {}
        had = before.get("status", {}).get("used") or {}
        for name, value in used.items():
            amounts = [value, hard.get(name, ""), had.get(name, "")]
            counts = name.isalpha() or name.startswith("count/")
            if counts and all(each.isdigit() for each in amounts) and int(value) > max(map(int, amounts[1:])):
                return f"quota {_name(after)}: {value} {name} of {hard[name]}"
    return None


def counts_do_not_fall(before: Object | None, after: Object | None) -> str | None:
    """A Job does not forget pods that it has counted, and a Deployment's revision does not go back."""
    if not (before and after) or before["metadata"]["uid"] != after["metadata"]["uid"]:
        return None
    if after.get("kind") == "Job":
        old, new = before.get("status", {}), after.get("status", {})
        for field in ("succeeded", "failed"):
            if (new.get(field) or 0) < (old.get(field) or 0):
                return f"job {_name(after)}: {field} fell from {old[field]} to {new.get(field) or 0}"
    if after.get("kind") == "Deployment":
        was, now = (each["metadata"].get("annotations", {}).get(REVISION, "0") for each in (before, after))
        if int(now) < int(was):
            return f"deployment {_name(after)}: its revision fell from {was} to {now}"
    return None


class AddressesAreUnique:
    """No two Services have the same cluster IP, and no two pods that run the same pod IP. One for each run."""

    __name__ = "addresses_are_unique"

    def __init__(self) -> None:
        self._owner: dict[tuple[str, str], str] = {}
        """(kind, address) -> uid of who has it."""

    def __call__(self, before: Object | None, after: Object | None) -> str | None:
        old, new = _addresses(before), _addresses(after)
        for each in old - new:
            self._owner.pop(each, None)
        for each in new - old:
            uid: str = after["metadata"]["uid"] if after else ""
            if self._owner.setdefault(each, uid) != uid:
                return f"{each[0]} {_name(after or {})} got {each[1]}, which another one has"
        return None


REVISION = "deployment.kubernetes.io/revision"
ALWAYS: tuple[Check, ...] = (
    pod_is_bound_once,
    finalizers_are_respected,
    identity_stays,
    finished_pods_stay_finished,
    quota_is_kept,
    counts_do_not_fall,
)


def checks() -> list[Check]:
    """Those that a run begins with."""
    return [*ALWAYS, AddressesAreUnique()]


def _addresses(content: Object | None) -> set[tuple[str, str]]:
    if not content:
        return set()
    spec, status = content.get("spec") or {}, content.get("status") or {}
    if content.get("kind") == "Service":
        return {("service", each) for each in spec.get("clusterIPs") or () if each != "None"}
    if (
        content.get("kind") == "Pod"
        and status.get("phase") not in ("Succeeded", "Failed")
        and not spec.get("hostNetwork")
    ):
        return {("pod", each["ip"]) for each in status.get("podIPs") or ()}
    return set()


def _name(content: Object) -> str:
    metadata = content["metadata"]
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)
