"""Defaults for a HorizontalPodAutoscaler, in the version that is stored (v2).

The rules for scaling are completed as soon as a client says anything about them: four pods or twice as many every 15
seconds up, all at once down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .v2 import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)

CPU_UTILIZATION: Final = 80
PERIOD_SECONDS: Final = 15


def default_horizontal_pod_autoscaler(autoscaler: HorizontalPodAutoscaler) -> None:
    """At least one replica, at 80 % of the requested CPU."""
    spec = autoscaler.spec
    if spec is None:
        spec = autoscaler.spec = HorizontalPodAutoscalerSpec()
    if spec.min_replicas is None:
        spec.min_replicas = 1
    if not spec.metrics:
        target = MetricTarget(type="Utilization", average_utilization=CPU_UTILIZATION)
        spec.metrics = [MetricSpec(type="Resource", resource=ResourceMetricSource(name="cpu", target=target))]
    if spec.behavior is not None:
        spec.behavior.scale_up = _completed(
            spec.behavior.scale_up,
            HPAScalingRules(
                stabilization_window_seconds=0,
                select_policy="Max",
                policies=[
                    HPAScalingPolicy(type="Pods", value=4, period_seconds=PERIOD_SECONDS),
                    HPAScalingPolicy(type="Percent", value=100, period_seconds=PERIOD_SECONDS),
                ],
            ),
        )
        # How long to wait before scaling down is an option of the controller, and so stays open here.
        spec.behavior.scale_down = _completed(
            spec.behavior.scale_down,
            HPAScalingRules(
                select_policy="Max",
                policies=[HPAScalingPolicy(type="Percent", value=100, period_seconds=PERIOD_SECONDS)],
            ),
        )


def _completed(rules: HPAScalingRules | None, otherwise: HPAScalingRules) -> HPAScalingRules:
    if rules is None:
        return otherwise
    for name in rules.__struct_fields__:
        if getattr(rules, name) is None:
            setattr(rules, name, getattr(otherwise, name))
    return rules


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"HorizontalPodAutoscaler": default_horizontal_pod_autoscaler}
