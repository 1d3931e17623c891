"""Groups and versions of several servers in one order: by the priorities of their APIServices. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pybernetes.api.resources import Group
from pybernetes.api.versions import priority

from .registration import CUSTOM_PRIORITY

FIRST = 20001
"""The priority of the group of APIServices, which is above all that one can ask for."""


class Served(Protocol):
    """The state of an APIService."""

    group: str
    version: str
    priority: int
    version_priority: int


def merged(local: Iterable[Group], remote: Iterable[Served]) -> list[Group]:
    """All groups; a group is as important as the most important of its versions."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for group in local:
        known = dict(zip(group.versions, group.version_priorities, strict=False)) if group.priority else {}
        above = FIRST if group.name == "apiregistration.k8s.io" else group.priority
        for version in group.versions:
            ours = (above, known.get(version, 0)) if version in known or above == FIRST else CUSTOM_PRIORITY
            found.setdefault(group.name, {})[version] = ours
    for each in remote:
        found.setdefault(each.group, {})[each.version] = (each.priority, each.version_priority)
    made = []
    for name, versions in found.items():
        names = sorted(versions, key=lambda version: (-versions[version][1], priority(version)))
        above = max(each[0] for each in versions.values())
        made.append(Group(name, tuple(names), above, tuple(versions[each][1] for each in names)))
    return sorted(made, key=lambda group: (-group.priority, group.name))
