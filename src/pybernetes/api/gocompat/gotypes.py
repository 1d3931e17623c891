"""Go's names of fields and their types, for the messages of upstream's decoder.

Most of it follows from the classes. What does not (strings with a type of their own, structs that are embedded in Go
and flat on the wire) is in `gotypes.txt`, written by tools/extract_gotypes.py, which explains its form. The file is
read with the first complaint that needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from ..base import Struct
from ..schema import ANY, LIST, MAP, FieldInfo


class GoField(NamedTuple):
    """One field as Go has it."""

    embedded: tuple[str, ...]
    """The structs, outermost first, that the field is embedded with."""
    types: tuple[str, ...]
    """Its type, that of its elements, and so on."""


_FORMATS: Final = {
    "quantity": "resource.Quantity",
    "int-or-string": "intstr.IntOrString",
    "date-time": "v1.Time",
    "micro-time": "v1.MicroTime",
    "duration": "v1.Duration",
    "fields-v1": "v1.FieldsV1",
    "json": "v1.JSON",
    "raw-extension": "runtime.RawExtension",
    "byte": "[]uint8",
}


def go_field(cls: type[Struct], info: FieldInfo) -> GoField:
    """The Go field for a field of a class."""
    return _special().get((_class_name(cls), info.wire)) or GoField((), tuple(derived_chain(info)))


def go_name(cls: type[Struct]) -> str:
    """A struct as Go prints it: `v1.PodSpec`."""
    # pybernetes.api.<group>.<version>[.<module>]: Go's package is named after the version. Classes that stand elsewhere
    # say it themselves.
    package = getattr(cls, "go_package", None)
    if package is not None:
        return f"{package}.{cls.__name__}"
    parts = cls.__module__.split(".")
    return f"{parts[3] if len(parts) > 3 else parts[-1]}.{cls.__name__}"


def derived_chain(info: FieldInfo) -> Iterator[str]:
    """The types of a field and its elements as far as the class tells."""
    each: FieldInfo | None = info
    while each is not None:
        yield _derived(each)
        each = each.items
    if info.format == "byte":
        yield "uint8"


def _derived(info: FieldInfo) -> str:
    if info.struct is not None:
        return go_name(info.struct)
    if info.format in _FORMATS:
        return _FORMATS[info.format]
    if info.kind == LIST and info.items is not None:
        return f"[]{_derived(info.items)}"
    if info.kind == MAP and info.items is not None:
        return f"map[string]{_derived(info.items)}"
    if info.kind == "int":
        return info.format or "int64"
    return {"float": "float64", ANY: "interface {}"}.get(info.kind, info.kind)


@cache
def _special() -> dict[tuple[str, str], GoField]:
    found: dict[tuple[str, str], GoField] = {}
    for line in (files(__package__) / "gotypes.txt").read_text("ascii").splitlines():
        if line.startswith("#"):
            continue
        struct, wire, embedded, *types = line.split(" ")
        found[struct, wire] = GoField(tuple(embedded[:-1].split(".")) if embedded != "-" else (), tuple(types))
    return found


def _class_name(cls: type[Struct]) -> str:
    return ".".join((*cls.__module__.split(".")[2:4], cls.__name__))
