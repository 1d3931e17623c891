"""Whether a JSON value obeys a schema, in upstream's words.

Of the alternatives of `anyOf` and `oneOf` that all fail, the one that came furthest is reported; a `Result` counts how
far a check came.

An update is not refused for what was wrong before: a part of the object that is as it was is not reported. Parts are
matched by the names of fields and by the keys of lists that are maps; items of other lists are no parts of their own.
"""

from __future__ import annotations

from typing import Any, Final

from ..field import NOT_SUPPORTED, FieldError, Path, invalid, not_supported, required, too_long, too_many, type_invalid
from ..gocompat.quote import json, number, quote
from .enumerations import Enumeration
from .formats import CHECKS, has_format
from .patterns import compile_pattern
from .v1 import JSONSchemaProps

_INT_RANGES = {"int32": 1 << 31, "int64": 1 << 63}
MAX_FLOAT32: Final = float((1 << 128) - (1 << 104))
MOST_ERRORS: Final = 10_000
"""Errors of one value that are looked for, about; an answer has room for fewer."""
_CLOSE: Final = 1e-9  # upstream's measure for what is a whole number but for its rounding


class _New:
    """As an old value: there was none."""


NEW: Final = _New()


def validate_value(
    value: Any, schema: JSONSchemaProps, path: Path | None = None, *, int_or_string: bool = True, old: Any = NEW
) -> list[FieldError]:
    """Validate a value by a schema; `int_or_string` says whether that extension counts as a type.

    With `old`, its former value, only changes are validated.
    """
    return _Checker(path, int_or_string).check(value, schema, "", old).errors


class Result:
    """Errors, and how many checks were made."""

    __slots__ = ("count", "errors")

    def __init__(self, errors: list[FieldError] | None = None, count: int = 0) -> None:
        self.errors = errors if errors is not None else []
        self.count = count

    def merge(self, other: Result) -> None:
        """Add what another check found."""
        self.errors += other.errors
        self.count += other.count


