"""The table of a custom resource: its name, and the columns of its definition, or its age if there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from pybernetes.api.apiextensions.v1 import CustomResourceColumnDefinition
from pybernetes.api.gocompat import goprint
from pybernetes.api.structural.jsonpath import PathError, compile_path

from ..printers import duration
from ..printers.lookup import Found
from ..printers.printer import NAME, Column, Printer

_LEAST: Final = -(1 << 63)  # what Go makes of numbers that do not fit
_AGE: Final = CustomResourceColumnDefinition(
    name="Age", type="date", json_path=".metadata.creationTimestamp", description="Time since the object was created"
)
Show = Callable[[Any, float], Any]
"""From what is at a column's path to its cell, at a time."""


def found_for(columns: list[CustomResourceColumnDefinition] | None) -> Found:
    """How objects with these columns are printed."""
    heads = [NAME]
    cells: list[tuple[Callable[[Any], list[Any]], Show]] = []
    for each in columns or [_AGE]:
        try:
            find = compile_path(each.json_path or "")
        except PathError:  # upstream falls back to what could be read so far
            break
        described = f"Custom resource definition column (in JSONPath format): {each.json_path}"
        heads.append(
            Column(
                each.name or "", each.type or "", each.format or "", each.description or described, each.priority or 0
            )
        )
        cells.append((find, _SHOW.get(each.type or "", _nothing)))

    def row(document: Any, now: float) -> list[Any]:
        made = [document.get("metadata", {}).get("name", "")]
        for find, show in cells:
            try:
                values = find(document)
            except PathError:
                values = []
            made.append(show(values[0], now) if values else None)
        return made

    return Found(Printer(tuple(heads), row), msgspec.json.decode)


def _integer(value: Any, now: float) -> int | None:
    if type(value) not in (int, float):
        return None
    number = int(value)
    return number if _LEAST <= number < -_LEAST else _LEAST


def _number(value: Any, now: float) -> int | float | None:
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) in (int, float) else None


def _boolean(value: Any, now: float) -> bool | None:
    return value if type(value) is bool else None


def _string(value: Any, now: float) -> str:
    if value is None:
        return "<no value>"
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, order="sorted").decode()
    return goprint.plain(value)


def _date(value: Any, now: float) -> str | None:
    if type(value) is not str:
        return None
    return duration.since("" if value == "null" else value, now)  # upstream takes this text for no time


def _nothing(value: Any, now: float) -> None:
    return None


_SHOW: Final[dict[str, Show]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "string": _string,
    "date": _date,
}
