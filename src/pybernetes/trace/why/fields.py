"""Finds the managers of a field of an object, by its managed fields."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .cluster import Object


class Owner(NamedTuple):
    """A manager that owns a field."""

    manager: str
    operation: str
    time: str


_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def owners_of(thing: Object, path: str) -> list[Owner]:
    """The managers that own a field (`spec.replicas`, `spec.containers[nginx].image`), the latest first."""
    found = []
    for entry in thing["metadata"].get("managedFields") or ():
        if _owns(entry.get("fieldsV1") or {}, _steps(path)):
            part = f", {entry['subresource']}" if entry.get("subresource") else ""
            found.append(
                Owner(str(entry.get("manager")), f"{entry.get('operation')}{part}", str(entry.get("time", "")))
            )
    return sorted(found, key=lambda each: each.time, reverse=True)


def value_at(thing: Object, path: str) -> Any:
    """The value of a field; None if it is not set."""
    value: Any = thing
    for step in _steps(path):
        if isinstance(value, list):
            named = [each for each in value if isinstance(each, dict) and step in map(str, each.values())]
            value = named[0] if named else value[int(step)] if step.isdigit() and int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _steps(path: str) -> list[str]:
    return [name or item for name, item in _STEP.findall(path)]


def _owns(fields: Any, steps: list[str]) -> bool:
    """Whether a set of fields (`fieldsV1`) has a field, or all that is below it."""
    if not steps:
        return True
    if not isinstance(fields, dict):
        return False
    step, *rest = steps
    for key, below in fields.items():
        kind, _, name = key.partition(":")
        if (
            (kind == "f" and name == step)
            or (kind in ("k", "v") and f'"{step}"' in name)
            or (kind == "i" and name == step)
        ):
            return _owns(below, rest) if below or rest == [] else True
    return False
