"""JSON Merge Patch (RFC 7386): what is in the patch replaces what is there, null removes it, lists are values.

The server's library goes one step further than the RFC and drops nulls from maps inside of lists too, except where the
list replaces a map; so does this.
"""

from __future__ import annotations

from typing import Any

from ..errors import BadRequest

_GO_TYPES = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}


def check(patch: Any) -> dict[str, Any]:
    """The decoded patch, which must be an object."""
    if patch is None:
        raise BadRequest("Invalid JSON Patch")
    if not isinstance(patch, dict):
        kind = _GO_TYPES[type(patch)]
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    return patch


def apply(document: Any, patch: dict[str, Any]) -> dict[str, Any]:
    """The document after the patch; neither is changed, and the result may share parts with both."""
    if not isinstance(document, dict):
        return _map_without_nulls(patch)
    result = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
            continue
        current = result.get(key)
        if not isinstance(current, dict):
            result[key] = _without_nulls(value)
        elif isinstance(value, dict):
            result[key] = apply(current, value)
        else:
            result[key] = value
    return result


def _map_without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {key: _without_nulls(each) for key, each in value.items() if each is not None}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return _map_without_nulls(value)
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value
