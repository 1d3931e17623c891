"""Whether a value obeys a schema, by functions that are compiled from it once.

A check answers True only if it is sure; what it is not sure of, or finds wrong, is looked at again by the exact
validator (`apiextensions.values`), which has the words. So a valid object costs a function call for each of its
objects and lists, and nothing here needs to know about messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..apiextensions.enumerations import frozen
from ..apiextensions.formats import CHECKS, has_format
from ..apiextensions.patterns import compile_pattern
from ..apiextensions.v1 import JSONSchemaProps
from ..apiextensions.values import MAX_FLOAT32, validate_value

Check = Callable[[Any], bool]

_INT32, _INT64 = 1 << 31, 1 << 63
_NUMBERS: Final = (int, float)
_TYPES: Final[dict[str, type]] = {"string": str, "boolean": bool, "object": dict, "array": list}


def compile_check(schema: JSONSchemaProps | None, *, without: tuple[str, ...] = ()) -> Check:
    """The check of a schema; `without` are properties of its object that are looked at elsewhere."""
    if schema is None:
        return lambda value: True
    checks = _checks(schema, without)
    nullable = bool(schema.nullable) and not schema.enum  # an enumeration may leave null out
    if len(checks) == 1:
        only = checks[0]
        return (lambda value: value is None or only(value)) if nullable else only

    def check(value: Any) -> bool:
        if value is None:
            return nullable
        return all(each(value) for each in checks)

    return check


def _checks(schema: JSONSchemaProps, without: tuple[str, ...]) -> list[Check]:
    checks = [_of_type(schema, without)]
    for each in schema.all_of or ():
        checks.append(compile_check(each))
    if schema.any_of:
        alternatives = [compile_check(each) for each in schema.any_of]
        checks.append(lambda value: any(check(value) for check in alternatives))
    if schema.one_of:
        checks.append(_one_of(schema.one_of))
    if schema.not_ is not None:
        excluded = schema.not_
        checks.append(lambda value: bool(validate_value(value, excluded)))
    if schema.enum:
        allowed = frozenset([(type(each), frozen(each)) for each in schema.enum])
        checks.append(lambda value: (type(value), frozen(value)) in allowed)
    return checks


def _one_of(schemas: list[JSONSchemaProps]) -> Check:
    """Exactly one: of those that it is not sure of, the exact validator is. Alternatives are small as a rule."""
    alternatives = [(compile_check(each), each) for each in schemas]

    def check(value: Any) -> bool:
        valid = 0
        for sure, schema in alternatives:
            if sure(value) or not validate_value(value, schema):
                valid += 1
        return valid == 1

    return check


def _of_type(schema: JSONSchemaProps, without: tuple[str, ...]) -> Check:
    if schema.x_kubernetes_int_or_string:
        return _int_or_string(schema)
    match schema.type:
        case "string":
            return _string(schema)
        case "integer":
            return _integer(schema)
        case "number":
            return _number(schema)
        case "boolean":
            return lambda value: value is True or value is False
        case "array":
            return _list(schema)
        case "object":
            return _object(schema, without)
    limits = (schema.properties, schema.items, schema.additional_properties, schema.required, schema.pattern)
    numbers = (schema.minimum, schema.maximum, schema.multiple_of, schema.max_length, schema.min_length)
    counts = (schema.max_items, schema.min_items, schema.max_properties, schema.min_properties)
    if any(limits) or schema.format or any(each is not None for each in (*numbers, *counts)):
        return lambda value: not validate_value(value, schema)
    return lambda value: True


def _int_or_string(schema: JSONSchemaProps) -> Check:
    if schema.pattern or schema.format or schema.minimum is not None or schema.maximum is not None:
        return lambda value: False
    return lambda value: (type(value) is int and -_INT64 <= value < _INT64) or type(value) is str


def _string(schema: JSONSchemaProps) -> Check:
    low, high = schema.min_length or 0, schema.max_length
    matches = compile_pattern(schema.pattern).search if schema.pattern else None
    format = schema.format if schema.format and schema.format.replace("-", "") in CHECKS else None
    if not low and high is None and matches is None and format is None:
        return lambda value: type(value) is str

    def check(value: Any) -> bool:
        return (
            type(value) is str
            and len(value) >= low
            and (high is None or len(value) <= high)
            and (matches is None or matches(value) is not None)
            and (format is None or has_format(value, format))
        )

    return check


def _integer(schema: JSONSchemaProps) -> Check:
    bits = _INT32 if schema.format == "int32" else _INT64
    low, high = -bits, bits - 1
    if schema.minimum is not None:
        if not schema.minimum.is_integer():
            return lambda value: False
        low = max(low, int(schema.minimum) + bool(schema.exclusive_minimum))
    if schema.maximum is not None:
        if not schema.maximum.is_integer():
            return lambda value: False
        high = min(high, int(schema.maximum) - bool(schema.exclusive_maximum))
    factor = schema.multiple_of
    if factor is not None:
        if factor < 1 or not factor.is_integer():
            return lambda value: False
        step = int(factor)
        return lambda value: type(value) is int and low <= value <= high and value % step == 0
    return lambda value: type(value) is int and low <= value <= high


def _number(schema: JSONSchemaProps) -> Check:
    if schema.multiple_of is not None or schema.exclusive_minimum or schema.exclusive_maximum:
        return lambda value: False
    low, high = schema.minimum, schema.maximum
    if schema.format == "float":
        low = -MAX_FLOAT32 if low is None else max(low, -MAX_FLOAT32)
        high = MAX_FLOAT32 if high is None else min(high, MAX_FLOAT32)
    if low is None and high is None:
        return lambda value: type(value) is float or type(value) is int
    # A whole number is compared with a whole bound, as upstream does; only then is it sure.
    if any(bound is not None and not bound.is_integer() for bound in (low, high)):
        return lambda value: False

    def check(value: Any) -> bool:
        return type(value) in _NUMBERS and (low is None or value >= low) and (high is None or value <= high)

    return check


def _list(schema: JSONSchemaProps) -> Check:
    if not isinstance(schema.items, JSONSchemaProps):
        return lambda value: False
    item, low, high = compile_check(schema.items), schema.min_items or 0, schema.max_items

    def check(value: Any) -> bool:
        if type(value) is not list or len(value) < low or (high is not None and len(value) > high):
            return False
        return all(map(item, value))

    if schema.x_kubernetes_list_type == "set":
        return lambda value: check(value) and (len(value) < 2 or _distinct(value))
    if schema.x_kubernetes_list_type == "map":
        keys = tuple(schema.x_kubernetes_list_map_keys or ())
        return lambda value: check(value) and (len(value) < 2 or _distinct([_key(each, keys) for each in value]))
    return check


def _key(item: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return item.get(keys[0]) if len(keys) == 1 else tuple([item.get(key) for key in keys])


def _distinct(values: list[Any]) -> bool:
    try:
        return len(set(values)) == len(values)
    except TypeError:  # objects and lists
        return False


def _object(schema: JSONSchemaProps, without: tuple[str, ...]) -> Check:
    if schema.x_kubernetes_embedded_resource:
        return lambda value: False
    children = {key: compile_check(each) for key, each in (schema.properties or {}).items() if key not in without}
    needed = [key for key in schema.required or () if key not in without]
    low, high = schema.min_properties or 0, schema.max_properties
    counts = low or high is not None
    others = schema.additional_properties
    other = compile_check(others) if isinstance(others, JSONSchemaProps) else None
    refuses = others is False

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key in needed:
            if key not in value:
                return False
        if counts and (len(value) < low or (high is not None and len(value) > high)):
            return False
        for key, each in value.items():
            child = children.get(key)
            if child is not None:
                if not child(each):
                    return False
            elif other is not None:
                if not other(each):
                    return False
            elif refuses:
                return False
        return True

    return check
