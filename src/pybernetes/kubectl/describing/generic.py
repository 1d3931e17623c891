"""The description of a kind without one of its own: metadata, then the fields as they are."""

from __future__ import annotations

from pybernetes.kubectl.describing.description import Description

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HIDDEN = ("managedFields", "name", "namespace", "labels", "annotations", "kind", "apiVersion")


def generic(this: Description) -> None:
    """Any object."""
    this.head()
    obj = this.obj
    this.write(0, f"API Version:\t{obj.get('apiVersion')}\nKind:\t{obj.get('kind')}\n")
    _fields(this, 0, {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}, top=True)
    this.events()


def title(name: str) -> str:
    """`creationTimestamp` as `Creation Timestamp`."""
    if name == "openAPIV3Schema":
        return name
    out = ""
    for at, char in enumerate(name):
        if at and char.isupper() and (not name[at - 1].isupper() or (at + 1 < len(name) and name[at + 1].islower())):
            out += " "
        out += char
    words = out[:1].upper() + out[1:]
    return {"Uid": "UID", "Api Version": "API Version", "Url": "URL"}.get(words, words)


def _fields(this: Description, level: int, value: dict[str, Any], top: bool = False) -> None:
    for key in sorted(value, key=title):
        each = value[key]
        if top and key == "metadata":
            each = {name: found for name, found in each.items() if name not in _HIDDEN}
        _one(this, level, title(key), each)


def _one(this: Description, level: int, name: str, value: Any) -> None:
    if isinstance(value, dict):
        this.write(level, f"{name}:\n")
        _fields(this, level + 1, value)
    elif isinstance(value, list):
        this.write(level, f"{name}:\n")
        for each in value:
            if isinstance(each, dict):
                _fields(this, level + 1, each)
            elif isinstance(each, list):
                _one(this, level + 1, name, each)
            else:
                this.write(level + 1, f"{_shown(each)}\n")
    else:
        this.write(level, f"{name}:\t{_shown(value)}\n")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)
