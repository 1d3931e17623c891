"""core/v1: namespace.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Kind, Struct
from ...types import Always, Enum, ListType, Patch, Required, Time


class Namespace(Kind):
    """A room for names."""

    spec: Annotated[NamespaceSpec | None, Always({})] = None
    status: Annotated[NamespaceStatus | None, Always({})] = None


class NamespaceSpec(Struct):
    finalizers: Annotated[list[str] | None, ListType("atomic")] = None


class NamespaceStatus(Struct):
    phase: Annotated[str | None, Enum("Active", "Terminating")] = None
    conditions: Annotated[list[NamespaceCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = (
        None
    )


class NamespaceCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None
