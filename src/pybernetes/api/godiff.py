"""How upstream shows values of its internal types in messages.

A value is printed as JSON with the fields in Go's order (maps of ours would be sorted); what changed in a value that
must not change is shown as a unified diff of two such texts.
"""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import Any, Final

import msgspec


def diff(old: Any, new: Any) -> str:
    """The lines that differ with three lines around them; values are what upstream's internal types would print."""
    before, after = (json.dumps(each, indent=1, ensure_ascii=False).splitlines() for each in (old, new))
    lines = list(unified_diff(before, after, n=3, lineterm=""))[2:]  # without the names of files
    return "".join(f"{line}\n" for line in lines)


def in_order(value: Any) -> msgspec.Raw:
    """A value for a field error that is printed with its keys in the order they have here."""
    return msgspec.Raw(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


# Names that are not simply the wire's with a capital, and fields behind pointers: absent, they are null and not "".
_NAMES: Final = {
    "apiGroup": "APIGroup",
    "apiVersion": "APIVersion",
    "fsType": "FSType",
    "iqn": "IQN",
    "pdID": "PdID",
    "targetWWNs": "TargetWWNs",
    "uid": "UID",
    "wwids": "WWIDs",
}
_POINTERS: Final = frozenset({"APIGroup", "InitiatorName", "SecretNamespace"})


def go_form(value: Any) -> Any:
    """A part of a kind with every field under the name it has in Go; empty texts where nothing was said."""
    if isinstance(value, list):
        return [go_form(each) for each in value]
    if not isinstance(value, msgspec.Struct):
        return value
    form: dict[str, Any] = {}
    for field, wire in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        name = _NAMES.get(wire) or wire[0].upper() + wire[1:]
        inner = getattr(value, field)
        if inner is None and name not in _POINTERS:
            inner = _zero(type(value), field)
        form[name] = go_form(inner)
    return form


def _zero(cls: type[msgspec.Struct], field: str) -> Any:
    """What Go has where nothing was said: by the type of the field, as the annotation spells it."""
    text = str(cls.__annotations__.get(field, "")).replace("Annotated[", "").partition("|")[0].strip()
    return {"str": "", "bool": False, "Int32": 0, "Int64": 0}.get(text)
