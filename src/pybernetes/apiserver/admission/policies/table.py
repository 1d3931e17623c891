"""Policies with their bindings, compiled: whom a request of some form concerns is looked up, not searched for.

A policy's expressions are compiled when the first request that its rules are about arrives, and kept until the policy
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pybernetes.api.resources import Resource

from ...registry.lister import Lister, lister
from ...registry.registry import Registry
from ..matching import EXEMPT_GROUP, Form, Matches, Selectors, first, form_of, namespaces_of, rules_for
from ..plugin import Attributes

E = TypeVar("E")

_EXEMPT = frozenset(
    (EXEMPT_GROUP, plural)
    for plural in (
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)
_QUESTIONS = ("authentication.k8s.io", "authorization.k8s.io")
"""Groups of reviews, which are not kept and without which nothing would work."""


class Constraints:
    """matchConstraints of a policy or matchResources of a binding, for one form of requests."""

    __slots__ = ("_everything", "_excluded", "_included", "_selectors")

    def __init__(self, match: Any, form: Form, registry: Registry) -> None:
        policy = match.match_policy
        self._selectors = Selectors(match.namespace_selector, match.object_selector)
        self._excluded = rules_for(match.exclude_resource_rules or (), policy, form, registry)
        rules = match.resource_rules or ()
        self._included = rules_for(rules, policy, form, registry) if rules else [Matches(form[1], frozenset())]
        self._everything = any(not each.names for each in self._excluded)

    @property
    def never(self) -> bool:
        """Whether no request of this form is meant, whatever its object is."""
        return self._everything or not self._included

    async def target(self, attributes: Attributes, registry: Registry) -> Resource | None:
        """The resource in the version that is meant, if the request is. Raises NotFound without its namespace."""
        if first(self._excluded, attributes.name) is not None:
            return None
        found = first(self._included, attributes.name)
        if found is None or not await self._selectors.match(attributes, namespaces_of(registry)):
            return None
        return found.target


class Binding:
    """A binding, for one form of requests."""

    __slots__ = ("constraints", "name", "spec")

    def __init__(self, binding: Any, form: Form, registry: Registry) -> None:
        self.name: str = binding.metadata.name
        self.spec = binding.spec
        match = binding.spec.match_resources
        self.constraints = None if match is None else Constraints(match, form, registry)


class Hook(Generic[E]):
    """A policy and its bindings, for one form of requests."""

    __slots__ = ("bindings", "constraints", "evaluator", "name", "spec")

    def __init__(self, policy: Any, evaluator: E, constraints: Constraints, bindings: list[Binding]) -> None:
        self.name: str = policy.metadata.name
        self.spec = policy.spec
        self.evaluator = evaluator
        self.constraints = constraints
        self.bindings = bindings


class Policies(Generic[E]):
    """All policies of one kind that have a binding."""

    def __init__(self, registry: Registry, policies: str, bindings: str, compile: Callable[[Any], E]) -> None:
        self._registry = registry
        self._names = (policies, bindings)
        self._compile = compile
        self._listers: tuple[Lister[Any], Lister[Any]] | None = None
        self._seen = (-1, -1, -1)
        self._bound: list[tuple[Any, list[Any]]] = []
        self._table: dict[Form, tuple[Hook[E], ...]] = {}
        self._compiled: dict[str, tuple[Any, E]] = {}

    def concerned(self, attributes: Attributes) -> tuple[Hook[E], ...]:
        """The policies whose rules are about requests of this form, by name."""
        if self._listers is None:
            policies, bindings = self._names
            self._listers = (
                lister(self._registry, EXEMPT_GROUP, "v1", policies),
                lister(self._registry, EXEMPT_GROUP, "v1", bindings),
            )
        policies_, bindings_ = self._listers
        if self._seen != (policies_.changed, bindings_.changed, self._registry.generation):
            self._read(policies_, bindings_)
        if not self._bound:
            return ()
        form = form_of(attributes)
        found = self._table.get(form)
        if found is None:
            found = self._table[form] = tuple(self._find(form))
        return found

    def _read(self, policies: Lister[Any], bindings: Lister[Any]) -> None:
        self._seen = (policies.changed, bindings.changed, self._registry.generation)
        self._table = {}
        by_policy: dict[str, list[Any]] = {}
        for binding in sorted(bindings.list(), key=lambda each: each.metadata.name):
            by_policy.setdefault(binding.spec.policy_name or "", []).append(binding)
        self._bound = [
            (policy, by_policy[policy.metadata.name])
            for policy in sorted(policies.list(), key=lambda each: each.metadata.name)
            if policy.metadata.name in by_policy
        ]
        names = {policy.metadata.name for policy, _ in self._bound}
        self._compiled = {name: kept for name, kept in self._compiled.items() if name in names}

    def _find(self, form: Form) -> list[Hook[E]]:
        resource = form[1]
        if (resource.group, resource.plural) in _EXEMPT or resource.group in _QUESTIONS:
            return []
        found: list[Hook[E]] = []
        for policy, bindings in self._bound:
            match = policy.spec.match_constraints
            if match is None:
                continue
            constraints = Constraints(match, form, self._registry)
            bound = [Binding(each, form, self._registry) for each in bindings]
            bound = [each for each in bound if each.constraints is None or not each.constraints.never]
            if not constraints.never and bound:
                found.append(Hook(policy, self._evaluator(policy), constraints, bound))
        return found

    def _evaluator(self, policy: Any) -> E:
        name = policy.metadata.name
        kept = self._compiled.get(name)
        if kept is None or kept[0] != policy.spec:
            kept = self._compiled[name] = (policy.spec, self._compile(policy))
        return kept[1]
