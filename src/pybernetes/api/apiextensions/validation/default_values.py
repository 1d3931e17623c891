"""Default values in a schema: they obey it, and hold nothing that the schema does not know."""

from __future__ import annotations

from copy import deepcopy

from ...field import FieldError, Path, invalid
from ..pruning import prune
from ..v1 import JSONSchemaProps
from ..values import validate_value


def validate_defaults(schema: JSONSchemaProps, path: Path, *, require_pruned: bool) -> list[FieldError]:
    """What is wrong with the defaults of a structural schema, wherever they are in it."""
    errors: list[FieldError] = []
    default = schema.default
    if default is not None:
        at = path.child("default")
        if require_pruned and is_unpruned(schema):
            errors.append(invalid(at, default, "must not have unknown fields"))
        errors += validate_value(default, schema, at, int_or_string=False)
    if isinstance(schema.items, JSONSchemaProps):
        errors += validate_defaults(schema.items, path.child("items"), require_pruned=require_pruned)
    for name, each in (schema.properties or {}).items():
        errors += validate_defaults(each, path.child("properties").key(name), require_pruned=require_pruned)
    return errors


def is_unpruned(schema: JSONSchemaProps) -> bool:
    """Whether the default of a schema holds something that the schema does not know."""
    if schema.default is None:
        return False
    pruned = deepcopy(schema.default)
    prune(pruned, schema)
    return bool(pruned != schema.default)
