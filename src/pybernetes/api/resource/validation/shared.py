"""Shared by claims, classes and slices: names, lists with a limit, opaque parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from ... import names
from ...core.validation.common import (
    validate_csi_driver_name,
    validate_dns1123_label,
    validate_dns1123_subdomain,
)
from ...field import FieldError, Path, duplicate, forbidden, invalid, repeated, required, too_long, too_many
from ...gocompat.quote import quote
from ...meta.validation import validate_label_name
from ..v1 import DeviceSelector, OpaqueDeviceConfiguration

MAX_POOL_NAME: Final = 253
MAX_ID: Final = 32
MAX_SELECTORS: Final = 32
MAX_EXPRESSION_BYTES: Final = 10 * 1024
MAX_PARAMETERS_BYTES: Final = 10 * 1024
MAX_BINDING_CONDITIONS: Final = 4

_UUID = re.compile("[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_HEX = re.compile("[0-9a-fA-F]{32}")

T = TypeVar("T")
Check = Callable[[T, Path], list[FieldError]]

validate_driver_name = validate_csi_driver_name


def validate_list(items: Sequence[T] | None, limit: int, check: Check[T], path: Path) -> list[FieldError]:
    """Not too many, and each of them good; of too many none is looked at."""
    if items and len(items) > limit:
        return [too_many(path, len(items), limit)]
    return [error for index, item in enumerate(items or ()) for error in check(item, path.index(index))]


def validate_set(
    items: Sequence[T] | None, limit: int | None, check: Check[T], key: Callable[[T], Hashable], path: Path
) -> list[FieldError]:
    """A list in which no key comes twice."""
    items = items or ()
    if limit is not None and len(items) > limit:
        return [too_many(path, len(items), limit)]
    errors = validate_list(items, len(items), check, path)
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        found = key(item)
        if found in seen:
            errors.append(duplicate(path.index(index), found))
        seen.add(found)
    return errors


def same(value: str) -> str:
    """A value that is its own key."""
    return value


def validate_pool_name(name: str | None, path: Path) -> list[FieldError]:
    """Domains between slashes."""
    if not name:
        return [required(path)]
    errors = [too_long(path, "", MAX_POOL_NAME)] if len(name) > MAX_POOL_NAME else []
    return errors + [error for part in name.split("/") for error in validate_dns1123_subdomain(part, path)]


def validate_uid(uid: str, path: Path) -> list[FieldError]:
    """A UUID as we print it."""
    problem = _uid_problem(uid)
    if problem:
        return [invalid(path, uid, f"error validating uid: {problem}")]
    if len(uid) != 36 or uid != uid.lower():
        detail = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
            "with lowercase hexadecimal characters"
        )
        return [invalid(path, uid, detail)]
    return []


def _uid_problem(uid: str) -> str:
    match len(uid.encode("utf-8", "replace")):
        case 36:
            pass
        case 45:
            if uid[:9].lower() != "urn:uuid:":
                return f"invalid urn prefix: {quote(uid[:9])}"
            uid = uid[9:]
        case 38:
            if uid[0] != "{" or uid[-1] != "}":
                return "invalid bracketed UUID format"
            uid = uid[1:-1]
        case 32:
            return "" if _HEX.fullmatch(uid) else "invalid UUID format"
        case length:
            return f"invalid UUID length: {length}"
    return "" if _UUID.fullmatch(uid) else "invalid UUID format"


def validate_qualified_name(name: str, path: Path) -> list[FieldError]:
    """A C identifier, with or without a driver's name and slash before it."""
    domain, slash, rest = name.partition("/")
    if not slash:
        return _validate_c_identifier(name, path)
    if "/" in rest:  # upstream looks at two parts only
        return []
    errors = validate_driver_name(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
    if not rest:
        return [*errors, invalid(path, "", "the name must not be empty")]
    return errors + _validate_c_identifier(rest, path)


def validate_fully_qualified_name(name: str, path: Path) -> list[FieldError]:
    """A name with its domain."""
    errors = validate_qualified_name(name, path)
    if "/" not in name:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(path, name, detail))
    return errors


