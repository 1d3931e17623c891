"""JSON Patch (RFC 6902) on plain values, the way the API server applies it.

Where the server's library departs from the RFC, clients have come to depend on it, so this does too: negative indices
count from the end, `replace` of a missing map key adds it, `test` for null passes on a missing key, and a path is split
at slashes without looking at what stands before the first.

A patch that is not a list of operations is a bad request; one that does not fit the object is unprocessable.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

import msgspec

from ..errors import BadRequest, PatchNotApplicable, RequestEntityTooLarge
from ..gocompat.quote import quote

MAX_OPERATIONS: Final = 10_000
MAX_COPY_BYTES: Final = 3 * 1024 * 1024
"""How much `copy` operations of one patch may add; without it 10,000 of them double an object 10,000 times."""

_INDEX = re.compile("[+-]?[0-9]{1,18}", re.ASCII).fullmatch
_ABSENT: Final = object()
_GO_TYPES = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}


class _NotApplicable(Exception):
    """Why an operation cannot be applied."""


def check(patch: Any) -> list[Any]:
    """The operations of a decoded patch; refuses what is no list and what is too long."""
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise BadRequest(_cannot_unmarshal(patch, "Go value of type []handlers.jsonPatchOp"))
    for operation in patch:
        if operation is not None and not isinstance(operation, dict):
            raise BadRequest(_cannot_unmarshal(operation, "Go value of type handlers.jsonPatchOp"))
        for field in ("op", "path", "from"):
            value = (operation or {}).get(field)
            if value is not None and not isinstance(value, str):
                raise BadRequest(_cannot_unmarshal(value, f"Go struct field jsonPatchOp.{field} of type string"))
    if len(patch) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        )
    return patch


def unknown_fields(patch: list[Any]) -> list[str]:
    """The errors of strict field validation for unknown fields of operations."""
    known = ("op", "path", "from", "value")
    return [
        f"json patch unknown field {quote(f'[{index}].{key}')}"
        for index, operation in enumerate(patch)
        for key in operation or ()
        if key not in known
    ]


def apply(document: Any, patch: list[Any]) -> Any:
    """The document after all operations. The document is changed in place (pass a fresh one), the patch is not."""
    document = _Root(document)
    copied = [0]
    for index, operation in enumerate(check(patch)):
        try:
            kind = (operation or {}).get("op")
            run = _OPERATIONS.get(kind if isinstance(kind, str) else "unknown")
            if run is None:
                raise _NotApplicable(f"Unexpected kind: {kind or 'unknown'}")
            run(document, operation, copied)
        except _NotApplicable as error:
            raise PatchNotApplicable(f"operation {index}: {error}") from None
    return document.value


class _Root:
    """Holds the document, so that an operation can replace it as a whole."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _add(root: _Root, operation: dict[str, Any], copied: list[int]) -> None:
    path = _text(operation, "path", "add")
    container, key = _find(root, path)
    if container is None:
        raise _NotApplicable(f'add operation does not apply: doc is missing path: "{path}": missing value')
    try:
        _insert(container, key, _value(operation))
    except _NotApplicable as error:
        raise _NotApplicable(f"error in add for path: '{path}': {error}") from None


def _remove(root: _Root, operation: dict[str, Any], copied: list[int]) -> None:
    path = _text(operation, "path", "remove")
    container, key = _find(root, path)
    if container is None:
        raise _NotApplicable(f'remove operation does not apply: doc is missing path: "{path}": missing value')
    try:
        _delete(container, key)
    except _NotApplicable as error:
        raise _NotApplicable(f"error in remove for path: '{path}': {error}") from None


def _replace(root: _Root, operation: dict[str, Any], copied: list[int]) -> None:
    path = _text(operation, "path", "replace")
    value = _value(operation)
    if path == "":
        if not isinstance(value, (dict, list)):
            raise _NotApplicable("replace operation value must be object or array")
        root.value = value
        return
    container, key = _find(root, path)
    if container is None:
        raise _NotApplicable(f"replace operation does not apply: doc is missing path: {path}: missing value")
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_position(container, key, len(container))] = value


