"""The interface of evaluators for the objects of a resource, and the sum over a namespace.

A quota counts an object if it limits a name that the object's evaluator knows and if all of the quota's scopes fit.
Scopes only fit pods and claims; a quota with scopes never counts anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, Literal

from ..core.v1.quota import ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement
from ..labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement
from .lists import ONE, ZERO, Resources, add, mask, parsed

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
"""Resources, as (group, plural), of which there is no counting."""

_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}


class Evaluator:
    """Evaluates objects of one resource. This base class is for a resource that is only counted."""

    group: str = ""
    plural: str = ""

    def matching_resources(self, names: Iterable[str]) -> list[str]:
        """Those of a quota's names that objects of this resource use, sorted."""
        raise NotImplementedError

    def usage(self, obj: Any, now: float) -> Resources:
        """The usage of one object at this moment."""
        raise NotImplementedError

    def matches_scope(self, requirement: ScopedResourceSelectorRequirement, obj: Any) -> bool:
        """Whether an object is within a scope."""
        return False

    def missing(self, required: Iterable[str], obj: Any) -> str | None:
        """The error if an object lacks a field that a quota limits; None if it has all."""
        return None

    def handles(self, operation: Operation, subresource: str, old: Any, new: Any) -> bool:
        """Whether a request may use more than before."""
        return operation == "CREATE" and not subresource

    def changes_usage(self, old: Any, new: Any, now: float) -> bool:
        """Whether an update may have set something free, so that usage is to be counted again."""
        return False

    def uncovered_scopes(
        self,
        limited: Iterable[ScopedResourceSelectorRequirement],
        matched: Iterable[ScopedResourceSelectorRequirement],
    ) -> list[ScopedResourceSelectorRequirement]:
        """The scopes that may only be used under a quota and that no quota covers."""
        return []

    def matches(self, quota: ResourceQuota, obj: Any) -> bool:
        """Whether a quota counts an object."""
        hard = (quota.status.hard if quota.status else None) or {}
        return bool(self.matching_resources(hard)) and self.within(scope_selectors(quota.spec), obj)

    def within(self, scopes: Iterable[ScopedResourceSelectorRequirement], obj: Any) -> bool:
        """Whether an object is within all of these scopes."""
        return all(self.matches_scope(each, obj) for each in scopes)

    def matching_scopes(
        self, obj: Any, scopes: Iterable[ScopedResourceSelectorRequirement]
    ) -> list[ScopedResourceSelectorRequirement]:
        """The scopes that an object is within."""
        return [each for each in scopes if self.matches_scope(each, obj)]


class ObjectCount(Evaluator):
    """Counts objects: `count/<plural>.<group>`, and an older name for a few."""

    def __init__(self, group: str, plural: str, alias: str = "") -> None:
        self.group, self.plural = group, plural
        self.names = (object_count_name(group, plural), *((alias,) if alias else ()))

    def matching_resources(self, names: Iterable[str]) -> list[str]:
        """The names of the count."""
        return sorted(set(names).intersection(self.names))

    def usage(self, obj: Any, now: float) -> Resources:
        """One."""
        return dict.fromkeys(self.names, ONE)


def object_count_name(group: str, plural: str) -> str:
    """How a quota names the number of objects of a resource."""
    return f"count/{plural}.{group}" if group else f"count/{plural}"


def scope_selectors(spec: ResourceQuotaSpec | None) -> list[ScopedResourceSelectorRequirement]:
    """All scopes of a quota in one form."""
    if spec is None:
        return []
    plain = [ScopedResourceSelectorRequirement(scope_name=each, operator="Exists") for each in spec.scopes or ()]
    return plain + list((spec.scope_selector.match_expressions if spec.scope_selector else None) or ())


def scope_matches(requirement: ScopedResourceSelectorRequirement, values: Mapping[str, str]) -> bool:
    """Whether values by scope fulfil a requirement, as labels fulfil one."""
    operator = _OPERATORS.get(requirement.operator or "")
    if operator is None:
        return False
    return Requirement(requirement.scope_name or "", operator, requirement.values or ()).matches(values)


@cache
def evaluators() -> dict[tuple[str, str], Evaluator]:
    """The evaluators that do more than count, and the counts that have an older name, by (group, plural)."""
    from .claims import ClaimEvaluator
    from .pods import PodEvaluator
    from .resourceclaims import ResourceClaimEvaluator
    from .services import ServiceEvaluator

    known: list[Evaluator] = [PodEvaluator(), ServiceEvaluator(), ClaimEvaluator(), ResourceClaimEvaluator()]
    known += [
        ObjectCount("", plural, plural)
        for plural in ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
    ]
    return {(each.group, each.plural): each for each in known}


def evaluator_for(group: str, plural: str) -> Evaluator | None:
    """The evaluator of a resource; None if it is never counted."""
    if (group, plural) in IGNORED:
        return None
    return evaluators().get((group, plural)) or ObjectCount(group, plural)


def calculate_usage(
    spec: ResourceQuotaSpec, known: Iterable[Evaluator], objects: Callable[[Evaluator], Iterable[Any]], now: float
) -> Resources:
    """The usage of a quota in a namespace; `objects` lists the namespace's objects of an evaluator's resource."""
    names = list(parsed(spec.hard))
    scopes = scope_selectors(spec)
    used: Resources = {}
    matched: set[str] = set()
    for evaluator in known:
        matching = evaluator.matching_resources(names)
        if not matching:
            continue
        matched.update(matching)
        used = add(used, dict.fromkeys(matching, ZERO))
        for each in objects(evaluator):
            if evaluator.within(scopes, each):
                used = add(used, mask(evaluator.usage(each, now), matching))
    return mask(used, matched)
