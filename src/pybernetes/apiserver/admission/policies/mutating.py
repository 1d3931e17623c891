"""MutatingAdmissionPolicy: expressions that change a request's object, one policy after another.

When one has changed the object, all mutating plugins run once more, and of the policies those that ran before the
change and want that.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.api.errors import APIError
from pybernetes.api.resources import Resource

from .. import documents
from ..plugin import Attributes, Plugin, forbidden
from .invocations import invocations
from .table import Binding, Hook, Policies

if TYPE_CHECKING:
    from pybernetes.api.managedfields import Node

    from ...registry.registry import Registry


class Evaluator:
    """A policy's expressions, compiled."""

    def __init__(self, policy: Any) -> None:
        from pybernetes.api.admissionregistration.expressions import JSON_PATCH, Composition, object_type
        from pybernetes.api.cel.types import list_of

        from ..expressions import MatchConditions

        spec = policy.spec
        self.ignores = spec.failure_policy == "Ignore"
        self.again = spec.reinvocation_policy == "IfNeeded"
        variables = [(each.name or "", each.expression or "") for each in spec.variables or ()]
        self.composition = Composition(variables, spec.param_kind is not None)
        self.conditions = None
        if spec.match_conditions:
            env = self.composition.environment()
            self.conditions = MatchConditions(spec.match_conditions, env, spec.failure_policy)
        self.mutations = []
        for each in spec.mutations or ():
            applies = each.patch_type == "ApplyConfiguration"
            part = each.apply_configuration if applies else each.json_patch
            returns = object_type("Object") if applies else list_of(JSON_PATCH)
            source = (part.expression if part is not None else None) or ""
            self.mutations.append((applies, self.composition.compile(source, (returns,), patch=True)))


class Rounds:
    """Which policies have run, and which are to run again."""

    def __init__(self) -> None:
        self.invoked: set[tuple[str, ...]] = set()
        self.again: set[tuple[str, ...]] = set()
        self.output: bytes | None = None

    def require(self) -> None:
        """The object has changed: policies that ran before and reinvoke run again."""
        self.again |= self.invoked
        self.invoked = set()


class PolicyError(Exception):
    """Something a policy could not do."""

    def __init__(self, policy: str, binding: str, message: object, reason: str = "") -> None:
        by = f"policy '{policy}' with binding '{binding}'" if binding else f'policy "{policy}"'
        super().__init__(f"{by} denied request: {message}")
        self.reason = reason


def _noting(hook: Hook[Evaluator], errors: list[PolicyError]) -> Callable[[str, str], None]:
    return lambda binding, message: errors.append(PolicyError(hook.name, binding, message))


