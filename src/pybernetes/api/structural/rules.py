"""The rules of a schema (`x-kubernetes-validations`): compiled once, asked for every object.

A rule stands at a place of the schema and sees the value there as `self`, and what was there before as `oldSelf`. A
rule about the change is not asked when there was nothing before, unless it says that it can live without. What fails
and is as it was before is only warned about, if the rule does not look at the change. All rules of one object share a
budget of cost; when it is used up the object is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from typing import Any, Final

import msgspec

from ..apiextensions.schemas import has_rules
from ..apiextensions.v1 import JSONSchemaProps, ValidationRule
from ..apiextensions.validation.fieldpaths import FieldPathError, find_field
from ..cel.ast import CompileError
from ..cel.environment import CHEAP, RUNTIME_BUDGET, Environment, Program
from ..cel.escaping import escape
from ..cel.literals import Uninstantiable
from ..cel.schemas import MAX_REQUEST_SIZE, type_from_schema
from ..cel.types import BOOL, STRING, Type, optional_of
from ..cel.values import CostLimitExceeded, EvaluationError, Optional
from ..field import OMIT, FieldError, Path, duplicate, forbidden, invalid, required
from ..gocompat.quote import json

MAX_MESSAGE: Final = 5 * 1024  # bytes of what a messageExpression may say; upstream's number
_NO_FURTHER: Final = "no further validation rules will be run"
_NO_BOOL: Final = "cel expression must evaluate to a bool"
_NO_STRING: Final = "messageExpression must evaluate to a string"
_BUDGET: Final = f"validation failed due to running out of cost budget, {_NO_FURTHER}"

Pair = tuple[Any, Any]
"""A value and the one that it was before."""


class CompiledRule:
    """One rule, or why it is none."""

    def __init__(self, rule: ValidationRule, schema: JSONSchemaProps, type: Type) -> None:
        self.rule = rule
        self.program: Program | None = None
        self.message: Program | None = None
        self.error = self.message_error = ""
        self.uses_old = False
        self.max_cost = self.message_cost = 0
        self.max_cardinality = MAX_REQUEST_SIZE // (type.min_serialized + 1)
        self.field = _field_path(rule.field_path, schema) if rule.field_path else ""
        if not (rule.rule or "").strip():
            return
        plain = _unconverted(type)
        old = optional_of(plain) if rule.optional_old_self else plain
        environment = Environment({"self": plain, "oldSelf": old})
        bounds = {"self": plain, "oldSelf": plain}
        try:
            program = environment.compile(rule.rule or "")
        except Uninstantiable as error:
            self.error = f"program instantiation failed: {error}" if error.result_type.exact(BOOL) else _NO_BOOL
            return
        except CompileError as error:
            self.error = f"compilation failed: {error}"
            return
        if not program.result_type.exact(BOOL):
            self.error = _NO_BOOL
            return
        self.program = program
        self.uses_old = "oldSelf" in program.reads
        self.max_cost = program.estimate(bounds).max
        if rule.message_expression:
            self._compile_message(environment, bounds)

    def _compile_message(self, environment: Environment, bounds: dict[str, Type]) -> None:
        try:
            message = environment.compile(self.rule.message_expression or "")
        except Uninstantiable as error:
            failed = f"messageExpression instantiation failed: {error}"
            self.message_error = failed if error.result_type.exact(STRING) else _NO_STRING
            return
        except CompileError as error:
            self.message_error = f"messageExpression compilation failed: {error}"
            return
        if not message.result_type.exact(STRING):
            self.message_error = _NO_STRING
            return
        self.message = message
        self.message_cost = message.estimate(bounds).max

    def named(self) -> str:
        """How messages speak of the rule."""
        return ((self.rule.message or "") or (self.rule.rule or "")).strip()

    def failed(self) -> str:
        """The default message of a failed rule."""
        return (self.rule.message or "").strip() or f"failed rule: {self.named()}"


def _unconverted(type: Type) -> Type:
    """The type of a value that was converted already."""
    plain = copy(type)
    plain.convert = None
    return plain


def _field_path(text: str, schema: JSONSchemaProps) -> str:
    try:
        names, _ = find_field(text, schema)
    except FieldPathError:
        return ""
    path, at = "", schema
    for name in names:
        if at.properties is not None:
            path += f".{name}" if path else name
            at = at.properties[name]
        else:
            path += f"[{name}]"
            others = at.additional_properties
            at = others if isinstance(others, JSONSchemaProps) else JSONSchemaProps()
    return path


def compile_rules(schema: JSONSchemaProps | None, *, root: bool = True) -> Rules | None:
    """The rules of an object's schema, or of a part of one; None if there are none."""
    if schema is None or not has_rules(schema):
        return None
    type = type_from_schema(as_json(schema), root)
    place = _place(schema, schema, type) if type is not None else None
    return Rules(place) if place is not None else None


def as_json(schema: JSONSchemaProps) -> dict[str, Any]:
    """A schema as plain JSON."""
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    return made


