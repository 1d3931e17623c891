"""The selectors of a request, for authorizers that can allow a part of a collection.

A part of a selector that cannot be understood is left out. That is safe: fewer conditions mean more objects, so the
question becomes a larger one.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from pybernetes.api import fields, labels
from pybernetes.api.authorization.v1 import FieldSelectorAttributes, LabelSelectorAttributes, ResourceAttributes
from pybernetes.api.meta.v1.labelselector import FieldSelectorRequirement, LabelSelectorRequirement

from ..requestinfo import RequestInfo

_VERBS = frozenset(("list", "watch", "deletecollection"))
_FIELD_OPERATORS = {"In": fields.EQUALS, "NotIn": fields.NOT_EQUALS}
_LABEL_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


class Selectors(msgspec.Struct, frozen=True):
    """The conditions that were understood, and whether there were others."""

    fields: tuple[fields.Requirement, ...] = ()
    labels: tuple[labels.Requirement, ...] = ()
    field_problem: bool = False
    label_problem: bool = False

    def problems(self) -> list[str]:
        """The parts that were left out, for the response to an access review."""
        found = []
        for name, problem, used in (
            ("fieldSelector", self.field_problem, self.fields),
            ("labelSelector", self.label_problem, self.labels),
        ):
            if problem:
                how = "partially ignored" if used else "ignored"
                found.append(f"spec.resourceAttributes.{name} {how} due to parse error")
        return found


NOTHING = Selectors()


def selectors_of(info: RequestInfo) -> Selectors:
    """The selectors of a request, or of a question about one."""
    if info.selectors is not None:
        found: Selectors = info.selectors or NOTHING
        return found
    if info.verb not in _VERBS:
        return NOTHING
    query = info.query
    return _parse(query.get("fieldSelector", ""), query.get("labelSelector", ""))


def selectors_in(attributes: ResourceAttributes) -> Selectors:
    """The selectors of an access review."""
    field, label = attributes.field_selector, attributes.label_selector
    parsed = _parse((field and field.raw_selector) or "", (label and label.raw_selector) or "")
    if field is not None and field.requirements:
        chosen, problem = _fields(field.requirements)
        parsed = msgspec.structs.replace(parsed, fields=chosen, field_problem=problem)
    if label is not None and label.requirements:
        wanted, problem = _labels(label.requirements)
        parsed = msgspec.structs.replace(parsed, labels=wanted, label_problem=problem)
    return parsed


def attributes_of(selectors: Selectors) -> tuple[FieldSelectorAttributes | None, LabelSelectorAttributes | None]:
    """The same for an access review that is sent to a webhook."""
    field = [
        FieldSelectorRequirement(
            key=each.field, operator="In" if each.operator == fields.EQUALS else "NotIn", values=[each.value]
        )
        for each in selectors.fields
    ]
    names = {
        "=": "In",
        "==": "In",
        "in": "In",
        "!=": "NotIn",
        "notin": "NotIn",
        "exists": "Exists",
        "!": "DoesNotExist",
    }
    label = [
        LabelSelectorRequirement(key=each.key, operator=names[each.operator], values=list(each.values) or None)
        for each in selectors.labels
        if each.operator in names
    ]
    return (
        FieldSelectorAttributes(requirements=field) if field else None,
        LabelSelectorAttributes(requirements=label) if label else None,
    )


@lru_cache(maxsize=256)
def _parse(field: str, label: str) -> Selectors:
    chosen: tuple[fields.Requirement, ...] = ()
    wanted: tuple[labels.Requirement, ...] = ()
    field_problem = label_problem = False
    try:
        chosen = fields.parse(field).requirements
    except fields.FieldSelectorError:
        field_problem = True
    try:
        wanted = labels.parse(label).requirements
    except labels.SelectorError:
        label_problem = True
    return Selectors(chosen, wanted, field_problem, label_problem)


def _fields(requirements: list[FieldSelectorRequirement]) -> tuple[tuple[fields.Requirement, ...], bool]:
    found = [
        fields.Requirement(each.key or "", _FIELD_OPERATORS[each.operator], each.values[0])
        for each in requirements
        if each.operator in _FIELD_OPERATORS and each.values and len(each.values) == 1
    ]
    return tuple(found), len(found) < len(requirements)


def _labels(requirements: list[LabelSelectorRequirement]) -> tuple[tuple[labels.Requirement, ...], bool]:
    found = []
    for each in requirements:
        operator = _LABEL_OPERATORS.get(each.operator or "")
        if operator is None:
            continue
        try:
            found.append(labels.checked(each.key or "", operator, each.values or ()))
        except ValueError:
            continue
    return tuple(found), len(found) < len(requirements)
