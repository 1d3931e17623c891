"""The description of a kind without one of its own: metadata, then the fields as they are."""

from __future__ import annotations

from pybernetes.kubectl.describing.description import Description

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HIDDEN = ("managedFields", "name", "namespace", "labels", "annotations")
_ACRONYMS = ("API", "URL", "UID", "GUID")


def generic(this: Description) -> None:
    """Any object."""
    this.head()
    metadata = {key: value for key, value in (this.obj.get("metadata") or {}).items() if key not in _HIDDEN}
    _fields(this, 0, {**this.obj, "metadata": metadata})
    this.events()


def title(name: str) -> str:
    """`creationTimestamp` as `Creation Timestamp`; a name with digits or dots as it is."""
    if not all(char.isalpha() or char == "-" for char in name):
        return name
    words: list[str] = []
    for part in _parts(name):
        # An acronym belongs to the word after it: `JSON`, `Path`.
        if words and len(words[-1]) > 1 and words[-1].isupper() and part[:1].isupper():
            words[-1] += part
        else:
            words.append(part)
    return " ".join(
        word.upper() if word.upper() in _ACRONYMS else word.capitalize() if word.islower() else word for word in words
    )


def _parts(name: str) -> list[str]:
    """The words of a name in camel case: `hostIPs` is `host`, `I`, `Ps`."""
    parts: list[str] = []
    for char in name:
        last = parts[-1] if parts else ""
        if last and (_class(char) == _class(last[-1])):
            parts[-1] += char
        elif last and char.islower() and last[-1].isupper():  # the last capital begins the word
            parts[-1:] = [last[:-1], last[-1] + char] if len(last) > 1 else [last + char]
        else:
            parts.append(char)
    return parts


def _class(char: str) -> int:
    return 1 if char.islower() else 2 if char.isupper() else 3


def _fields(this: Description, level: int, value: dict[str, Any]) -> None:
    for key in sorted(value):
        _one(this, level, title(key), value[key])


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
