"""APIServices of what is served here: made at the start, and with the definitions of custom resources. Pure.

Those of built-in groups are created once, at the start: a change or deletion by a user lasts until the next
start. Those of custom resources follow their definitions. One without the label belongs to a user, and is left alone.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from pybernetes.api import scheme
from pybernetes.api.apiregistration.v1 import APIService, APIServiceSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource

MANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
ON_START: Final = "onstart"
ALWAYS: Final = "true"
CUSTOM_PRIORITY: Final = (1000, 100)
"""Of the group and the version of custom resources; upstream's."""


class Step(Enum):
    """The action for an APIService."""

    NOTHING = 0
    CREATE = 1
    UPDATE = 2
    DELETE = 3


def built_in(disabled: frozenset[Resource] = frozenset()) -> dict[str, APIService]:
    """Those of the groups that every server has. That of APIServices themselves has none."""
    served = {(each.group, each.version) for each in scheme.resources() if each not in disabled}
    found = {}
    for group in scheme.groups():
        if group.priority:
            for version, priority in zip(group.versions, group.version_priorities, strict=True):
                if (group.name, version) in served:
                    made = _api_service(group.name, version, group.priority, priority, ON_START)
                    found[f"{version}.{group.name}"] = made
    return found


def custom(resources: list[Resource]) -> dict[str, APIService]:
    """Those of custom resources. Groups that are built in keep their own."""
    versions = {(each.group, each.version) for each in resources}
    return {
        f"{version}.{group}": _api_service(group, version, *CUSTOM_PRIORITY, ALWAYS)
        for group, version in sorted(versions)
    }


def _api_service(group: str, version: str, priority: int, version_priority: int, managed: str) -> APIService:
    spec = APIServiceSpec(
        group=group or None, version=version, group_priority_minimum=priority, version_priority=version_priority
    )
    return APIService(metadata=ObjectMeta(name=f"{version}.{group}", labels={MANAGED: managed}), spec=spec)


def step(wanted: APIService | None, present: APIService | None, *, synced: bool, at_start: bool) -> Step:
    """The action. `synced`: it was reconciled before; `at_start`: it existed when this server started."""
    if present is None:
        return Step.NOTHING if wanted is None or (_managed(wanted) == ON_START and synced) else Step.CREATE
    if wanted is not None and _managed(wanted) == ON_START and synced:
        return Step.NOTHING
    managed = _managed(present)
    if managed not in (ON_START, ALWAYS):
        return Step.NOTHING
    if managed == ON_START and (synced or not at_start):
        return Step.NOTHING
    if wanted is None:
        return Step.DELETE
    return Step.NOTHING if present.spec == wanted.spec else Step.UPDATE


def _managed(obj: APIService) -> str:
    meta = obj.metadata
    return ((meta.labels if meta is not None else None) or {}).get(MANAGED, "")
