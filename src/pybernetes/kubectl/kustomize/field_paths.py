"""Finds the fields of an object that a path names, and changes them.

A path of a field spec goes through lists by itself (`spec/containers/image`); a path of a replacement names the items
(`spec.containers.[name=web].image`, an index, `*` for each).
"""

from __future__ import annotations

import re

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Setter = Callable[[dict[str, Any] | list[Any], Any], None]


def split(path: str, separator: str) -> list[str]:
    """The parts of a path; a separator after a backslash belongs to its part."""
    parts = re.split(rf"(?<!\\){re.escape(separator)}", path)
    return [part.replace(f"\\{separator}", separator) for part in parts]


def split_items(path: str) -> list[str]:
    """The parts of a replacement's path: dots in brackets belong to their part, `[a.b]` is the key `a.b`."""
    found: list[str] = []
    waiting = split(path, ".")
    while waiting:
        part = waiting.pop(0)
        if part.startswith("[") and not part.endswith("]"):
            while waiting and not part.endswith("]"):
                part += f".{waiting.pop(0)}"
            part = part if "=" in part else part.strip("[]")
        found.append(part)
    return found


def change(obj: Any, path: str, change_field: Setter, create: type | None = None) -> None:
    """Calls `change_field(holder, key)` for each field that a field spec names.

    With `create` the path is made where it is missing, its last part with a value of that type. Raises CLIError.
    """
    _change(obj, split(path, "/"), change_field, create, path)


def _change(obj: Any, parts: list[str], change_field: Setter, create: type | None, path: str) -> None:
    if obj is None:
        return
    if isinstance(obj, list):
        for each in obj:
            _change(each, parts, change_field, create, path)
        return
    if not isinstance(obj, dict):
        raise CLIError(f"considering field '{path}' of object: expected sequence or mapping node")
    name = parts[0].removesuffix("[]")
    if not name:
        raise CLIError("cannot set or create an empty field name")
    in_list = name != parts[0]
    if obj.get(name) is None:
        if create is None or in_list:
            if name not in obj or len(parts) > 1:
                return
        else:
            obj[name] = create() if len(parts) == 1 else {}
    value = obj.get(name)
    if len(parts) > 1:
        _change(value, parts[1:], change_field, create, path)
    elif isinstance(value, list) and in_list:
        for index in range(len(value)):
            change_field(value, index)
    else:
        change_field(obj, name)


def lookup(obj: Any, path: list[str]) -> Any:
    """The value at a path that names one field, or None. Raises CLIError for a path that can name none."""
    for part in path:
        if part == "*":
            raise CLIError("wildcard is not supported in PathGetter")
        if isinstance(obj, list):
            obj = _item(obj, part)
        elif isinstance(obj, dict):
            obj = obj.get(part)
        else:
            return None
    return obj


def _item(items: list[Any], part: str) -> Any:
    if part.lstrip("-").isdigit():
        index = int(part)
        if index < 0:
            raise CLIError(f"array index {index} cannot be negative")
        return items[index] if index < len(items) else None
    if part == "-":
        return items[-1] if items else None
    key, value = _bracket(part)
    return next((each for each in items if _named(each, key, value)), None)


def _bracket(part: str) -> tuple[str, str]:
    if not (part.startswith("[") and part.endswith("]")):
        raise CLIError(f"wrong node kind: expected MappingNode but was SequenceNode: node contents: {part}")
    key, equals, value = part[1:-1].partition("=")
    return (key, value) if equals else ("", key)


def _named(each: Any, key: str, value: str) -> bool:
    if not key:
        return text_of(each) == value
    return isinstance(each, dict) and key in each and text_of(each[key]) == value


def text_of(value: Any) -> str:
    """A scalar as YAML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def places(obj: Any, path: list[str], create: type | None) -> list[tuple[Any, Any]]:
    """The holders and keys of all fields that a replacement's path names; with `create` what is missing is made.

    Raises CLIError.
    """
    if len(path) == 1 and isinstance(obj, dict) and not _names_item(path[0]):
        if path[0] not in obj:
            if create is None:
                return []
            obj[path[0]] = create()
        return [(obj, path[0])]
    found: list[tuple[Any, Any]] = []
    for holder, key in _steps(obj, path[0], create, path[1] if len(path) > 1 else ""):
        if len(path) == 1:
            found.append((holder, key))
        else:
            found += places(holder[key], path[1:], create)
    return found


def _names_item(part: str) -> bool:
    return part == "*" or part.isdigit() or part.startswith("[")


def _steps(obj: Any, part: str, create: type | None, following: str) -> list[tuple[Any, Any]]:
    if isinstance(obj, dict):
        if part == "*":
            raise CLIError("wrong node kind: expected SequenceNode but was MappingNode")
        if obj.get(part) is None:
            if create is None:
                return []
            obj[part] = [] if _names_item(following) or following == "-" else {}
        return [(obj, part)]
    if not isinstance(obj, list):
        kind = "ScalarNode"
        raise CLIError(f"wrong node kind: expected {'Sequence' if _names_item(part) else 'Mapping'}Node but was {kind}")
    if part == "*":
        return [(obj, index) for index in range(len(obj))]
    if part.isdigit():
        index = int(part)
        if index == len(obj) and create is not None:
            obj.append([] if _names_item(following) else {} if following else create())
        if index >= len(obj):
            raise CLIError(f"index {index} specified but only {len(obj)} elements found")
        return [(obj, index)]
    key, value = _bracket(part)
    try:
        wanted = re.compile(value)
    except re.error as error:
        raise CLIError(f"error parsing regexp: {error.msg}: `{value}`") from None
    found = [index for index, each in enumerate(obj) if _found(each, key, wanted)]
    if not found and create is not None:
        obj.append({key: value} if key else value)
        found = [len(obj) - 1]
    return [(obj, index) for index in found]


def _found(each: Any, key: str, wanted: re.Pattern[str]) -> bool:
    if not key:
        return bool(wanted.search(text_of(each)))
    return isinstance(each, dict) and each.get(key) is not None and bool(wanted.search(text_of(each[key])))