def _move(root: _Root, operation: dict[str, Any], copied: list[int]) -> None:
    origin = _text(operation, "from", "move")
    container, key = _find(root, origin)
    if container is None:
        raise _NotApplicable(f"move operation does not apply: doc is missing from path: {origin}: missing value")
    value = _get(container, key)
    _delete(container, key)
    path = _text(operation, "path", "move")
    container, key = _find(root, path)
    if container is None:
        raise _NotApplicable(f"move operation does not apply: doc is missing destination path: {path}: missing value")
    _insert(container, key, value)


def _copy(root: _Root, operation: dict[str, Any], copied: list[int]) -> None:
    origin = _text(operation, "from", "copy")
    container, key = _find(root, origin)
    if container is None:
        raise _NotApplicable(f"copy operation does not apply: doc is missing from path: {origin}: missing value")
    value = _get(container, key)
    path = _text(operation, "path", "copy")
    container, key = _find(root, path)
    if container is None:
        raise _NotApplicable(f"copy operation does not apply: doc is missing destination path: {path}: missing value")
    encoded = msgspec.json.encode(None if value is _ABSENT else value)
    copied[0] += len(encoded)
    if copied[0] > MAX_COPY_BYTES:
        raise _NotApplicable(
            f"Unable to complete the copy, the accumulated size increase of copy is {copied[0]}, "
            f"exceeding the limit {MAX_COPY_BYTES}"
        )
    _insert(container, key, msgspec.json.decode(encoded))


def _test(root: _Root, operation: dict[str, Any], copied: list[int]) -> None:
    path = _text(operation, "path", "test")
    want = operation.get("value")
    if path == "":
        found = root.value
    else:
        container, key = _find(root, path)
        if container is None:
            raise _NotApplicable(f"test operation does not apply: is missing path: {path}: missing value")
        found = _get(container, key)
    if not _equal(None if found is _ABSENT else found, want):
        raise _NotApplicable(f"testing value {path} failed: test failed")


_OPERATIONS: dict[str, Callable[[_Root, dict[str, Any], list[int]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _value(operation: dict[str, Any]) -> Any:
    """A copy: later operations change it in the document, and the patch may be applied again after a conflict."""
    value = operation.get("value")
    return deepcopy(value) if isinstance(value, (dict, list)) else value


def _text(operation: dict[str, Any], field: str, kind: str) -> str:
    value = operation.get(field)
    if value is None:
        raise _NotApplicable(f"{kind} operation failed to decode {field}: missing value")
    return str(value)


def _find(root: _Root, path: str) -> tuple[dict[str, Any] | list[Any] | None, str]:
    """The container that a path's last part is a key of; None if it is not there."""
    parts = path.split("/")
    container = root.value
    if len(parts) < 2 or not isinstance(container, (dict, list)):
        return None, ""
    for part in parts[1:-1]:
        try:
            container = _get(container, unescape(part))
        except _NotApplicable:
            return None, ""
        if not isinstance(container, (dict, list)):
            return None, ""
    return container, unescape(parts[-1])


def _get(container: dict[str, Any] | list[Any], key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key, _ABSENT)
    return container[_position(container, key, len(container))]


def _insert(container: dict[str, Any] | list[Any], key: str, value: Any) -> None:
    value = None if value is _ABSENT else value
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_position(container, key, len(container) + 1), value)


def _delete(container: dict[str, Any] | list[Any], key: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise _NotApplicable(f"Unable to remove nonexistent key: {key}: missing value")
        del container[key]
    else:
        del container[_position(container, key, len(container))]


def _position(container: list[Any], key: str, size: int) -> int:
    """An index into a list that will have `size` elements; negative ones count from its end."""
    if not _INDEX(key):
        raise _NotApplicable(f"value was not a proper array index: '{key}'")
    index = int(key)
    if not -size <= index < size:
        raise _NotApplicable(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + size if index < 0 else index


def unescape(part: str) -> str:
    """A name as a pointer writes it."""
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def _equal(a: Any, b: Any) -> bool:
    """Equal as JSON: `1`, `1.0` and `true` are three things."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)


def _cannot_unmarshal(value: Any, target: str) -> str:
    return f"error decoding patch: json: cannot unmarshal {_GO_TYPES.get(type(value), 'null')} into {target}"
