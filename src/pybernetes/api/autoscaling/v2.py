"""The kinds of autoscaling/v2.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..meta.v1.labelselector import LabelSelector
from ..types import Always, Int32, Int64, ListType, Patch, Pointer, Quantity, Required, Time


class HorizontalPodAutoscaler(Kind):
    """Sets the number of replicas by metrics."""

    spec: Annotated[HorizontalPodAutoscalerSpec | None, Required, Always({})] = None
    status: Annotated[HorizontalPodAutoscalerStatus | None, Always({})] = None


class HorizontalPodAutoscalerSpec(Struct):
    scale_target_ref: Annotated[CrossVersionObjectReference | None, Required, Always({})] = None
    min_replicas: Annotated[Int32 | None, Pointer] = None
    max_replicas: Annotated[Int32 | None, Required, Always(0)] = None
    metrics: Annotated[list[MetricSpec] | None, ListType("atomic")] = None
    behavior: HorizontalPodAutoscalerBehavior | None = None


class CrossVersionObjectReference(Struct):
    kind: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None
    api_version: str | None = None


class MetricSpec(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None


class ObjectMetricSource(Struct):
    described_object: Annotated[CrossVersionObjectReference | None, Required, Always({})] = None
    target: Annotated[MetricTarget | None, Required, Always({})] = None
    metric: Annotated[MetricIdentifier | None, Required, Always({})] = None


class MetricTarget(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Annotated[Int32 | None, Pointer] = None


class MetricIdentifier(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    selector: LabelSelector | None = None


class PodsMetricSource(Struct):
    metric: Annotated[MetricIdentifier | None, Required, Always({})] = None
    target: Annotated[MetricTarget | None, Required, Always({})] = None


class ResourceMetricSource(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    target: Annotated[MetricTarget | None, Required, Always({})] = None


class ContainerResourceMetricSource(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    target: Annotated[MetricTarget | None, Required, Always({})] = None
    container: Annotated[str | None, Required, Always("")] = None


class ExternalMetricSource(Struct):
    metric: Annotated[MetricIdentifier | None, Required, Always({})] = None
    target: Annotated[MetricTarget | None, Required, Always({})] = None


class HorizontalPodAutoscalerBehavior(Struct):
    scale_up: HPAScalingRules | None = None
    scale_down: HPAScalingRules | None = None


class HPAScalingRules(Struct):
    stabilization_window_seconds: Annotated[Int32 | None, Pointer] = None
    select_policy: Annotated[str | None, Pointer] = None
    policies: Annotated[list[HPAScalingPolicy] | None, ListType("atomic")] = None
    tolerance: Quantity | None = None


class HPAScalingPolicy(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    value: Annotated[Int32 | None, Required, Always(0)] = None
    period_seconds: Annotated[Int32 | None, Required, Always(0)] = None


class HorizontalPodAutoscalerStatus(Struct):
    observed_generation: Annotated[Int64 | None, Pointer] = None
    last_scale_time: Time | None = None
    current_replicas: Int32 | None = None
    desired_replicas: Annotated[Int32 | None, Required, Always(0)] = None
    current_metrics: Annotated[list[MetricStatus] | None, Always(None), ListType("atomic")] = None
    conditions: Annotated[
        list[HorizontalPodAutoscalerCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")
    ] = None


class MetricStatus(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None


class ObjectMetricStatus(Struct):
    metric: Annotated[MetricIdentifier | None, Required, Always({})] = None
    current: Annotated[MetricValueStatus | None, Required, Always({})] = None
    described_object: Annotated[CrossVersionObjectReference | None, Required, Always({})] = None


class MetricValueStatus(Struct):
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Annotated[Int32 | None, Pointer] = None


class PodsMetricStatus(Struct):
    metric: Annotated[MetricIdentifier | None, Required, Always({})] = None
    current: Annotated[MetricValueStatus | None, Required, Always({})] = None


class ResourceMetricStatus(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    current: Annotated[MetricValueStatus | None, Required, Always({})] = None


class ContainerResourceMetricStatus(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    current: Annotated[MetricValueStatus | None, Required, Always({})] = None
    container: Annotated[str | None, Required, Always("")] = None


class ExternalMetricStatus(Struct):
    metric: Annotated[MetricIdentifier | None, Required, Always({})] = None
    current: Annotated[MetricValueStatus | None, Required, Always({})] = None


class HorizontalPodAutoscalerCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None
