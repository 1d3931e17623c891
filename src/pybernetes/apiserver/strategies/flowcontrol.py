"""How FlowSchemas and PriorityLevelConfigurations are created and updated: every new spec is a new generation."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.equality import semantically_equal
from pybernetes.api.flowcontrol.v1 import FlowSchemaStatus, PriorityLevelConfigurationStatus
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .metadata import keep_metadata


class FlowControlStrategy(Strategy):
    """Shared by both kinds."""

    has_generation = True

    def changed(self, new: Any, old: Any) -> bool:
        return not semantically_equal(new.spec, old.spec)

    def prepare_for_status_update(self, new: Any, old: Any, context: Context) -> None:
        new.spec = old.spec
        keep_metadata(new, old)
        new.metadata.deletion_grace_period_seconds = old.metadata.deletion_grace_period_seconds


class FlowSchemaStrategy(FlowControlStrategy):
    """FlowSchemas."""

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        super().prepare_for_create(obj, context)
        obj.status = FlowSchemaStatus()


class PriorityLevelConfigurationStrategy(FlowControlStrategy):
    """PriorityLevelConfigurations."""

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        super().prepare_for_create(obj, context)
        obj.status = PriorityLevelConfigurationStatus()


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "flowschemas": FlowSchemaStrategy,
    "prioritylevelconfigurations": PriorityLevelConfigurationStrategy,
}