class _Checker:
    def __init__(self, path: Path | None, int_or_string: bool) -> None:
        self._path = path
        self._int_or_string = int_or_string
        self._enums: dict[int, Enumeration] = {}
        """By the identity of the schema, which the caller holds while this checks."""
        self._listed: dict[int, str] = {}
        """The listed values of an enumeration for errors, likewise."""

    def check(self, value: Any, schema: JSONSchemaProps, name: str, old: Any = NEW) -> Result:
        result = self.alone(value, schema, name, old)
        if result.errors and old is not NEW and _as_before(value, old):
            result.errors = []
        return result

    def alone(self, value: Any, schema: JSONSchemaProps, name: str, old: Any) -> Result:
        """The check of a value whose being as before does not count, but that of its parts does."""
        result = Result()
        types = self._types(schema)
        format = _known_format(schema)
        if value is None:
            if types and not schema.nullable:
                result.errors.append(self._wrong_type(name, ",".join(types), "null"))
            result.merge(self._enum(value, schema, name))
            return result
        if types or format:
            found = self._type(value, types, format, name)
            result.count += 1 if found is not None else 2
            if found is not None:
                result.errors.append(found)
        result.merge(self._junctors(value, schema, name, old))
        result.count += 1
        if isinstance(value, str):
            result.merge(self._string(value, schema, name))
            result.count += 1
            if format in CHECKS or format.replace("-", "") in CHECKS:
                result.count += 1
                if not has_format(value, format):
                    detail = f"{name} in body must be of type {format}: {quote(value)}"
                    result.errors.append(type_invalid(self._at(name), value, detail))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            result.merge(self._number(value, schema, name))
            result.count += 2
        elif isinstance(value, list):
            result.merge(self._list(value, schema, name, old))
            result.count += 2
        result.merge(self._enum(value, schema, name))
        result.count += 1
        if isinstance(value, dict):
            result.merge(self._object(value, schema, name, old))
            result.count += 1
        result.count += 1
        return result

    def _at(self, name: str) -> Path | None:
        name = name.removeprefix(".")
        if not name:
            return self._path
        return Path(name) if self._path is None else self._path.child(name)

    def _types(self, schema: JSONSchemaProps) -> list[str]:
        if schema.x_kubernetes_int_or_string and self._int_or_string:
            return ["integer", "string"]
        return [schema.type] if schema.type else []

    def _wrong_type(self, name: str, wanted: str, found: str) -> FieldError:
        detail = f"{name} in body must be of type {wanted}: {quote(found)}"
        return type_invalid(self._at(name), found, detail)

    def _type(self, value: Any, types: list[str], format: str, name: str) -> FieldError | None:
        found = _type_of(value)
        if found in types:
            return None
        if found == "number" and "integer" in types and value == int(value) and abs(value) < 1 << 53:
            return None
        if found == "integer" and "number" in types:
            return None
        numeric = "number" in types or "integer" in types
        if format and not numeric and isinstance(value, str | list):
            return None
        if format and not isinstance(value, str | list):
            # What is neither text nor list is compared with the format, and named by the one of its own, if it has one.
            return self._wrong_type(name, format, {"integer": "int64", "number": "float64"}.get(found, ""))
        return self._wrong_type(name, ",".join(types), found) if types else None

    def _enum(self, value: Any, schema: JSONSchemaProps, name: str) -> Result:
        if not schema.enum:
            return Result()
        allowed = self._enums.get(id(schema))
        if allowed is None:
            allowed = self._enums[id(schema)] = Enumeration(schema.enum)
        if value in allowed:
            return Result()
        listed = self._listed.get(id(schema))
        if listed is None:
            values = [each if isinstance(each, str) else json(each) for each in schema.enum]
            listed = self._listed[id(schema)] = not_supported(None, None, values).detail
        return Result([FieldError(NOT_SUPPORTED, self._at(name), value, listed)])

    def _string(self, value: str, schema: JSONSchemaProps, name: str) -> Result:
        if schema.max_length is not None and len(value) > schema.max_length:
            return Result([too_long(self._at(name), "", schema.max_length)])
        if schema.min_length is not None and len(value) < schema.min_length:
            detail = f"{name} in body should be at least {schema.min_length} chars long"
            return Result([invalid(self._at(name), value, detail)])
        if schema.pattern and not compile_pattern(schema.pattern).search(value):
            return Result([invalid(self._at(name), value, f"{name} in body should match '{schema.pattern}'")])
        return Result()

    def _number(self, value: int | float, schema: JSONSchemaProps, name: str) -> Result:
        result = Result(count=1)
        for what, each in (
            ("Checked", value),
            ("MultipleOf", schema.multiple_of),
            ("Minimum boundary", schema.minimum),
            ("Maximum boundary", schema.maximum),
        ):
            if each is not None and _out_of_range(each, schema):
                named = schema.format in _INT_RANGES or schema.format == "float"
                given = f"with format {schema.format}" if named else "(default format)"
                detail = f"{what} value must be of type {schema.type} {given} in {name}"
                result.errors.append(invalid(self._path, "", detail))
        factor = schema.multiple_of
        if factor is not None and isinstance(value, int):
            factor = int(factor)
        if factor is not None and factor <= 0:
            detail = f"factor MultipleOf declared for {name} must be positive: {_shown(value, factor)}"
            result.errors.append(invalid(self._at(name), factor, detail))
        elif factor is not None and not _is_multiple(value, factor):
            detail = f"{name} in body should be a multiple of {_shown(value, factor)}"
            result.errors.append(invalid(self._at(name), value, detail))
        low, high = schema.minimum, schema.maximum
        if low is not None and _below(value, low, bool(schema.exclusive_minimum)):
            words = "greater than" if schema.exclusive_minimum else "greater than or equal to"
            detail = f"{name} in body should be {words} {_shown(value, low)}"
            result.errors.append(invalid(self._at(name), value, detail))
        if high is not None and _below(-value, -high, bool(schema.exclusive_maximum)):
            words = "less than" if schema.exclusive_maximum else "less than or equal to"
            detail = f"{name} in body should be {words} {_shown(value, high)}"
            result.errors.append(invalid(self._at(name), value, detail))
        return result

    def _list(self, value: list[Any], schema: JSONSchemaProps, name: str, old: Any) -> Result:
        result = Result(count=1)
        if isinstance(schema.items, JSONSchemaProps):
            before = _by_key(old, schema)
            for index, each in enumerate(value):
                was = before.get(_key(each, schema), NEW) if before else NEW
                result.merge(self.check(each, schema.items, f"{name}[{index}]", was))
                if len(result.errors) >= MOST_ERRORS:
                    break
        if schema.min_items is not None and len(value) < schema.min_items:
            detail = f"{name} in body should have at least {schema.min_items} items"
            result.errors.append(invalid(self._at(name), len(value), detail))
        if schema.max_items is not None and len(value) > schema.max_items:
            result.errors.append(too_many(self._at(name), len(value), schema.max_items))
        return result

    def _object(self, value: dict[str, Any], schema: JSONSchemaProps, name: str, old: Any) -> Result:
        result = Result()
        before = old if isinstance(old, dict) else {}
        if schema.min_properties is not None and len(value) < schema.min_properties:
            detail = f"{name} in body should have at least {schema.min_properties} properties"
            result.errors.append(invalid(self._at(name), len(value), detail))
        if schema.max_properties is not None and len(value) > schema.max_properties:
            result.errors.append(too_many(self._at(name), len(value), schema.max_properties))
        properties, others = schema.properties or {}, schema.additional_properties
        for key, each in value.items():
            if key in properties:
                continue
            if others is False:
                detail = f"{name}.{key} in body is a forbidden property"
                result.errors.append(invalid(self._at(name), key, detail))
            elif isinstance(others, JSONSchemaProps):
                result.merge(self.check(each, others, f"{name}.{key}", before.get(key, NEW)))
            if len(result.errors) >= MOST_ERRORS:
                return result
        for key, each_schema in properties.items():
            if key in value:
                was = before.get(key, NEW) if name or key not in ("apiVersion", "kind") else NEW
                result.merge(self.check(value[key], each_schema, f"{name}.{key}" if name else key, was))
        for key in schema.required or ():
            if key not in value:
                result.errors.append(required(self._at(f"{name}.{key}")))
        return result

    def _junctors(self, value: Any, schema: JSONSchemaProps, name: str, old: Any) -> Result:
        result = Result(count=1)
        if schema.any_of:
            result.merge(self._any(value, schema.any_of, name, old))
        if schema.one_of:
            result.merge(self._one(value, schema.one_of, name, old))
        if schema.all_of:
            parts = [self.alone(value, each, name, old) for each in schema.all_of]
            for part in parts:
                result.merge(part)
            failed = sum(1 for part in parts if part.errors)
            if failed:
                none = ". None validated" if failed == len(parts) else ""
                detail = f"{quote(name)} must validate all the schemas (allOf){none}"
                result.errors.append(invalid(self._path, "", detail))
        if schema.not_ is not None and not self.alone(value, schema.not_, name, old).errors:
            result.errors.append(invalid(self._path, "", f"{quote(name)} must not validate the schema (not)"))
        return result

    def _any(self, value: Any, schemas: list[JSONSchemaProps], name: str, old: Any) -> Result:
        best: Result | None = None
        for schema in schemas:
            part = self.alone(value, schema, name, old)
            if not part.errors:
                return part
            if best is None or part.count > best.count:
                best = part
        detail = f"{quote(name)} must validate at least one schema (anyOf)"
        result = Result([invalid(self._path, "", detail)])
        result.merge(best or Result())
        return result

    def _one(self, value: Any, schemas: list[JSONSchemaProps], name: str, old: Any) -> Result:
        best: Result | None = None
        valid: list[Result] = []
        for schema in schemas:
            part = self.alone(value, schema, name, old)
            if not part.errors:
                valid.append(part)
            elif best is None or part.count > best.count:
                best = part
        if len(valid) == 1:
            return valid[0]
        found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        detail = f"{quote(name)} must validate one and only one schema (oneOf). {found}"
        result = Result([invalid(self._path, "", detail)])
        if not valid:
            result.merge(best or Result())
        return result


