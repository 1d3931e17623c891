"""The schema of a custom resource as a node.

Without a schema everything is deduced from the values. Lists are atomic unless they say otherwise; what is below
`x-kubernetes-preserve-unknown-fields` may hold fields the schema does not name.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ..meta.v1.objectmeta import ObjectMeta
from .kinds import node_of as kind_of
from .node import BOOLEAN, DEDUCED, NUMERIC, STRING, UNTYPED, UNTYPED_SCALAR, Field, List, Map, Node

Schema = dict[str, Any]


def node_of(schema: Schema | None, preserve_unknown_fields: bool = False) -> Node:
    """The node of the whole object, whose type and metadata are those of every object."""
    if schema is None:
        return DEDUCED
    return _object(schema, preserve_unknown_fields, embedded=True)


def _node(schema: Schema, preserve: bool) -> Node:
    preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
    match schema.get("type", ""):
        case "object":
            return _object(schema, preserve, schema.get("x-kubernetes-embedded-resource") is True)
        case "array":
            return Node(list=_list(schema, preserve))
        case "integer" | "number":
            return Node(scalar=NUMERIC)
        case "boolean":
            return Node(scalar=BOOLEAN)
        case "string":
            return Node(scalar=STRING if schema.get("format", "") in ("", "byte") else UNTYPED_SCALAR)
    return Node(UNTYPED_SCALAR, _list(schema, preserve), _object(schema, preserve, False).map)


def _object(schema: Schema, preserve: bool, embedded: bool) -> Node:
    preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
    properties = schema.get("properties") or {}

    def fields() -> dict[str, Field]:
        found = {name: Field(_node(each, preserve), each.get("default", UNSET)) for name, each in properties.items()}
        if embedded:
            text = Node(scalar=STRING)
            found |= {"apiVersion": Field(text), "kind": Field(text), "metadata": Field(kind_of(ObjectMeta))}
        return found

    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    return Node(map=Map(fields, _others(schema, preserve, bool(properties) or embedded), atomic))


def _others(schema: Schema, preserve: bool, has_fields: bool) -> Node | None:
    """Where keys lead that are not declared."""
    additional = schema.get("additionalProperties")
    if additional is None:
        return DEDUCED if preserve or not has_fields else None
    if isinstance(additional, dict):
        return _node(additional, preserve)
    return DEDUCED if additional else None


def _list(schema: Schema, preserve: bool) -> List:
    items = schema.get("items")
    element = _node(items, preserve) if isinstance(items, dict) else UNTYPED
    kind = schema.get("x-kubernetes-list-type", "atomic")
    return List(
        element, kind == "atomic", tuple(schema.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
    )