class Rules:
    """All rules of a schema."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self.costly = place.costs_up_to() > CHEAP
        """Whether asking them may take longer than others should wait."""

    def __call__(
        self, value: Any, old: Any, warn: Callable[[str], None], *, budget: int = RUNTIME_BUDGET
    ) -> list[FieldError]:
        """The violations of a value that was `old` before (None: it is new)."""
        run = _Run(budget, warn)
        with suppress(_Stop):
            self._place.validate(run, None, value, old, (value, old) if old is not None else None, None)
        return run.errors

    def of_default(self, value: Any, path: Path) -> list[FieldError]:
        """The violations of a default, which is compared with itself and with nothing, without ratcheting."""
        for old in (value, None):
            run = _Run(RUNTIME_BUDGET, lambda _: None)
            with suppress(_Stop):
                self._place.validate(run, path, value, old, None, None)
            if run.errors:
                return run.errors
        return []


class _Stop(Exception):
    """No further rule is asked."""


class _Run:
    """One object's way through the rules."""

    def __init__(self, budget: int, warn: Callable[[str], None]) -> None:
        self.errors: list[FieldError] = []
        self.budget = budget
        self.warn = warn

    def spend(self, cost: int) -> bool:
        """Whether the budget is enough."""
        if cost > self.budget:
            return False
        self.budget -= cost
        return True


def _place(schema: JSONSchemaProps, node: JSONSchemaProps, type: Type | None) -> _Place | None:
    """The rules of a place and of all below it; `schema` says the rules, `node` what the place is."""
    rules = schema.x_kubernetes_validations or []
    if rules and type is None:
        return None
    compiled = [CompiledRule(rule, node, type) for rule in rules] if type is not None else []
    items = None
    if isinstance(schema.items, JSONSchemaProps) and isinstance(node.items, JSONSchemaProps):
        items = _place(schema.items, node.items, type.params[0] if type is not None and type.params else None)
    properties = {}
    for name, each in (schema.properties or {}).items():
        below = (node.properties or {}).get(name)
        found = _place(each, below, field_type(type, name, below)) if below is not None else None
        if found is not None:
            properties[name] = found
    others = None
    if isinstance(schema.additional_properties, JSONSchemaProps):
        of_node = node.additional_properties
        if isinstance(of_node, JSONSchemaProps):
            of_values = type.params[-1] if type is not None and type.params else None
            others = _place(schema.additional_properties, of_node, of_values)
    alternatives = [found for each in schema.all_of or () if (found := _place(each, node, type)) is not None]
    if not (compiled or items or properties or others or alternatives):
        return None
    return _Place(node, type, compiled, items, properties, others, alternatives)


def field_type(type: Type | None, name: str, schema: JSONSchemaProps) -> Type | None:
    escaped = escape(name)
    if escaped is None:
        return type_from_schema(as_json(schema), bool(schema.x_kubernetes_embedded_resource))
    field = type.fields.get(escaped) if type is not None and type.fields else None
    return field.type if field is not None else None


