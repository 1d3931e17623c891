"""Validation of a PodDisruptionBudget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..apps.shared import in_order, validate_at_most_100_percent, validate_int_or_percent
from ..field import FieldError, Path, invalid, not_supported
from ..gocompat.goform import go_values
from ..meta.validation import (
    validate_conditions,
    validate_label_selector,
    validate_not_negative,
)
from .v1 import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus

_SPEC = Path("spec")
_STATUS = Path("status")
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def validate_pod_disruption_budget(budget: PodDisruptionBudget) -> list[FieldError]:
    """A new budget. Its name may be anything that fits into a path, as for all kinds."""
    return _validate_spec(budget.spec or PodDisruptionBudgetSpec(), lenient=False)


def validate_pod_disruption_budget_update(new: PodDisruptionBudget, old: PodDisruptionBudget) -> list[FieldError]:
    """A changed budget."""
    before = old.spec or PodDisruptionBudgetSpec()
    lenient = bool(validate_label_selector(before.selector, _SPEC))
    return _validate_spec(new.spec or PodDisruptionBudgetSpec(), lenient=lenient)


def validate_pod_disruption_budget_status_update(
    new: PodDisruptionBudget, old: PodDisruptionBudget
) -> list[FieldError]:
    """Conditions and counters."""
    status = new.status or PodDisruptionBudgetStatus()
    errors = validate_conditions(status.conditions, _STATUS.child("conditions"))
    errors += validate_not_negative(status.disruptions_allowed, _STATUS.child("disruptionsAllowed"))
    errors += validate_not_negative(status.current_healthy, _STATUS.child("currentHealthy"))
    errors += validate_not_negative(status.desired_healthy, _STATUS.child("desiredHealthy"))
    return errors + validate_not_negative(status.expected_pods, _STATUS.child("expectedPods"))


def _validate_spec(spec: PodDisruptionBudgetSpec, *, lenient: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.min_available is not None and spec.max_unavailable is not None:
        printed = in_order(
            MinAvailable=spec.min_available,
            Selector=go_values(spec.selector),
            MaxUnavailable=spec.max_unavailable,
            UnhealthyPodEvictionPolicy=spec.unhealthy_pod_eviction_policy,
        )
        errors.append(invalid(_SPEC, printed, "minAvailable and maxUnavailable cannot be both set"))
    for name, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if value is not None:
            errors += validate_int_or_percent(value, _SPEC.child(name))
            errors += validate_at_most_100_percent(value, _SPEC.child(name))
    errors += validate_label_selector(spec.selector, _SPEC.child("selector"), allow_invalid_values=lenient)
    policy = spec.unhealthy_pod_eviction_policy
    if policy is not None and policy not in _EVICTION_POLICIES:
        errors.append(not_supported(_SPEC.child("unhealthyPodEvictionPolicy"), policy, _EVICTION_POLICIES))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"PodDisruptionBudget": validate_pod_disruption_budget}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "PodDisruptionBudget": validate_pod_disruption_budget_update
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "PodDisruptionBudget": validate_pod_disruption_budget_status_update
}
