"""Rules of a schema when its definition is written: whether they compile, and what they could cost.

A rule's cost is estimated from the bounds in the schema and counts as often as the place it stands at can be there.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..apiextensions.schemas import has_rules
from ..apiextensions.v1 import JSONSchemaProps, ValidationRule
from ..cel.schemas import type_from_schema
from ..cel.types import Type
from ..field import FieldError, Path, forbidden, internal, invalid
from .rules import CompiledRule, as_json, compile_rules, field_type

COST_LIMIT: Final = 10_000_000
"""The limit of one rule's estimated cost, times the number of places it can stand at; upstream's number."""
TOTAL_COST_LIMIT: Final = 100_000_000
"""The limit of the cost of all rules of a schema."""
_NO_LIMIT: Final = 2**64 - 1
_ADVICE: Final = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings "
    "are declared"
)


class _Total:
    def __init__(self, suppress: bool) -> None:
        self.suppress = suppress
        self.total = 0
        self.expensive: list[tuple[int, Path]] = []
        self.errors: list[FieldError] = []

    def observe(self, path: Path, cost: int) -> None:
        self.total = min(self.total + cost, _NO_LIMIT)
        if cost >= TOTAL_COST_LIMIT // 100:
            self.expensive = sorted([*self.expensive, (cost, path)], key=lambda each: -each[0])[:4]


def validate_rules(schema: JSONSchemaProps, path: Path, *, unchanged: bool = False) -> list[FieldError]:
    """Validate the rules of a schema: they must compile, and must not be too expensive.

    The cost of each rule is not checked for an unchanged schema.
    """
    if not has_rules(schema):
        return []
    total = _Total(unchanged)
    _check(schema, path, type_from_schema(as_json(schema), True), 1, None, total)
    if total.total > TOTAL_COST_LIMIT:
        for _, at in total.expensive:
            detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            total.errors.append(forbidden(at, detail))
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        total.errors.append(forbidden(path, _too_expensive(what, total.total, TOTAL_COST_LIMIT)))
    return total.errors


def validate_default_rules(schema: JSONSchemaProps, path: Path) -> list[FieldError]:
    """Apply the rules of a schema to its defaults, at any depth."""
    errors: list[FieldError] = []
    if schema.default is not None:
        rules = compile_rules(schema, root=bool(schema.x_kubernetes_embedded_resource))
        errors += rules.of_default(schema.default, path.child("default")) if rules is not None else []
    if isinstance(schema.items, JSONSchemaProps):
        errors += validate_default_rules(schema.items, path.child("items"))
    if isinstance(schema.additional_properties, JSONSchemaProps):
        errors += validate_default_rules(schema.additional_properties, path.child("additionalProperties"))
    for name, each in (schema.properties or {}).items():
        errors += validate_default_rules(each, path.child("properties").key(name))
    return errors


def _check(
    schema: JSONSchemaProps, path: Path, type: Type | None, cardinality: int | None, loose: Path | None, total: _Total
) -> None:
    """`cardinality` is how often the place can be there (None: without bound), `loose` where the old value is lost."""
    inner = _times(cardinality, _elements(schema))
    if isinstance(schema.additional_properties, JSONSchemaProps):
        below = type.params[-1] if type is not None and type.params else None
        _check(schema.additional_properties, path.child("additionalProperties"), below, inner, loose, total)
    for name, each in (schema.properties or {}).items():
        at = path.child("properties").key(name)
        _check(each, at, field_type(type, name, each), inner, loose, total)
    if isinstance(schema.items, JSONSchemaProps):
        lost = loose or (path if schema.x_kubernetes_list_type != "map" else None)
        below = type.params[0] if type is not None and type.params else None
        _check(schema.items, path.child("items"), below, inner, lost, total)
    at = path.child("x-kubernetes-validations")
    for index, rule in enumerate(schema.x_kubernetes_validations or ()):
        if type is None:
            why = "unable to convert structural schema to CEL declarations"
            words = f"failed to construct type information for x-kubernetes-validations rules: {why}"
            total.errors.append(internal(at, f"internal error: {words}"))
            return
        _check_rule(CompiledRule(rule, schema, type), at.index(index), cardinality, loose, total)


def _check_rule(rule: CompiledRule, path: Path, cardinality: int | None, loose: Path | None, total: _Total) -> None:
    places = rule.max_cardinality if cardinality is None else cardinality
    cost = min(rule.max_cost * places, _NO_LIMIT)
    at = path.child("rule")
    if cost > COST_LIMIT and not total.suppress:
        total.errors.append(forbidden(at, _too_expensive("estimated rule cost", cost, COST_LIMIT)))
    total.observe(at, cost)
    if rule.error:
        total.errors.append(invalid(at, _shown(rule.rule), rule.error))
    of_message = path.child("messageExpression")
    if rule.message_error:
        total.errors.append(invalid(of_message, _shown(rule.rule), rule.message_error))
    elif rule.message is not None:
        if rule.message_cost > COST_LIMIT and not total.suppress:
            words = _too_expensive("estimated messageExpression cost", rule.message_cost, COST_LIMIT)
            total.errors.append(forbidden(of_message, words))
        total.observe(of_message, rule.message_cost)
    if rule.uses_old and loose is not None:
        words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
        total.errors.append(invalid(at, rule.rule.rule, words))
    elif not rule.uses_old and rule.rule.optional_old_self is not None:
        words = "may not be set if oldSelf is not used in rule"
        total.errors.append(invalid(path.child("optionalOldSelf"), rule.rule.optional_old_self, words))


def _shown(rule: ValidationRule) -> msgspec.Raw:
    """The rule as messages show it: by the names of Go's fields, in their order."""
    fields = {
        "Rule": rule.rule or "",
        "Message": rule.message or "",
        "MessageExpression": rule.message_expression or "",
        "Reason": rule.reason,
        "FieldPath": rule.field_path or "",
        "OptionalOldSelf": rule.optional_old_self,
    }
    return msgspec.Raw(msgspec.json.encode(fields))


def _elements(schema: JSONSchemaProps) -> int | None:
    if schema.type == "object" and schema.additional_properties is not None:
        return None if schema.max_properties is None else max(schema.max_properties, 0)
    if schema.type == "array":
        return None if schema.max_items is None else max(schema.max_items, 0)
    return 1


def _times(cardinality: int | None, elements: int | None) -> int | None:
    return None if cardinality is None or elements is None else min(cardinality * elements, _NO_LIMIT)


def _too_expensive(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} ({_ADVICE})"
