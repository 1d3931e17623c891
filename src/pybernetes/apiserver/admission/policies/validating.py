"""ValidatingAdmissionPolicy: expressions that must be true of a request, or it is refused, warned about or noted."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pybernetes.api.errors import APIError

from ..plugin import Attributes, Plugin, forbidden
from .invocations import invocations
from .table import Binding, Hook, Policies

if TYPE_CHECKING:
    from pybernetes.api.resources import Resource

    from ...registry.registry import Registry
    from .evaluating import Scene

_CODES = {"Invalid": 422, "Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_FAILURE = "validation.policy.admission.k8s.io/validation_failure"
MAX_MESSAGE = 5 * 1024
MAX_ANNOTATION = 10 * 1024


class Decision(NamedTuple):
    """The result of one validation: `message` is empty if it passes."""

    message: str
    reason: str = ""
    position: int = 0


class Evaluator:
    """A policy's expressions, compiled."""

    def __init__(self, policy: Any) -> None:
        from pybernetes.api.admissionregistration.expressions import Composition
        from pybernetes.api.cel.types import BOOL, NULL, STRING

        from ..expressions import MatchConditions

        spec = policy.spec
        self.ignores = spec.failure_policy == "Ignore"
        variables = [(each.name or "", each.expression or "") for each in spec.variables or ()]
        self.composition = Composition(variables, spec.param_kind is not None)
        compile = self.composition.compile
        self.conditions = None
        if spec.match_conditions:
            env = self.composition.environment()
            self.conditions = MatchConditions(spec.match_conditions, env, spec.failure_policy)
        self.validations = [
            (
                each,
                compile(each.expression or "", (BOOL,)),
                compile(each.message_expression, (STRING,), authorizer=False) if each.message_expression else None,
            )
            for each in spec.validations or ()
        ]
        self.annotations = [
            (each.key or "", compile((each.value_expression or "").strip(), (STRING, NULL)))
            for each in spec.audit_annotations or ()
        ]

    async def validate(self, scene: Scene, params: Any) -> tuple[list[Decision], list[tuple[str, str]]]:
        """The failed validations of the policy, and its audit annotations."""
        from pybernetes.api.cel.environment import RUNTIME_BUDGET

        from ..expressions import Failed, evaluate

        activation, variables = scene.activation(self.composition, params)
        if self.conditions is not None:
            holds, error = await self.conditions.match(activation, variables)
            if error:
                return self._failed(error), []
            if not holds:
                return [], []
        budget = RUNTIME_BUDGET
        decisions: list[Decision] = []
        try:
            for index, (validation, expression, message) in enumerate(self.validations):
                value, error, budget = await evaluate(activation, expression, budget, variables)
                if error:
                    decisions += [each._replace(position=index) for each in self._failed(error)]
                elif value is not True:
                    text = ""
                    if message is not None:
                        try:
                            other, others = scene.activation(self.composition, params, authorizer=False)
                            said, _, budget = await evaluate(other, message, budget, others)
                        except Failed as failed:
                            found = self._failed(f"failed messageExpression: {failed}")
                            decisions += [each._replace(position=index) for each in found]
                            continue
                        text = _usable(said)
                    text = text or (validation.message or "").strip()
                    text = text or f"failed expression: {(validation.expression or '').strip()}"
                    decisions.append(Decision(text, validation.reason or "Invalid", index))
        except Failed as failed:
            return self._failed(str(failed)), []
        return await self._annotate(activation, variables, decisions)

    async def _annotate(
        self, activation: Any, variables: Any, decisions: list[Decision]
    ) -> tuple[list[Decision], list[tuple[str, str]]]:
        from pybernetes.api.cel.environment import RUNTIME_BUDGET

        from ..expressions import Failed, evaluate

        budget = RUNTIME_BUDGET
        notes: list[tuple[str, str]] = []
        try:
            for key, expression in self.annotations:
                value, error, budget = await evaluate(activation, expression, budget, variables)
                if error:
                    decisions += self._failed(error)
                elif isinstance(value, str) and value.strip():
                    notes.append((key, value.strip()[:MAX_ANNOTATION]))
        except Failed as failed:
            return self._failed(str(failed)), []
        return decisions, notes

    def _failed(self, message: str) -> list[Decision]:
        """A failure counts as a refusal, unless the policy's failures are to be ignored."""
        return [] if self.ignores else [Decision(message)]