class MutatingAdmissionPolicy(Plugin):
    """Upstream's MutatingAdmissionPolicy."""

    name = "MutatingAdmissionPolicy"

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry, configuration)
        self._policies = Policies(registry, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", Evaluator)
        self._metrics: Any = None

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        found = self._policies.concerned(attributes)
        return self._dispatch(attributes, found) if found else None

    async def _dispatch(self, attributes: Attributes, hooks: tuple[Hook[Evaluator], ...]) -> None:
        notes = attributes.notes = attributes.notes or {}
        rounds: Rounds = notes.setdefault(self.name, Rounds())
        if attributes.reinvoking and rounds.output != await self._output(attributes):
            rounds.require()
        errors: list[PolicyError] = []
        for hook in hooks:
            # Whom the request concerns is found out before one of them changes it.
            found = [each async for each in invocations(hook, attributes, self.registry, _noting(hook, errors))]
            for binding, target, params in found:
                await self._invoke(hook, binding, target, params, attributes, rounds, errors)
        if errors:
            raise _refused(attributes, errors)
        if not attributes.reinvoking:
            rounds.output = await self._output(attributes)

    async def _output(self, attributes: Attributes) -> bytes:
        found = await documents.document(self.registry, attributes, attributes.new, attributes.requested)
        return msgspec.json.encode(found)

    async def _invoke(
        self,
        hook: Hook[Evaluator],
        binding: Binding,
        target: Resource,
        params: Any,
        attributes: Attributes,
        rounds: Rounds,
        errors: list[PolicyError],
    ) -> None:
        from .evaluating import Scene, namespace_of
        from .metrics import PolicyMetrics
        from .patching import Unfit

        if self._metrics is None:
            self._metrics = PolicyMetrics("mutating_admission_policy")
        evaluator = hook.evaluator
        namespace = await namespace_of(self.registry, attributes)
        key = (hook.name, binding.name, _name(params))
        if evaluator.conditions is not None:
            scene = await Scene.make(self.registry, attributes, target, namespace)
            activation, variables = scene.activation(evaluator.composition, params)
            holds, error = await evaluator.conditions.match(activation, variables)
            if error:
                errors.append(PolicyError(hook.name, binding.name, error, "Invalid"))
                return
            if not holds:
                return
        if attributes.reinvoking and key not in rounds.again:
            return
        changed = False
        for index in range(len(evaluator.mutations)):
            if attributes.new is None:
                break
            started = time.perf_counter()
            message = ""
            try:
                scene = await Scene.make(self.registry, attributes, target, namespace)
                changed = await self._mutate(evaluator, index, scene, params, attributes, target) or changed
            except Unfit as error:
                message = str(error)
                if not evaluator.ignores:
                    errors.append(PolicyError(hook.name, binding.name, message, "Invalid"))
            action = "deny" if message else "allow"
            seconds = time.perf_counter() - started
            self._metrics.observe(hook.name, binding.name, message, action, seconds)
        if changed:
            rounds.require()
            attributes.reinvoke = True
        if evaluator.again:
            rounds.invoked.add(key)

    async def _mutate(
        self, evaluator: Evaluator, index: int, scene: Any, params: Any, attributes: Attributes, target: Resource
    ) -> bool:
        """Make one change; whether the object is another one now. Raises Unfit."""
        from pybernetes.api.cel.environment import RUNTIME_BUDGET

        from ..expressions import Failed, evaluate
        from .patching import Unfit, applied, patched

        applies, expression = evaluator.mutations[index]
        if expression.error:
            raise Unfit(expression.error)
        activation, variables = scene.activation(evaluator.composition, params)
        try:
            value, error, _ = await evaluate(activation, expression, RUNTIME_BUDGET, variables)
        except Failed as failed:
            raise Unfit(str(failed)) from None
        if error:
            raise Unfit(error)
        before = activation.bindings["object"]
        assert before is not None
        after = applied(before, value, self._node(attributes, target)) if applies else patched(before, value)
        if after == before:
            return False
        attributes.new = await documents.restore(self.registry, attributes, after, target)
        now = await documents.document(self.registry, attributes, attributes.new, target)
        return bool(now != before)

    def _node(self, attributes: Attributes, target: Resource) -> Node:
        from pybernetes.api.managedfields import node_of

        if attributes.body is not None or not target.stored:
            cls: Any = type(attributes.new)
            return node_of(cls)
        store = self.registry.store(target.group, target.version, target.plural)
        if store.custom is not None:
            node: Node = store.custom.node
            return node
        return node_of(target.type)


def _name(params: Any) -> str:
    metadata = params.get("metadata") or {} if isinstance(params, dict) else {}
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _refused(attributes: Attributes, errors: list[PolicyError]) -> APIError:
    """All that is wrong, the first of it as the message."""
    error = forbidden(attributes, "admission request denied by policy")
    error.message = str(errors[0])
    error.args = (error.message,)
    if errors[0].reason:
        error.reason = errors[0].reason
    details = error.details = error.details or {}
    details["causes"] = [*details.get("causes", ()), *({"message": str(each)} for each in errors)]
    return error
