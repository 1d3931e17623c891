"""How HorizontalPodAutoscalers are created and updated: as most kinds, but a fresh status is not empty."""

from __future__ import annotations

from typing import Final

from pybernetes.api.autoscaling.v2 import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus
from pybernetes.apiserver.registry.strategy import Context, Strategy


class HorizontalPodAutoscalerStrategy(Strategy):
    """HorizontalPodAutoscalers."""

    def prepare_for_create(self, obj: HorizontalPodAutoscaler, context: Context) -> None:
        super().prepare_for_create(obj, context)
        obj.status = HorizontalPodAutoscalerStatus(desired_replicas=0)


STRATEGIES: Final[dict[str, type[Strategy]]] = {"horizontalpodautoscalers": HorizontalPodAutoscalerStrategy}
