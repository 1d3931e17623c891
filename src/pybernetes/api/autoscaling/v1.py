"""The kinds of autoscaling/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ..base import Kind, Struct
from ..types import Always, Default, Int32, Int64, MapType, Pointer, Required, Time


class HorizontalPodAutoscaler(Kind):
    """Sets the number of replicas by the load of the CPU."""

    spec: Annotated[HorizontalPodAutoscalerSpec | None, Required, Always({})] = None
    status: Annotated[HorizontalPodAutoscalerStatus | None, Always({})] = None


class HorizontalPodAutoscalerSpec(Struct):
    scale_target_ref: Annotated[CrossVersionObjectReference | None, Required, Always({})] = None
    min_replicas: Annotated[Int32 | None, Pointer] = None
    max_replicas: Annotated[Int32 | None, Required, Always(0)] = None
    target_cpu_utilization_percentage: Annotated[Int32 | None, Pointer] = field(
        default=None, name="targetCPUUtilizationPercentage"
    )


class CrossVersionObjectReference(Struct):
    map_type: ClassVar = MapType("atomic")

    kind: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None
    api_version: str | None = None


class HorizontalPodAutoscalerStatus(Struct):
    observed_generation: Annotated[Int64 | None, Pointer] = None
    last_scale_time: Time | None = None
    current_replicas: Annotated[Int32 | None, Required, Always(0)] = None
    desired_replicas: Annotated[Int32 | None, Required, Always(0)] = None
    current_cpu_utilization_percentage: Annotated[Int32 | None, Pointer] = field(
        default=None, name="currentCPUUtilizationPercentage"
    )


class Scale(Kind):
    """The number of replicas of anything that can be scaled."""

    spec: Annotated[ScaleSpec | None, Always({})] = None
    status: Annotated[ScaleStatus | None, Always({})] = None


class ScaleSpec(Struct):
    replicas: Annotated[Int32 | None, Default(0)] = None


class ScaleStatus(Struct):
    replicas: Annotated[Int32 | None, Required, Always(0)] = None
    selector: str | None = None