def _out_of_range(value: int | float, schema: JSONSchemaProps) -> bool:
    """Whether a number is none of those that a schema is about."""
    if schema.type != "integer":
        return schema.format == "float" and abs(value) > MAX_FLOAT32
    limit = _INT_RANGES.get(schema.format or "", 1 << 63)
    return value != int(value) or not -limit <= value < limit


def _known_format(schema: JSONSchemaProps) -> str:
    format = schema.format or ""
    if schema.type in (None, "", "string"):
        return format if format.replace("-", "") in CHECKS else ""
    return format if schema.type in ("integer", "number") else ""


def _type_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
    return "object"


def _as_before(value: Any, old: Any) -> bool:
    if isinstance(value, dict) and isinstance(old, dict):
        return value.keys() == old.keys() and all(_as_before(each, old[key]) for key, each in value.items())
    if isinstance(value, list) and isinstance(old, list):
        return len(value) == len(old) and all(map(_as_before, value, old))
    return _same(value, old)


def _by_key(old: Any, schema: JSONSchemaProps) -> dict[str, Any]:
    """The items of a list that is a map, by their keys."""
    if schema.x_kubernetes_list_type != "map" or not isinstance(old, list):
        return {}
    return {_key(each, schema): each for each in old}


def _key(item: Any, schema: JSONSchemaProps) -> str:
    fields = item if isinstance(item, dict) else {}
    return json({key: fields[key] for key in schema.x_kubernetes_list_map_keys or () if key in fields})


def _same(value: Any, other: Any) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _is_multiple(value: int | float, factor: float) -> bool:
    if isinstance(value, int):
        return value % factor == 0
    share = 1 / factor * value if factor < 1 else value / factor
    if not abs(share) < 1 << 53:
        return False
    whole = float(int(share))
    return share == whole or (whole > 0 and (share - whole) / (share + whole) < _CLOSE)


def _below(value: int | float, limit: float, exclusive: bool) -> bool:
    bound = int(limit) if isinstance(value, int) else limit
    return value <= bound if exclusive else value < bound


def _shown(value: int | float, limit: float) -> str:
    return str(int(limit)) if isinstance(value, int) else number(limit)
