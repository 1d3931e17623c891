"""Applies the result of a mutation's expression to an object: an apply configuration, or a JSON patch."""

from __future__ import annotations

import base64
import copy
from typing import Any

from pybernetes.api.admissionregistration.expressions import ObjectValue
from pybernetes.api.cel.types import Type
from pybernetes.api.cel.values import Duration, Optional, Timestamp
from pybernetes.api.errors import PatchNotApplicable
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.managedfields.merge import merge
from pybernetes.api.managedfields.node import LIST, MAP, Node, shape
from pybernetes.api.managedfields.validate import problems
from pybernetes.api.patch import json_patch


class Unfit(Exception):
    """The mutation cannot be made; the text says why, in upstream's words."""


def applied(document: dict[str, Any], value: Any, node: Node) -> dict[str, Any]:
    """The document with an `Object{...}` merged into it. Raises Unfit."""
    mismatches = list(_mismatches(value, "Object"))
    if mismatches:
        raise Unfit("type mismatch: " + "\n".join(mismatches))
    patch = to_json(value)
    patch["apiVersion"], patch["kind"] = document["apiVersion"], document["kind"]
    wrong = problems(patch, node)
    if wrong:
        raise Unfit(f"error applying patch: failed to convert patch object to typed object: {wrong}")
    atomic = _atomics(patch, node, "")
    if atomic:
        raise Unfit(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            + ", ".join(atomic)
        )
    merged: dict[str, Any] = merge(document, patch, node)
    return merged


def patched(document: dict[str, Any], operations: list[Any]) -> dict[str, Any]:
    """The document after JSON patch operations; a `test` that fails leaves it alone. Raises Unfit."""
    made = []
    for operation in operations:
        value = operation.get("value")
        if isinstance(value, ObjectValue):
            mismatches = list(_mismatches(value, value.type_name))
            if mismatches:
                raise Unfit("type mismatch: " + "\n".join(mismatches))
        each = {key: operation[key] for key in ("op", "path", "from") if operation.get(key)}
        each.setdefault("op", "")
        each.setdefault("path", "")
        if "value" in operation:
            each["value"] = to_json(value)
        made.append(each)
    try:
        result: dict[str, Any] = json_patch.apply(copy.deepcopy(document), made)
    except PatchNotApplicable as error:
        why = error.why.partition(": ")[2] or error.why
        if "testing value" in why or "testing path" in why:
            return document
        raise Unfit(f"JSON Patch: {why}") from None
    except RecursionError:
        raise Unfit("JSON Patch: exceeded max depth") from None
    return result


def to_json(value: Any) -> Any:
    """A value of an expression as JSON."""
    if isinstance(value, dict):
        return {str(key): to_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [to_json(each) for each in value]
    if isinstance(value, (Timestamp, Duration)):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Optional):
        return to_json(value.value) if value.present else None
    if isinstance(value, Type):
        return value.name
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def _mismatches(value: Any, expected: str) -> Any:
    """Parts that were written with another name than the place where they are."""
    if isinstance(value, ObjectValue):
        if value.type_name != expected:
            yield (
                f"unexpected type name {quote(value.type_name)}, expected {quote(expected)}, "
                "which matches field name path from root Object type"
            )
        for key, each in value.items():
            yield from _mismatches(each, f"{expected}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from _mismatches(each, expected)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _mismatches(each, expected)


def _atomics(value: Any, node: Node, path: str) -> list[str]:
    """Places where a patch would replace as a whole what its author may have meant to add to."""
    found: list[str] = []
    what = shape(node, value)
    if what == MAP and isinstance(value, dict) and node.map is not None:
        if node.map.atomic:
            found.append(path)
        for key, each in value.items():
            field = node.map.fields.get(key)
            if field is not None:
                found += _atomics(each, field.node, f"{path}.{key}")
    elif what == LIST and isinstance(value, list) and node.list is not None:
        if node.list.atomic:
            found.append(path)
        for index, each in enumerate(value):
            found += _atomics(each, node.list.element, f"{path}[{index}]")
    return found