class _Place:
    def __init__(
        self,
        schema: JSONSchemaProps,
        type: Type | None,
        rules: list[CompiledRule],
        items: _Place | None,
        properties: dict[str, _Place],
        others: _Place | None,
        alternatives: list[_Place],
    ) -> None:
        self._schema = schema
        self._convert = type.convert if type is not None else None
        self._rules = rules
        self._items = items
        self._properties = properties
        self._others = others
        self._alternatives = alternatives
        self._type = schema.type or ""

    def costs_up_to(self) -> int:
        """The greatest cost of a rule here or below for one value."""
        below = [self._items, *self._properties.values(), self._others, *self._alternatives]
        costs = [max(rule.max_cost, rule.message_cost) for rule in self._rules]
        return max((*costs, *(place.costs_up_to() for place in below if place is not None)), default=0)

    def validate(
        self, run: _Run, path: Path | None, value: Any, old: Any, now: Pair | None, above: Pair | None
    ) -> None:
        """Ask the rules here and below. `now` and `above` are what can be compared with before: this and its parent."""
        if value is None:
            return
        if self._rules:
            self._ask(run, path, value, old, now, above)
        for each in self._alternatives:
            each.validate(run, path, value, old, None, above)
        if isinstance(value, list):
            if self._items is not None:
                before = self._by_key(old)
                known = self._by_key(now[1]) if now is not None else {}
                for index, item in enumerate(value):
                    name = self._key(item)
                    below = (item, known[name]) if now is not None and name in known else None
                    parent = now if now is not None else above
                    self._items.validate(run, _index(path, index), item, before.get(name), below, parent)
        elif isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, each in value.items():
                place = self._properties.get(key)
                if place is not None:
                    pairs = _pairs(now, above, key)
                    place.validate(run, path.child(key) if path else Path(key), each, before.get(key), *pairs)
                elif self._others is not None:
                    pairs = _pairs(now, above, key)
                    at = path.key(key) if path else Path(f"[{key}]")
                    self._others.validate(run, at, each, before.get(key), *pairs)

    def _by_key(self, old: Any) -> dict[str, Any]:
        if self._schema.x_kubernetes_list_type != "map" or not isinstance(old, list):
            return {}
        return {self._key(item): item for item in old}

    def _key(self, item: Any) -> str:
        fields = item if isinstance(item, dict) else {}
        return json({key: fields[key] for key in self._schema.x_kubernetes_list_map_keys or () if key in fields})

    def _ask(self, run: _Run, path: Path | None, value: Any, old: Any, now: Pair | None, above: Pair | None) -> None:
        if run.budget <= 0:
            run.errors.append(invalid(path, self._type, _BUDGET))
            raise _Stop
        convert = self._convert
        this = convert(value) if convert is not None else value
        before = convert(old) if convert is not None and old is not None else old
        for rule in self._rules:
            self._ask_one(run, rule, path, (value, this), before, now, above)

    def _ask_one(
        self,
        run: _Run,
        rule: CompiledRule,
        path: Path | None,
        value: Pair,
        before: Any,
        now: Pair | None,
        above: Pair | None,
    ) -> None:
        if rule.error:
            run.errors.append(invalid(path, self._type, f"rule compile error: {rule.error}"))
            return
        if rule.program is None:
            return
        optional = bool(rule.rule.optional_old_self)
        if rule.uses_old and before is None and not optional:
            return
        bindings = {"self": value[1]}
        if rule.uses_old or optional:
            bindings["oldSelf"] = Optional(before is not None, before) if optional else before
        try:
            outcome, cost = rule.program.evaluate(bindings)
            problem = ""
        except CostLimitExceeded as error:
            outcome, cost = None, error.cost
            if cost <= run.budget:
                words = f"{_NO_FURTHER} due to call cost exceeds limit for rule"
                run.errors.append(invalid(path, self._type, f"'{error}': {words}: {rule.named()}"))
                raise _Stop from None
            problem = str(error)
        except EvaluationError as error:
            outcome, cost, problem = None, error.cost, str(error)
        if not run.spend(cost):
            run.errors.append(invalid(path, self._type, _BUDGET))
            raise _Stop
        if problem.startswith("no such overload"):
            words = "call arguments did not match a supported operator, function or macro signature for rule"
            run.errors.append(invalid(path, self._type, f"'{problem}': {words}: {rule.named()}"))
        elif problem:
            run.errors.append(invalid(path, self._type, f"{problem} evaluating rule: {rule.named()}"))
        elif outcome is not True:
            same = now if now is not None else above
            tolerated = not rule.uses_old and same is not None and same[0] == same[1]
            add = (lambda error: run.warn(str(error))) if tolerated else run.errors.append
            self._refuse(run, rule, path, value[0], bindings, add)

    def _refuse(
        self,
        run: _Run,
        rule: CompiledRule,
        path: Path | None,
        value: Any,
        bindings: dict[str, Any],
        add: Callable[[FieldError], None],
    ) -> None:
        if rule.field:
            path = path.child(rule.field) if path is not None else Path(rule.field)
        detail = rule.failed()
        if rule.message is not None:
            said = self._message(run, rule, path, bindings, add)
            detail = detail if said is None else said
        shown = OMIT if self._type in ("object", "array") else value
        match rule.rule.reason:
            case "FieldValueForbidden":
                add(forbidden(path, detail))
            case "FieldValueRequired":
                add(required(path, detail))
            case "FieldValueDuplicate":
                add(duplicate(path, shown))
            case _:
                add(invalid(path, shown, detail))

    def _message(
        self,
        run: _Run,
        rule: CompiledRule,
        path: Path | None,
        bindings: dict[str, Any],
        add: Callable[[FieldError], None],
    ) -> str | None:
        """The result of the rule's messageExpression; None if it fails or is unusable."""
        assert rule.message is not None
        out = f"messageExpression evaluation failed due to running out of cost budget, {_NO_FURTHER}"
        try:
            said, cost = rule.message.evaluate(bindings)
        except CostLimitExceeded as error:
            if error.cost <= run.budget:
                source = json(rule.rule.message_expression or "")
                out = f"{_NO_FURTHER} due to call cost exceeds limit for messageExpression: {source}"
            add(invalid(path, self._type, out))
            raise _Stop from None
        except EvaluationError as error:
            said, cost = None, error.cost
        if not run.spend(cost):
            add(invalid(path, self._type, out))
            raise _Stop
        if not isinstance(said, str):
            return None
        text = said.strip()
        return text if text and len(text.encode()) <= MAX_MESSAGE and "\n" not in text else None


def _index(path: Path | None, index: int) -> Path:
    return path.index(index) if path is not None else Path(f"[{index}]")


def _pairs(now: Pair | None, above: Pair | None, key: str) -> tuple[Pair | None, Pair | None]:
    """The old and new values to compare at a field."""
    if now is None:
        return None, above
    if above is None and key in ("apiVersion", "kind"):
        return None, None
    value, old = now
    if isinstance(value, dict) and isinstance(old, dict) and key in value and key in old:
        return (value[key], old[key]), now
    return None, now
