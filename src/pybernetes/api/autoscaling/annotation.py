"""Stores fields that autoscaling/v1 lacks in annotations, so that a client of v1 loses nothing of a v2 object.

The shapes in the annotations are those of the first alpha: older than v2, but an interface all the same, since
clients of v1 read and write them. Fields that are always written have no default here.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ..meta.v1.labelselector import LabelSelector

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
ROUND_TRIP = (
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
)

Quantity = str | int | float
T = TypeVar("T")


class Shape(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """Unknown fields are ignored, as in any annotation that other clients may have written."""


class Reference(Shape):
    kind: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    api_version: str | None = None


class ObjectSource(Shape):
    target: Reference = msgspec.field(default_factory=Reference)
    metric_name: str | UnsetType = UNSET
    target_value: Quantity | UnsetType = UNSET
    selector: LabelSelector | None = None
    average_value: Quantity | None = None


class PodsSource(Shape):
    metric_name: str | UnsetType = UNSET
    target_average_value: Quantity | UnsetType = UNSET
    selector: LabelSelector | None = None


class ResourceSource(Shape):
    name: str | UnsetType = UNSET
    target_average_utilization: int | None = None
    target_average_value: Quantity | None = None
    container: str | UnsetType = UNSET


class ExternalSource(Shape):
    metric_name: str | UnsetType = UNSET
    metric_selector: LabelSelector | None = None
    target_value: Quantity | None = None
    target_average_value: Quantity | None = None


class Metric(Shape):
    type: str | UnsetType = UNSET
    object: ObjectSource | None = None
    pods: PodsSource | None = None
    resource: ResourceSource | None = None
    container_resource: ResourceSource | None = None
    external: ExternalSource | None = None


class ObjectStatus(Shape):
    target: Reference = msgspec.field(default_factory=Reference)
    metric_name: str | UnsetType = UNSET
    current_value: Quantity | UnsetType = UNSET
    selector: LabelSelector | None = None
    average_value: Quantity | None = None


class PodsStatus(Shape):
    metric_name: str | UnsetType = UNSET
    current_average_value: Quantity | UnsetType = UNSET
    selector: LabelSelector | None = None


class ResourceStatus(Shape):
    name: str | UnsetType = UNSET
    current_average_utilization: int | None = None
    current_average_value: Quantity | UnsetType = UNSET
    container: str | UnsetType = UNSET


class ExternalStatus(Shape):
    metric_name: str | UnsetType = UNSET
    metric_selector: LabelSelector | None = None
    current_value: Quantity | UnsetType = UNSET
    current_average_value: Quantity | None = None


class CurrentMetric(Shape):
    type: str | UnsetType = UNSET
    object: ObjectStatus | None = None
    pods: PodsStatus | None = None
    resource: ResourceStatus | None = None
    container_resource: ResourceStatus | None = None
    external: ExternalStatus | None = None


class Condition(Shape):
    type: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    last_transition_time: str | UnsetType | None = UNSET
    reason: str | None = None
    message: str | None = None


class Policy(msgspec.Struct, rename="pascal"):
    type: str = ""
    value: int = 0
    period_seconds: int = 0


class Rules(msgspec.Struct, rename="pascal"):
    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: list[Policy] | None = None
    tolerance: Quantity | None = None


class Behavior(msgspec.Struct, rename="pascal"):
    """Alone in having capital letters and nulls: upstream writes an internal type here, and cannot go back."""

    scale_up: Rules | None = None
    scale_down: Rules | None = None


def encode(value: object) -> str:
    """The value of an annotation."""
    return msgspec.json.encode(value).decode()


def decode(text: str, type_: type[T]) -> T | None:
    """Decode an annotation; None if it is malformed."""
    try:
        return msgspec.json.decode(text, type=type_)
    except msgspec.MsgspecError:
        return None


def decode_behavior(text: str) -> Behavior | None:
    """Like `decode`; the first letters may be of either case."""
    try:
        return msgspec.convert(_capitalized(msgspec.json.decode(text)), Behavior)
    except msgspec.MsgspecError:
        return None


def _capitalized(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[:1].upper() + key[1:]: _capitalized(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_capitalized(each) for each in value]
    return value
