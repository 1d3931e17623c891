"""meta/v1: labelselector.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ...base import Struct
from ...types import Always, ListType, MapType, Required


class LabelSelector(Struct):
    """Which objects, by their labels; all requirements must hold."""

    map_type: ClassVar = MapType("atomic")

    match_labels: dict[str, str] | None = None
    match_expressions: Annotated[list[LabelSelectorRequirement] | None, ListType("atomic")] = None


class LabelSelectorRequirement(Struct):
    key: Annotated[str | None, Required, Always("")] = None
    operator: Annotated[str | None, Required, Always("")] = None
    values: Annotated[list[str] | None, ListType("atomic")] = None


class FieldSelectorRequirement(Struct):
    key: Annotated[str | None, Required, Always("")] = None
    operator: Annotated[str | None, Required, Always("")] = None
    values: Annotated[list[str] | None, ListType("atomic")] = None
