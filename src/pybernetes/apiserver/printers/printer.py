"""The shape of every printer: columns, and a function from an object to its cells.

A cell is a string, a number or a bool, whatever its column's type says: upstream puts numbers into columns of type
string and clients print what they get, so the cells are what must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import msgspec

from pybernetes.api.base import Kind

from . import duration

NONE: Final = "<none>"
UNSET: Final = "<unset>"

Cell: TypeAlias = str | int | bool
Cells: TypeAlias = list[Cell]


class Column(msgspec.Struct, frozen=True):
    """A TableColumnDefinition; encoded as it is. Clients hide priorities above 0 unless asked for a wide output."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Condition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A TableRowCondition; encoded as it is."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True)
class Printer:
    """How the objects of one kind are printed."""

    columns: tuple[Column, ...]
    cells: Callable[[Any, float], Cells]
    """The cells of an object, at a time in seconds since 1970. The object may lack everything: a bookmark does."""
    shape: type[msgspec.Struct] | None = None
    """A partial type to decode instead of the whole kind, where lists are long enough to make it worth it."""
    conditions: Callable[[Any], tuple[Condition, ...]] | None = None
    """The conditions of the row, such as that its work is done."""
    order: Callable[[Any], Any] | None = None
    """The sort key of the rows, if it is not the name."""

    @cached_property
    def encoded_columns(self) -> bytes:
        """The columns as JSON; kept with the printer, which goes when its definition does."""
        return msgspec.json.encode(self.columns)


NAME: Final = Column("Name", format="name", description="Name of the object")
AGE: Final = Column("Age", description="Time since the object was created")
CONTAINERS: Final = Column("Containers", priority=1, description="Names of the template's containers")
IMAGES: Final = Column("Images", priority=1, description="Images of the template's containers")
SELECTOR: Final = Column("Selector", priority=1, description="Which pods belong to it")


def integer(name: str, description: str) -> Column:
    """A column of numbers."""
    return Column(name, "integer", description=description)


def boolean(name: str, description: str) -> Column:
    """A column of yes and no."""
    return Column(name, "boolean", description=description)


def text(name: str, description: str) -> Column:
    """A column of text."""
    return Column(name, description=description)


def wide(name: str, description: str) -> Column:
    """A column of text that shows in wide output only."""
    return Column(name, description=description, priority=1)


def name(obj: Kind) -> str:
    """The object's name."""
    return (obj.metadata and obj.metadata.name) or ""


def age(obj: Kind, now: float) -> str:
    """How old the object is."""
    return duration.since(obj.metadata.creation_timestamp if obj.metadata else None, now)


def deleting(obj: Kind) -> bool:
    """Whether the object is on its way out."""
    return bool(obj.metadata and obj.metadata.deletion_timestamp)


def annotation(obj: Kind, key: str) -> str | None:
    """One of the object's annotations."""
    return ((obj.metadata and obj.metadata.annotations) or {}).get(key)
