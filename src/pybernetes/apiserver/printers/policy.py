"""PodDisruptionBudgets."""

from __future__ import annotations

from typing import Final

from pybernetes.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec

from .printer import AGE, NAME, Cells, Printer, age, integer, name, text


def _budget(budget: PodDisruptionBudget, now: float) -> Cells:
    spec = budget.spec or PodDisruptionBudgetSpec()
    return [
        name(budget),
        "N/A" if spec.min_available is None else str(spec.min_available),
        "N/A" if spec.max_unavailable is None else str(spec.max_unavailable),
        (budget.status.disruptions_allowed if budget.status else None) or 0,
        age(budget, now),
    ]


PRINTERS: Final[dict[str, Printer]] = {
    "PodDisruptionBudget": Printer(
        (
            NAME,
            text("Min Available", "Pods that must stay"),
            text("Max Unavailable", "Pods that may be missing"),
            integer("Allowed Disruptions", "Pods that may go now"),
            AGE,
        ),
        _budget,
    ),
}
