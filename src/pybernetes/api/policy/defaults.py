"""What is filled in for the kinds of policy/v1: only numbers that upstream always writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..omitempty import drop
from .v1 import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus


def default_pod_disruption_budget(budget: PodDisruptionBudget) -> None:
    """A status with all its numbers."""
    drop(budget)
    if budget.spec is None:
        budget.spec = PodDisruptionBudgetSpec()
    status = budget.status
    if status is None:
        status = budget.status = PodDisruptionBudgetStatus()
    if status.disruptions_allowed is None:
        status.disruptions_allowed = 0
    if status.current_healthy is None:
        status.current_healthy = 0
    if status.desired_healthy is None:
        status.desired_healthy = 0
    if status.expected_pods is None:
        status.expected_pods = 0


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"PodDisruptionBudget": default_pod_disruption_budget}
