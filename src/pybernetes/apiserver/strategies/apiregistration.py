"""How APIServices are created and updated. One without a Service is served here, and so is available at once."""

from __future__ import annotations

from typing import Final

from pybernetes.api.apiregistration.v1 import APIService, APIServiceCondition, APIServiceStatus
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .metadata import keep_metadata


class APIServiceStrategy(Strategy):
    """APIServices."""

    allow_unconditional_update = False

    def prepare_for_create(self, obj: APIService, context: Context) -> None:
        obj.status = APIServiceStatus()
        if obj.spec is None or obj.spec.service is None:
            obj.status.conditions = [
                APIServiceCondition(
                    type="Available",
                    status="True",
                    last_transition_time=context.now,
                    reason="Local",
                    message="Local APIServices are always available",
                )
            ]

    def prepare_for_status_update(self, new: APIService, old: APIService, context: Context) -> None:
        new.spec = old.spec
        keep_metadata(new, old, deletion=False)


STRATEGIES: Final[dict[str, type[Strategy]]] = {"apiservices": APIServiceStrategy}
