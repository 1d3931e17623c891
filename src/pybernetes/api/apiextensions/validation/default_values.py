"""Default values in a schema: they obey it, and hold nothing that the schema does not know.

A default that is part of an object's type or metadata is judged by what it makes of an object that has nothing else.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from ...field import FieldError, Path, aggregate, invalid
from ...structural import embedded
from ..pruning import OF_EVERY_OBJECT, prune
from ..v1 import JSONSchemaProps
from ..values import validate_value


def validate_defaults(schema: JSONSchemaProps, path: Path, *, require_pruned: bool) -> list[FieldError]:
    """Validate the defaults in a structural schema, at any depth."""
    return _validate(msgspec.structs.replace(schema, x_kubernetes_embedded_resource=True), path, None, require_pruned)


class _Place(msgspec.Struct, frozen=True):
    """Where in the type or metadata of an object a schema is; None of `steps` is a list."""

    root: JSONSchemaProps
    steps: tuple[str | None, ...] = ()

    def below(self, step: str | None) -> _Place:
        return _Place(self.root, (*self.steps, step))

    def around(self, value: Any) -> dict[str, Any]:
        """An object with nothing else than this value."""
        for step in reversed(self.steps):
            value = [value] if step is None else {step: value}
        return {"apiVersion": "validation/v1", "kind": "Validation", **value}


def _validate(schema: JSONSchemaProps, path: Path, place: _Place | None, require_pruned: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if schema.x_kubernetes_embedded_resource:
        place = None
    if schema.default is not None:
        errors += _validate_inside(schema, path, place) if place else _validate_one(schema, path, require_pruned)
    if isinstance(schema.items, JSONSchemaProps):
        errors += _validate(schema.items, path.child("items"), place and place.below(None), require_pruned)
    for name, each in (schema.properties or {}).items():
        below = place and place.below(name)
        if schema.x_kubernetes_embedded_resource and name in OF_EVERY_OBJECT:
            below = _Place(schema, (name,))
        errors += _validate(each, path.child("properties").key(name), below, require_pruned)
    return errors


def _validate_one(schema: JSONSchemaProps, path: Path, require_pruned: bool) -> list[FieldError]:
    at, default = path.child("default"), deepcopy(schema.default)
    errors: list[FieldError] = []
    if require_pruned and is_unpruned(schema):
        errors.append(invalid(at, schema.default, "must not have unknown fields"))
    try:
        embedded.coerce(default, schema, at)
    except embedded.Refused as refused:
        return [*errors, refused.error]
    return errors + (
        embedded.validate(default, schema, at) or validate_value(schema.default, schema, at, int_or_string=False)
    )


def _validate_inside(schema: JSONSchemaProps, path: Path, place: _Place) -> list[FieldError]:
    at, obj = path.child("default"), place.around(deepcopy(schema.default))
    try:
        embedded.coerce(obj, place.root)
        found = embedded.validate(obj, place.root)
    except embedded.Refused as refused:
        found = [refused.error]
    if found:
        return [invalid(at, schema.default, f"must result in valid metadata: {aggregate(found)}")]
    return validate_value(schema.default, schema, at, int_or_string=False)


def is_unpruned(schema: JSONSchemaProps) -> bool:
    """Whether the default of a schema holds something that the schema does not know."""
    if schema.default is None:
        return False
    pruned = deepcopy(schema.default)
    prune(pruned, schema)
    return bool(pruned != schema.default)