def _validate_c_identifier(name: str, path: Path) -> list[FieldError]:
    errors = [too_long(path, "", MAX_ID)] if len(name) > MAX_ID else []
    return errors + [invalid(path, name, problem) for problem in names.is_c_identifier(name)]


def validate_label_value(value: str | None, path: Path) -> list[FieldError]:
    """Validate the value of a label."""
    return [invalid(path, value or "", problem) for problem in names.is_label_value(value or "")]


def validate_raw_extension(value: Any, path: Path, limit: int) -> list[FieldError]:
    """Validate opaque parameters of a driver: an object, not too large."""
    if value is None:
        return [required(path)]
    if len(msgspec.json.encode(value)) > limit:
        return [too_long(path, "", limit)]
    return [] if isinstance(value, dict) else [invalid(path, "<value omitted>", "must be a valid JSON object")]


def validate_opaque(opaque: OpaqueDeviceConfiguration | None, path: Path, *, stored: bool = False) -> list[FieldError]:
    """Configuration for one driver; what is stored already may be of any size."""
    if opaque is None:
        return [required(path)]
    errors = validate_driver_name(opaque.driver, path.child("driver"))
    limit = 1 << 62 if stored else MAX_PARAMETERS_BYTES
    return errors + validate_raw_extension(opaque.parameters, path.child("parameters"), limit)


def validate_selectors(selectors: list[DeviceSelector] | None, path: Path) -> list[FieldError]:
    """Expressions that a device must fulfil."""
    return validate_list(selectors, MAX_SELECTORS, _validate_selector, path)


def _validate_selector(selector: DeviceSelector, path: Path) -> list[FieldError]:
    if selector.cel is None:
        return [required(path.child("cel"))]
    from ..expressions import MAX_COST, check_selector  # loads CEL: only where needed

    at, expression = path.child("cel", "expression"), selector.cel.expression or ""
    if len(expression.encode()) > MAX_EXPRESSION_BYTES:
        return [too_long(at, "", MAX_EXPRESSION_BYTES)]
    problem, cost = check_selector(expression)
    if problem:
        return [invalid(at, expression, problem)]
    return [forbidden(at, "too complex, exceeds cost limit")] if cost > MAX_COST else []


def validate_binding_conditions(
    conditions: list[str] | None, failures: list[str] | None, path: Path
) -> list[FieldError]:
    """Conditions that must hold before a pod is bound, and those that mean it never will: both or none."""
    shown, failures_shown = conditions, failures  # an absent list is null in a message, an empty one is not
    conditions, failures = conditions or [], failures or []
    good, bad = path.child("bindingConditions"), path.child("bindingFailureConditions")
    errors = validate_list(conditions, MAX_BINDING_CONDITIONS, validate_label_name, good)
    errors += validate_list(failures, MAX_BINDING_CONDITIONS, validate_label_name, bad)
    errors += [duplicate(good.index(index), conditions[index]) for index in sorted(repeated(conditions))]
    again, wanted = repeated(failures), frozenset(conditions)
    for index, each in enumerate(failures):
        if index in again:
            errors.append(duplicate(bad.index(index), each))
        if each in wanted:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(invalid(bad.index(index), each, detail))
    if failures and not conditions:
        errors.append(invalid(good, shown, "bindingConditions are required to use bindingFailureConditions"))
    if conditions and not failures:
        errors.append(invalid(bad, failures_shown, "bindingFailureConditions are required to use bindingConditions"))
    return errors


class RequestNames:
    """The names of a claim's requests and of their alternatives, as other parts refer to them: `gpu`, `gpu/large`."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}

    def add(self, name: str, alternatives: Sequence[str]) -> None:
        """A request."""
        self._names[name] = frozenset(alternatives)

    def validate(self, reference: str, path: Path) -> list[FieldError]:
        """Validate a reference to a request."""
        detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
        parts = reference.split("/")
        if len(parts) > 2:
            return [invalid(path, reference, detail)]
        errors = [error for part in parts for error in validate_dns1123_label(part, path)]
        found = self._names.get(parts[0])
        if found is None or (len(parts) == 2 and parts[1] not in found):
            errors.append(invalid(path, reference, detail))
        return errors
