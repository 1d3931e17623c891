"""HorizontalPodAutoscaler between autoscaling/v1 and v2, which is stored.

v1 knows one metric, the utilization of CPU. All others, the current metrics, the conditions and the behavior go into
annotations of the v1 object (`annotation.py`) and come back from there; a v2 object never shows these annotation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from ..meta.v1.objectmeta import ObjectMeta
from ..quantity import QuantityError
from . import annotation, v1, v2
from .metrics import (
    given,
    metric_from_annotation,
    metric_to_annotation,
    status_from_annotation,
    status_to_annotation,
    text,
)

Shape = TypeVar("Shape")
T = TypeVar("T")

# What v1's controller did when no target was given, made explicit.
DEFAULT_CPU_UTILIZATION = 80


def v2_to_v1(hpa: v2.HorizontalPodAutoscaler) -> v1.HorizontalPodAutoscaler:
    """The object for a client of v1, with the rest in annotation."""
    spec, status = hpa.spec, hpa.status
    kept: dict[str, str] = {}
    others = [metric_to_annotation(each) for each in (spec and spec.metrics) or () if _cpu_utilization_of(each) is None]
    if others:
        kept[annotation.METRICS] = annotation.encode(others)
    if status and status.current_metrics:
        kept[annotation.CURRENT_METRICS] = annotation.encode(
            [status_to_annotation(each) for each in status.current_metrics]
        )
    if spec and spec.behavior is not None:
        kept[annotation.BEHAVIOR] = annotation.encode(_behavior(spec.behavior))
    if status and status.conditions:
        kept[annotation.CONDITIONS] = annotation.encode([_condition(each) for each in status.conditions])
    return v1.HorizontalPodAutoscaler(
        kind=hpa.kind,
        api_version="autoscaling/v1" if hpa.api_version else None,
        metadata=_with_annotations(hpa.metadata, kept),
        spec=None if spec is None else _spec_to_v1(spec),
        status=None if status is None else _status_to_v1(status),
    )


def v1_to_v2(hpa: v1.HorizontalPodAutoscaler) -> v2.HorizontalPodAutoscaler:
    """The object as it is stored, with what the annotations kept; annotations that make no sense are dropped."""
    kept = (hpa.metadata and hpa.metadata.annotations) or {}
    spec = _spec_to_v2(hpa.spec or v1.HorizontalPodAutoscalerSpec(), kept)
    return v2.HorizontalPodAutoscaler(
        kind=hpa.kind,
        api_version="autoscaling/v2" if hpa.api_version else None,
        metadata=_with_annotations(hpa.metadata, {}),
        spec=spec,
        status=_status_to_v2(hpa.status, kept),
    )


def _with_annotations(metadata: ObjectMeta | None, added: dict[str, str]) -> ObjectMeta | None:
    """The metadata with these annotations for the round trip, and no others."""
    before = (metadata and metadata.annotations) or {}
    if not added and not any(name in before for name in annotation.ROUND_TRIP):
        return metadata
    wanted = {name: value for name, value in before.items() if name not in annotation.ROUND_TRIP} | added
    return msgspec.structs.replace(metadata or ObjectMeta(), annotations=wanted or None)


def _cpu_utilization_of(metric: v2.MetricSpec) -> int | None:
    """The one target that v1 has a field for."""
    if metric.type != "Resource" or metric.resource is None or metric.resource.name != "cpu":
        return None
    target = metric.resource.target
    return None if target is None else target.average_utilization


def _spec_to_v1(spec: v2.HorizontalPodAutoscalerSpec) -> v1.HorizontalPodAutoscalerSpec:
    cpu = next((each for each in map(_cpu_utilization_of, spec.metrics or ()) if each is not None), None)
    ref = spec.scale_target_ref
    return v1.HorizontalPodAutoscalerSpec(
        scale_target_ref=None
        if ref is None
        else msgspec.convert(ref, v1.CrossVersionObjectReference, from_attributes=True),
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
        target_cpu_utilization_percentage=cpu,
    )


def _status_to_v1(status: v2.HorizontalPodAutoscalerStatus) -> v1.HorizontalPodAutoscalerStatus:
    utilization = None
    for metric in status.current_metrics or ():
        resource = metric.resource
        if metric.type == "Resource" and resource and resource.name == "cpu" and resource.current:
            found = resource.current.average_utilization
            utilization = utilization if found is None else found
    return v1.HorizontalPodAutoscalerStatus(
        observed_generation=status.observed_generation,
        last_scale_time=status.last_scale_time,
        # v1 always writes this field, v2 leaves a zero out.
        current_replicas=status.current_replicas or 0,
        desired_replicas=status.desired_replicas,
        current_cpu_utilization_percentage=utilization,
    )


def _condition(condition: v2.HorizontalPodAutoscalerCondition) -> annotation.Condition:
    return annotation.Condition(
        type=condition.type or "",
        status=condition.status or "",
        last_transition_time=condition.last_transition_time,
        reason=condition.reason or None,
        message=condition.message or None,
    )


def _behavior(behavior: v2.HorizontalPodAutoscalerBehavior) -> annotation.Behavior:
    def rules(side: v2.HPAScalingRules | None) -> annotation.Rules | None:
        if side is None:
            return None
        return annotation.Rules(
            stabilization_window_seconds=side.stabilization_window_seconds,
            select_policy=side.select_policy,
            policies=None
            if side.policies is None
            else [
                annotation.Policy(each.type or "", each.value or 0, each.period_seconds or 0) for each in side.policies
            ],
            tolerance=text(side.tolerance),
        )

    return annotation.Behavior(rules(behavior.scale_up), rules(behavior.scale_down))


def _cpu_utilization(percentage: int) -> v2.MetricSpec:
    target = v2.MetricTarget(type="Utilization", average_utilization=percentage)
    return v2.MetricSpec(type="Resource", resource=v2.ResourceMetricSource(name="cpu", target=target))


def _spec_to_v2(spec: v1.HorizontalPodAutoscalerSpec, kept: dict[str, str]) -> v2.HorizontalPodAutoscalerSpec:
    metrics = _kept(kept, annotation.METRICS, annotation.Metric, metric_from_annotation) or []
    ref = spec.scale_target_ref
    if spec.target_cpu_utilization_percentage is not None:
        metrics.append(_cpu_utilization(spec.target_cpu_utilization_percentage))
    return v2.HorizontalPodAutoscalerSpec(
        scale_target_ref=None
        if ref is None
        else msgspec.convert(ref, v2.CrossVersionObjectReference, from_attributes=True),
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
        metrics=metrics or [_cpu_utilization(DEFAULT_CPU_UTILIZATION)],
        behavior=_behavior_to_v2(kept.get(annotation.BEHAVIOR, "")),
    )


def _status_to_v2(
    status: v1.HorizontalPodAutoscalerStatus | None, kept: dict[str, str]
) -> v2.HorizontalPodAutoscalerStatus | None:
    metrics = _kept(kept, annotation.CURRENT_METRICS, annotation.CurrentMetric, status_from_annotation)
    conditions = _kept(kept, annotation.CONDITIONS, annotation.Condition, _condition_to_v2)
    if status is None and metrics is None and conditions is None:
        return None
    status = status or v1.HorizontalPodAutoscalerStatus()
    if metrics is None and status.current_cpu_utilization_percentage is not None:
        value = v2.MetricValueStatus(average_utilization=status.current_cpu_utilization_percentage)
        metrics = [v2.MetricStatus(type="Resource", resource=v2.ResourceMetricStatus(name="cpu", current=value))]
    return v2.HorizontalPodAutoscalerStatus(
        observed_generation=status.observed_generation,
        last_scale_time=status.last_scale_time,
        current_replicas=status.current_replicas or None,
        desired_replicas=status.desired_replicas,
        current_metrics=metrics,
        conditions=conditions,
    )


def _condition_to_v2(condition: annotation.Condition) -> v2.HorizontalPodAutoscalerCondition:
    return v2.HorizontalPodAutoscalerCondition(
        type=given(condition.type, ""),
        status=given(condition.status, ""),
        last_transition_time=given(condition.last_transition_time, None),
        reason=condition.reason,
        message=condition.message,
    )


def _behavior_to_v2(kept: str) -> v2.HorizontalPodAutoscalerBehavior | None:
    def rules(side: annotation.Rules | None) -> v2.HPAScalingRules | None:
        if side is None:
            return None
        return v2.HPAScalingRules(
            stabilization_window_seconds=side.stabilization_window_seconds,
            select_policy=side.select_policy,
            policies=None
            if side.policies is None
            else [
                v2.HPAScalingPolicy(type=each.type, value=each.value, period_seconds=each.period_seconds)
                for each in side.policies
            ],
            tolerance=text(side.tolerance),
        )

    behavior = annotation.decode_behavior(kept)
    if behavior is None or (behavior.scale_up is None and behavior.scale_down is None):
        return None
    try:
        return v2.HorizontalPodAutoscalerBehavior(
            scale_up=rules(behavior.scale_up), scale_down=rules(behavior.scale_down)
        )
    except QuantityError:
        return None


def _kept(kept: dict[str, str], name: str, shape: type[Shape], convert: Callable[[Shape], T]) -> list[T] | None:
    """The list in an annotation, or None if it is missing or not what it should be."""
    try:
        found: list[Shape] | None = annotation.decode(kept.get(name, ""), list[shape])  # type: ignore[valid-type]
        return None if found is None else [convert(each) for each in found]
    except QuantityError:
        return None
