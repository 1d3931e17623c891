"""The table of kinds that have no printer: a name and when the object was created."""

from __future__ import annotations

from typing import Final

import msgspec

from .printer import NAME, Cells, Column, Printer

_ZERO_TIME: Final = "0001-01-01T00:00:00Z"


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    creation_timestamp: str | None = None


class Named(msgspec.Struct, gc=False):
    """Any object, reduced to what this table shows."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def _cells(obj: Named, now: float) -> Cells:
    return [obj.metadata.name, obj.metadata.creation_timestamp or _ZERO_TIME]


DEFAULT: Final = Printer(
    (NAME, Column("Created At", "date", description="When the object was created")), _cells, shape=Named
)
