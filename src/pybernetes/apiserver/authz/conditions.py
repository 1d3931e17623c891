"""Which requests a webhook is asked about: CEL expressions over the access review that would be sent.

All must be true. One that is false leaves the webhook out, whatever errors the others have.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from pybernetes.api.authorization.v1 import SubjectAccessReviewSpec
from pybernetes.api.cel.ast import CompileError
from pybernetes.api.cel.environment import Environment, Program
from pybernetes.api.cel.types import BOOL, STRING, list_of, map_of, object_type
from pybernetes.api.cel.values import CostLimitExceeded, EvaluationError

from .messages import aggregate

MAXIMUM = 64


class ConditionError(Exception):
    """Whether the webhook is to be asked cannot be said."""


class MatchConditions:
    """Compiled conditions."""

    def __init__(self, expressions: list[str]) -> None:
        """Raises ValueError for what is no condition."""
        self._programs = [compile_condition(each) for each in expressions]

    def match(self, spec: SubjectAccessReviewSpec) -> bool:
        """Whether the webhook is to be asked. Raises ConditionError."""
        if not self._programs:
            return True
        bindings = {"request": _plain(spec)}
        errors: list[str] = []
        for program in self._programs:
            try:
                if not program.evaluate(bindings)[0]:
                    return False
            except (EvaluationError, CostLimitExceeded) as error:
                errors.append(f"cel evaluation error: expression '{program.source}' resulted in error: {error}")
        if errors:
            raise ConditionError(aggregate(errors))
        return True


def compile_condition(expression: str) -> Program:
    """One condition. Raises ValueError in upstream's words."""
    try:
        program = _environment().compile(expression)
    except CompileError as error:
        raise ValueError(f"compilation failed: {error}") from None
    if program.result_type is not BOOL and program.result_type != BOOL:
        raise ValueError(f"must evaluate to bool but got {program.result_type}")
    return program


@cache
def _environment() -> Environment:
    requirement = object_type(
        "kubernetes.SelectorRequirement", {"key": STRING, "operator": STRING, "values": list_of(STRING)}
    )
    selector: dict[str, Any] = {"rawSelector": STRING, "requirements": list_of(requirement)}
    resource = object_type(
        "kubernetes.ResourceAttributes",
        {
            **dict.fromkeys(_RESOURCE, STRING),
            "fieldSelector": object_type("kubernetes.FieldSelectorAttributes", selector),
            "labelSelector": object_type("kubernetes.LabelSelectorAttributes", selector),
        },
    )
    other = object_type("kubernetes.NonResourceAttributes", {"path": STRING, "verb": STRING})
    request = object_type(
        "kubernetes.SubjectAccessReviewSpec",
        {
            "resourceAttributes": resource,
            "nonResourceAttributes": other,
            "user": STRING,
            "groups": list_of(STRING),
            "extra": map_of(STRING, list_of(STRING)),
            "uid": STRING,
        },
    )
    return Environment({"request": request})


_RESOURCE = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


def _plain(spec: SubjectAccessReviewSpec) -> dict[str, Any]:
    """With every text, also empty ones: expressions need not ask whether they are there."""
    plain: dict[str, Any] = {
        "user": spec.user or "",
        "groups": spec.groups or [],
        "uid": spec.uid or "",
        "extra": spec.extra or {},
    }
    resource, other = spec.resource_attributes, spec.non_resource_attributes
    if resource is not None:
        attributes: dict[str, Any] = {name: getattr(resource, name) or "" for name in _RESOURCE}
        for name in ("field_selector", "label_selector"):
            selector = getattr(resource, name)
            if selector is not None:
                attributes["fieldSelector" if name == "field_selector" else "labelSelector"] = msgspec.to_builtins(
                    selector
                )
        plain["resourceAttributes"] = attributes
    if other is not None:
        plain["nonResourceAttributes"] = {"path": other.path or "", "verb": other.verb or ""}
    return plain