def _usable(message: Any) -> str:
    """The outcome of a messageExpression, if it can be shown in one line."""
    text = message.strip() if isinstance(message, str) else ""
    return "" if len(text.encode()) > MAX_MESSAGE or "\n" in text else text


class Denied(NamedTuple):
    """A refusal and who is behind it."""

    policy: str
    binding: str
    message: str
    reason: str

    def error(self, attributes: Attributes) -> APIError:
        """The error that the client gets."""
        by = f"ValidatingAdmissionPolicy '{self.policy}'"
        if self.binding:
            by = f"{by} with binding '{self.binding}'"
        message = f"{by} denied request: {self.message}"
        error = forbidden(attributes, message)
        error.reason = self.reason or "Invalid"
        error.code = _CODES.get(error.reason, 422)
        details = error.details = error.details or {}
        details["causes"] = [*details.get("causes", ()), {"message": message}]
        return error


class ValidatingAdmissionPolicy(Plugin):
    """Upstream's ValidatingAdmissionPolicy."""

    name = "ValidatingAdmissionPolicy"

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry, configuration)
        self._policies = Policies(
            registry, "validatingadmissionpolicies", "validatingadmissionpolicybindings", Evaluator
        )
        self._metrics: Any = None

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        found = self._policies.concerned(attributes)
        return self._dispatch(attributes, found) if found else None

    async def _dispatch(self, attributes: Attributes, hooks: tuple[Hook[Evaluator], ...]) -> None:
        denied: list[Denied] = []
        scenes: dict[Resource, Scene] = {}
        for hook in hooks:
            await self._check(hook, attributes, denied, scenes)
        if denied:
            raise denied[0].error(attributes)

    async def _check(
        self,
        hook: Hook[Evaluator],
        attributes: Attributes,
        denied: list[Denied],
        scenes: dict[Resource, Scene],
    ) -> None:
        def failed(binding: str, message: str) -> None:
            denied.append(Denied(hook.name, binding, message, ""))

        notes: dict[str, list[str]] = {}
        async for binding, target, params in invocations(hook, attributes, self.registry, failed):
            scene = scenes.get(target)
            if scene is None:
                from .evaluating import Scene, namespace_of

                namespace = await namespace_of(self.registry, attributes)
                scene = scenes[target] = await Scene.make(self.registry, attributes, target, namespace)
            started = time.perf_counter()
            decisions, said = await hook.evaluator.validate(scene, params)
            seconds = time.perf_counter() - started
            for decision in decisions:
                self._enforce(hook, binding, decision, attributes, denied, seconds)
            for key, value in said:
                known = notes.setdefault(key, [])
                if value not in known:
                    known.append(value)
        for key, values in notes.items():
            attributes.annotate(f"{hook.name}/{key}", ", ".join(values))

    def _enforce(
        self,
        hook: Hook[Evaluator],
        binding: Binding,
        decision: Decision,
        attributes: Attributes,
        denied: list[Denied],
        seconds: float,
    ) -> None:
        if self._metrics is None:
            from .metrics import PolicyMetrics

            self._metrics = PolicyMetrics("validating_admission_policy")
        actions: list[str] = binding.spec.validation_actions or []
        for action in actions:
            self._metrics.observe(hook.name, binding.name, decision.message, action.lower(), seconds)
            if action == "Deny":
                denied.append(Denied(hook.name, binding.name, decision.message, decision.reason))
            elif action == "Warn":
                attributes.warnings.append(
                    f"Validation failed for ValidatingAdmissionPolicy '{hook.name}' with binding"
                    f" '{binding.name}': {decision.message}"
                )
            elif action == "Audit":
                failure = {
                    "message": decision.message,
                    "policy": hook.name,
                    "binding": binding.name,
                    "expressionIndex": decision.position,
                    "validationActions": actions,
                }
                attributes.annotate(_FAILURE, msgspec.json.encode([failure]).decode())
