"""core/v1: componentstatus.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Kind, Struct
from ...types import Always, ListType, Patch, Required


class ComponentStatus(Kind):
    """Health of a control plane component; kept for old clients."""

    conditions: Annotated[list[ComponentCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = (
        None
    )


class ComponentCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    message: str | None = None
    error: str | None = None
