"""Expressions about a request: which variables they see, how they are compiled, how they are run within a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pybernetes.api.admissionregistration.expressions import Expression
from pybernetes.api.cel.environment import CHEAP, MATCH_CONDITIONS_BUDGET, PER_CALL_LIMIT, Environment, Program
from pybernetes.api.cel.libraries.authorizer import (
    Answer,
    AuthorizerValue,
    Decisions,
    Question,
    Undecided,
)
from pybernetes.api.cel.values import CostLimitExceeded, EvaluationError
from pybernetes.api.resources import Resource

from ..authz.authorizer import Decision
from ..authz.union import decide
from ..large_objects import beside_loop
from ..registry.registry import Registry
from ..requestinfo import RequestInfo
from ..user import User
from .plugin import Attributes
from .requests import admission_request

OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class Failed(Exception):
    """The budget is spent; nothing more is run."""


class Activation:
    """The variables of one request, and what may still be spent on it."""

    def __init__(self, registry: Registry, attributes: Attributes, bindings: dict[str, Any], target: Resource) -> None:
        self.registry = registry
        self.user = attributes.user
        self.bindings = bindings
        decisions = getattr(attributes, "notes", None)
        kept = None if decisions is None else decisions.get("authorizer")
        if kept is None:
            kept = Decisions()
            attributes.notes = {**(attributes.notes or {}), "authorizer": kept}
        self.decisions: Decisions = kept
        value = AuthorizerValue(self.decisions)
        requested = attributes.requested
        bindings["request"] = admission_request(attributes, target)
        bindings["authorizer"] = value
        bindings["authorizer.requestResource"] = value.resource_check(
            requested.group,
            requested.plural,
            subresource=attributes.subresource,
            namespace=attributes.namespace,
            name=attributes.name,
        )

    def child(self, extra: dict[str, Any]) -> Activation:
        """The same request with more variables."""
        made = Activation.__new__(Activation)
        made.__dict__.update(self.__dict__)
        made.bindings = {**self.bindings, **extra}
        return made

    async def run(self, program: Program, extra: Mapping[str, Any] | None = None) -> tuple[Any, int]:
        """Value and cost; asks authorizers as often as the expression wants to know something."""
        bindings = self.bindings if extra is None else {**self.bindings, **extra}
        while True:
            try:
                return await self._evaluate(program, bindings)
            except Undecided as undecided:
                question = undecided.question
                self.decisions.answers[question] = await _ask(self.registry, self.user, question)

    async def _evaluate(self, program: Program, bindings: Mapping[str, Any]) -> tuple[Any, int]:
        """Evaluate on the event loop, or beside it if the expression costs or has cost more than a little."""
        variables = bindings.get("variables")
        if not program.costly:
            if variables is not None:
                variables.limit = CHEAP
            try:
                return program.evaluate(bindings, CHEAP)
            except CostLimitExceeded:
                program.costly = True
        if variables is not None:
            variables.limit = PER_CALL_LIMIT
        return await beside_loop(lambda: program.evaluate(bindings))


async def evaluate(
    activation: Activation, expression: Expression, budget: int, variables: Any = None
) -> tuple[Any, str, int]:
    """The value, or what went wrong, and what is left of the budget. Raises Failed when it is spent."""
    if expression.program is None:
        return None, f"compilation error: {expression.error}", budget
    error = ""
    value: Any = None
    try:
        value, cost = await activation.run(expression.program)
    except (EvaluationError, CostLimitExceeded) as failed:
        error, cost = f"expression '{expression.source}' resulted in error: {failed}", failed.cost
    if variables is not None:
        cost += variables.spent()
    if cost > budget:
        raise Failed(OUT_OF_BUDGET)
    return value, error, budget - cost


class MatchConditions:
    """Conditions that must all hold for a webhook or policy to be concerned."""

    def __init__(self, conditions: Iterable[Any], env: Environment, failure_policy: str | None) -> None:
        self._conditions = [Expression(each.expression or "", env) for each in conditions]
        self._ignores = failure_policy == "Ignore"

    async def match(self, activation: Activation, variables: Any = None) -> tuple[bool, str]:
        """Whether all hold, and what is wrong if that cannot be said and must not be ignored."""
        budget = MATCH_CONDITIONS_BUDGET
        errors: list[str] = []
        try:
            for condition in self._conditions:
                value, error, budget = await evaluate(activation, condition, budget, variables)
                if error:
                    errors.append(error)
                elif value is False:
                    return False, ""
        except Failed as failed:
            errors = [str(failed)]
        if not errors:
            return True, ""
        if self._ignores:
            return False, ""
        return False, errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"


async def _ask(registry: Registry, user: Any, question: Question) -> Answer:
    if question.user is not None:
        namespace, name = question.user
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        user = User(f"system:serviceaccount:{namespace}:{name}", groups=groups)
    if question.path:
        info = RequestInfo(question.path, question.verb, {})
    else:
        query = {
            key: value
            for key, value in (
                ("fieldSelector", question.field_selector),
                ("labelSelector", question.label_selector),
            )
            if value
        }
        info = RequestInfo(
            "",
            question.verb,
            query,
            True,
            question.group,
            "*",
            question.resource,
            question.subresource,
            question.namespace,
            question.name,
        )
    decision, reason, error = await decide(registry.authorizers, user, info)
    return Answer(decision is Decision.ALLOW, reason, error)


def namespace_document(namespace: Any) -> Any:
    """A Namespace as expressions see it: some of its metadata is left out."""
    if namespace is None:
        return None
    found = msgspec.to_builtins(namespace)
    metadata = found.get("metadata") or {}
    hidden = ("managedFields", "ownerReferences", "selfLink")
    kept = {key: value for key, value in metadata.items() if value is not None and key not in hidden}
    made: dict[str, Any] = {"metadata": kept}
    for part in ("spec", "status"):
        if found.get(part) is not None:
            made[part] = _without_nulls(found[part])
    return made


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
