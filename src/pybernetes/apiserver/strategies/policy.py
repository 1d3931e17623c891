"""How PodDisruptionBudgets are created and updated. An update must say which version it is for."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.equality import semantically_equal
from pybernetes.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetStatus
from pybernetes.apiserver.registry.strategy import Context, Strategy


class PodDisruptionBudgetStrategy(Strategy):
    """PodDisruptionBudgets."""

    has_generation = True
    allow_unconditional_update = False
    covers_metadata = False

    def prepare_for_create(self, obj: PodDisruptionBudget, context: Context) -> None:
        super().prepare_for_create(obj, context)
        obj.status = PodDisruptionBudgetStatus(
            disruptions_allowed=0, current_healthy=0, desired_healthy=0, expected_pods=0
        )

    def changed(self, new: Any, old: Any) -> bool:
        return not semantically_equal(new.spec, old.spec)


STRATEGIES: Final[dict[str, type[Strategy]]] = {"poddisruptionbudgets": PodDisruptionBudgetStrategy}
