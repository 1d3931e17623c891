"""HorizontalPodAutoscalers, with each metric's current and target value, and Scale."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from pybernetes.api.autoscaling.v2 import (
    ContainerResourceMetricSource,
    ContainerResourceMetricStatus,
    CrossVersionObjectReference,
    ExternalMetricSource,
    ExternalMetricStatus,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ObjectMetricSource,
    ObjectMetricStatus,
    PodsMetricSource,
    PodsMetricStatus,
    ResourceMetricSource,
    ResourceMetricStatus,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.types import Quantity

from . import duration, formats
from .duration import UNKNOWN
from .printer import AGE, NAME, NONE, UNSET, Cells, Column, Printer, age, integer, name, text

_METRICS_SHOWN: Final = 2

_Source: TypeAlias = (
    ExternalMetricSource
    | ObjectMetricSource
    | PodsMetricSource
    | ResourceMetricSource
    | ContainerResourceMetricSource
    | None
)
_Status: TypeAlias = (
    ExternalMetricStatus
    | ObjectMetricStatus
    | PodsMetricStatus
    | ResourceMetricStatus
    | ContainerResourceMetricStatus
    | None
)


def _autoscaler(autoscaler: HorizontalPodAutoscaler, now: float) -> Cells:
    spec = autoscaler.spec or HorizontalPodAutoscalerSpec()
    status = autoscaler.status or HorizontalPodAutoscalerStatus()
    target = spec.scale_target_ref or CrossVersionObjectReference()
    return [
        name(autoscaler),
        f"{target.kind or ''}/{target.name or ''}",
        _targets(spec.metrics or [], status.current_metrics or []),
        UNSET if spec.min_replicas is None else str(spec.min_replicas),
        spec.max_replicas or 0,
        status.current_replicas or 0,
        age(autoscaler, now),
    ]


def _targets(specs: list[MetricSpec], statuses: list[MetricStatus]) -> str:
    """Statuses come in the order of the metrics they belong to."""
    if not specs:
        return NONE
    padded = [*statuses, *[MetricStatus()] * len(specs)]
    shown = [_target(spec, status) for spec, status in zip(specs, padded, strict=False)]
    return formats.cut(shown, len(shown), _METRICS_SHOWN, separator=", ")


def _target(spec: MetricSpec, status: MetricStatus) -> str:
    match spec.type:
        case "External":
            return _value(spec.external, status.external)
        case "Object":
            return _value(spec.object, status.object)
        case "Pods":
            return f"{_average(status.pods)}/{_amount(_wanted(spec.pods).average_value)}"
        case "Resource":
            return _usage(spec.resource, status.resource)
        case "ContainerResource":
            return _usage(spec.container_resource, status.container_resource)
    return "<unknown type>"


def _value(source: ExternalMetricSource | ObjectMetricSource | None, status: _Status) -> str:
    """A value, of the whole or for each pod."""
    target, current = _wanted(source), _current(status)
    if target.average_value is not None:
        average = UNKNOWN if current is None or current.average_value is None else _amount(current.average_value)
        return f"{average}/{_amount(target.average_value)} (avg)"
    return f"{UNKNOWN if current is None else _amount(current.value)}/{_amount(target.value)}"


def _usage(source: ResourceMetricSource | ContainerResourceMetricSource | None, status: _Status) -> str:
    """The usage of a resource, as a value for each pod or in percent of what the pods requested."""
    target, current = _wanted(source), _current(status)
    resource = (source.name if source is not None else None) or ""
    if target.average_value is not None:
        return f"{resource}: {_average(status)}/{_amount(target.average_value)}"
    used = None if current is None else current.average_utilization
    wanted = target.average_utilization
    return f"{resource}: {UNKNOWN if used is None else f'{used}%'}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _average(status: _Status) -> str:
    current = _current(status)
    return UNKNOWN if current is None else _amount(current.average_value)


def _wanted(source: _Source) -> MetricTarget:
    return (source.target if source is not None else None) or MetricTarget()


def _current(status: _Status) -> MetricValueStatus | None:
    """None if nothing was measured."""
    return None if status is None else status.current or MetricValueStatus()


def _amount(value: Quantity | None) -> str:
    return "<nil>" if value is None else formats.amount(value)


class _Replicas(msgspec.Struct, gc=False):
    replicas: int = 0


class _Scale(msgspec.Struct, gc=False):
    metadata: ObjectMeta | None = None
    spec: _Replicas | None = None
    status: _Replicas | None = None


def _scale(scale: _Scale, now: float) -> Cells:
    metadata = scale.metadata or ObjectMeta()
    return [
        metadata.name or "",
        scale.spec.replicas if scale.spec else 0,
        scale.status.replicas if scale.status else 0,
        duration.since(metadata.creation_timestamp, now),
    ]


PRINTERS: Final[dict[str, Printer]] = {
    "HorizontalPodAutoscaler": Printer(
        (
            NAME,
            text("Reference", "What is scaled"),
            text("Targets", "Current and wanted value of each metric"),
            text("MinPods", "Fewest pods"),
            text("MaxPods", "Most pods"),
            text("Replicas", "Pods that there are"),
            AGE,
        ),
        _autoscaler,
    ),
    "Scale": Printer(
        (
            Column("Name", description="Name of what is scaled"),
            integer("Desired", "Pods that are asked for"),
            integer("Available", "Pods that there are"),
            AGE,
        ),
        _scale,
        shape=_Scale,
    ),
}
