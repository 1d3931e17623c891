"""meta/v1: answers by content negotiation: `Table`, what `kubectl get` prints, and `PartialObjectMetadata`.

By hand: the published schemas do not list them.
"""

from __future__ import annotations

from typing import Annotated, Any

from ...base import Kind, Struct
from ...types import Always, Int32, ListType, RawExtension, Required
from .listmeta import ListMeta


class PartialObjectMetadata(Kind):
    """Any object, without what makes it special."""


class Table(Struct):
    """Objects as rows of cells, laid out by the server."""

    kind: str | None = None
    api_version: str | None = None
    metadata: Annotated[ListMeta | None, Always({})] = None
    column_definitions: Annotated[list[TableColumnDefinition] | None, Required, Always(None), ListType("atomic")] = None
    rows: Annotated[list[TableRow] | None, Required, Always(None), ListType("atomic")] = None


class TableColumnDefinition(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    type: Annotated[str | None, Required, Always("")] = None
    format: Annotated[str | None, Required, Always("")] = None
    description: Annotated[str | None, Required, Always("")] = None
    priority: Annotated[Int32 | None, Required, Always(0)] = None


class TableRow(Struct):
    cells: Annotated[list[Any] | None, Required, Always(None), ListType("atomic")] = None
    conditions: Annotated[list[TableRowCondition] | None, ListType("atomic")] = None
    object: Annotated[RawExtension, Always(None)] = None


class TableRowCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    reason: str | None = None
    message: str | None = None
