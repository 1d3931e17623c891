"""Conditions of both kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...field import FieldError, Path, duplicate, required
from ..v1 import FlowSchemaStatus, PriorityLevelConfigurationStatus

_CONDITIONS = Path("status", "conditions")


def validate_conditions(status: FlowSchemaStatus | PriorityLevelConfigurationStatus | None) -> list[FieldError]:
    """Each condition has a type of its own."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    conditions: Sequence[Any] = (status.conditions if status else None) or ()
    for index, condition in enumerate(conditions):
        path, kind = _CONDITIONS.index(index).child("type"), condition.type or ""
        if kind in seen:
            errors.append(duplicate(path, kind))
        seen.add(kind)
        if not kind:
            errors.append(required(path))
    return errors
