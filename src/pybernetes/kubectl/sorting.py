"""The order of `--sort-by`: numbers, quantities and times by value, text as people count (`pod-2` before `pod-10`)."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.printers.customcolumns import relaxed
from pybernetes.kubectl.printers.jsonpath import JSONPath, JSONPathError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SUFFIXES = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip


def compile_field(field: str) -> JSONPath:
    """The parsed field of `--sort-by`. Raises CLIError."""
    try:
        return JSONPath(relaxed(field))
    except JSONPathError as error:
        raise CLIError(str(error)) from None


def sort(objects: list[Any], field: str, of: Any = lambda each: each) -> list[Any]:
    """Things sorted by a field of the object that `of` finds in them. Raises CLIError where nothing has the field."""
    path = compile_field(field)
    if len(objects) < 2:
        return objects
    keyed = []
    found = False
    for each in objects:
        try:
            values = [value for group in path.results(of(each)) for value in group]
        except JSONPathError as error:
            raise CLIError(str(error)) from None
        found = found or bool(values)
        keyed.append((key(values[0] if values else None), each))
    if objects and not found:
        raise CLIError(f'couldn\'t find any field with path "{relaxed(field)}" in the list of objects')
    keyed.sort(key=lambda pair: pair[0])
    return [each for _, each in keyed]


def key(value: Any) -> tuple[Any, ...]:
    """A sort key: missing values first, then numbers and quantities, then text."""
    if value is None:
        return (0,)
    if isinstance(value, bool):
        return (1, int(value))
    if isinstance(value, int | float):
        return (1, float(value))
    if isinstance(value, str):
        amount = quantity(value)
        if amount is not None:
            return (1, amount)
        return (2, value)
    return (3, str(value))


def quantity(text: str) -> float | None:
    """The number that a Kubernetes quantity stands for; None for other texts."""
    digits = text.lstrip("+-").rstrip("numkKMGTPEi")
    if not digits or not digits.replace(".", "", 1).isdigit():
        return None
    at = text.index(digits)
    suffix = text[at + len(digits) :]
    if suffix not in _SUFFIXES:
        return None
    return float(text[:at] + digits) * _SUFFIXES[suffix]
