"""Metrics of a HorizontalPodAutoscaler in the shapes of v2 and of v1's annotation.

In v2 a metric has a target with a type; in the annotations the type shows in which of the fields is given. Zero stands
there for a quantity that is missing but cannot be left out.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import UNSET, UnsetType

from ..quantity import canonicalize, parse
from . import annotation, v2

T = TypeVar("T")


def metric_to_annotation(metric: v2.MetricSpec) -> annotation.Metric:
    result = annotation.Metric(type=metric.type or "")
    if metric.object is not None:
        target, identifier = metric.object.target or v2.MetricTarget(), metric.object.metric or v2.MetricIdentifier()
        result.object = annotation.ObjectSource(
            target=_reference(metric.object.described_object),
            metric_name=identifier.name or "",
            target_value=or_zero(target.value),
            selector=identifier.selector,
            average_value=text(target.average_value),
        )
    if metric.pods is not None:
        target, identifier = metric.pods.target or v2.MetricTarget(), metric.pods.metric or v2.MetricIdentifier()
        result.pods = annotation.PodsSource(
            metric_name=identifier.name or "",
            target_average_value=or_zero(target.average_value),
            selector=identifier.selector,
        )
    if metric.resource is not None:
        result.resource = _resource_source(metric.resource)
    if metric.container_resource is not None:
        result.container_resource = _resource_source(metric.container_resource)
        result.container_resource.container = metric.container_resource.container or ""
    if metric.external is not None:
        target, identifier = (
            metric.external.target or v2.MetricTarget(),
            metric.external.metric or v2.MetricIdentifier(),
        )
        result.external = annotation.ExternalSource(
            metric_name=identifier.name or "",
            metric_selector=identifier.selector,
            target_value=text(target.value),
            target_average_value=text(target.average_value),
        )
    return result


def _resource_source(
    source: v2.ResourceMetricSource | v2.ContainerResourceMetricSource,
) -> annotation.ResourceSource:
    target = source.target or v2.MetricTarget()
    return annotation.ResourceSource(
        name=source.name or "",
        target_average_utilization=target.average_utilization,
        target_average_value=text(target.average_value),
    )


def status_to_annotation(metric: v2.MetricStatus) -> annotation.CurrentMetric:
    result = annotation.CurrentMetric(type=metric.type or "")
    if metric.object is not None:
        current = metric.object.current or v2.MetricValueStatus()
        identifier = metric.object.metric or v2.MetricIdentifier()
        result.object = annotation.ObjectStatus(
            target=_reference(metric.object.described_object),
            metric_name=identifier.name or "",
            current_value=or_zero(current.value),
            selector=identifier.selector,
            average_value=text(current.average_value),
        )
    if metric.pods is not None:
        current, identifier = metric.pods.current or v2.MetricValueStatus(), metric.pods.metric or v2.MetricIdentifier()
        result.pods = annotation.PodsStatus(
            metric_name=identifier.name or "",
            current_average_value=or_zero(current.average_value),
            selector=identifier.selector,
        )
    if metric.resource is not None:
        result.resource = _resource_status(metric.resource)
    if metric.container_resource is not None:
        result.container_resource = _resource_status(metric.container_resource)
        result.container_resource.container = metric.container_resource.container or ""
    if metric.external is not None:
        current = metric.external.current or v2.MetricValueStatus()
        identifier = metric.external.metric or v2.MetricIdentifier()
        result.external = annotation.ExternalStatus(
            metric_name=identifier.name or "",
            metric_selector=identifier.selector,
            current_value=or_zero(current.value),
            current_average_value=text(current.average_value),
        )
    return result


def _resource_status(
    status: v2.ResourceMetricStatus | v2.ContainerResourceMetricStatus,
) -> annotation.ResourceStatus:
    current = status.current or v2.MetricValueStatus()
    return annotation.ResourceStatus(
        name=status.name or "",
        current_average_utilization=current.average_utilization,
        current_average_value=or_zero(current.average_value),
    )


def _reference(reference: v2.CrossVersionObjectReference | None) -> annotation.Reference:
    if reference is None:
        return annotation.Reference(kind="", name="")
    return annotation.Reference(
        kind=reference.kind or "", name=reference.name or "", api_version=reference.api_version or None
    )


def metric_from_annotation(metric: annotation.Metric) -> v2.MetricSpec:
    result = v2.MetricSpec(type=given(metric.type, ""))
    if source := metric.object:
        value = canonicalize(given(source.target_value, "0"))
        # v1 cannot leave the value out; beside an average, zero means that there is none.
        missing = source.average_value is not None and parse(value).is_zero()
        result.object = v2.ObjectMetricSource(
            described_object=_reference_to_v2(source.target),
            target=v2.MetricTarget(
                type="Value" if source.average_value is None else "AverageValue",
                value=None if missing else value,
                average_value=text(source.average_value),
            ),
            metric=v2.MetricIdentifier(name=given(source.metric_name, ""), selector=source.selector),
        )
    if pods := metric.pods:
        average = text(given(pods.target_average_value, "0"))
        result.pods = v2.PodsMetricSource(
            metric=v2.MetricIdentifier(name=given(pods.metric_name, ""), selector=pods.selector),
            target=v2.MetricTarget(type="AverageValue", average_value=average),
        )
    if resource := metric.resource:
        result.resource = v2.ResourceMetricSource(name=given(resource.name, ""), target=_resource_target(resource))
    if container := metric.container_resource:
        result.container_resource = v2.ContainerResourceMetricSource(
            name=given(container.name, ""),
            container=given(container.container, ""),
            target=_resource_target(container),
        )
    if external := metric.external:
        result.external = v2.ExternalMetricSource(
            metric=v2.MetricIdentifier(name=given(external.metric_name, ""), selector=external.metric_selector),
            target=v2.MetricTarget(
                type="AverageValue" if external.target_value is None else "Value",
                value=text(external.target_value),
                average_value=text(external.target_average_value),
            ),
        )
    return result


def _resource_target(source: annotation.ResourceSource) -> v2.MetricTarget:
    return v2.MetricTarget(
        type="AverageValue" if source.target_average_utilization is None else "Utilization",
        average_value=text(source.target_average_value),
        average_utilization=source.target_average_utilization,
    )


def status_from_annotation(metric: annotation.CurrentMetric) -> v2.MetricStatus:
    result = v2.MetricStatus(type=given(metric.type, ""))
    if status := metric.object:
        result.object = v2.ObjectMetricStatus(
            metric=v2.MetricIdentifier(name=given(status.metric_name, ""), selector=status.selector),
            current=v2.MetricValueStatus(
                value=text(given(status.current_value, "0")), average_value=text(status.average_value)
            ),
            described_object=_reference_to_v2(status.target),
        )
    if pods := metric.pods:
        result.pods = v2.PodsMetricStatus(
            metric=v2.MetricIdentifier(name=given(pods.metric_name, ""), selector=pods.selector),
            current=v2.MetricValueStatus(average_value=text(given(pods.current_average_value, "0"))),
        )
    if resource := metric.resource:
        result.resource = v2.ResourceMetricStatus(name=given(resource.name, ""), current=_resource_current(resource))
    if container := metric.container_resource:
        result.container_resource = v2.ContainerResourceMetricStatus(
            name=given(container.name, ""),
            container=given(container.container, ""),
            current=_resource_current(container),
        )
    if external := metric.external:
        result.external = v2.ExternalMetricStatus(
            metric=v2.MetricIdentifier(name=given(external.metric_name, ""), selector=external.metric_selector),
            current=v2.MetricValueStatus(
                value=text(given(external.current_value, "0")), average_value=text(external.current_average_value)
            ),
        )
    return result


def _resource_current(status: annotation.ResourceStatus) -> v2.MetricValueStatus:
    return v2.MetricValueStatus(
        average_value=text(given(status.current_average_value, "0")),
        average_utilization=status.current_average_utilization,
    )


def _reference_to_v2(reference: annotation.Reference) -> v2.CrossVersionObjectReference:
    return v2.CrossVersionObjectReference(
        kind=given(reference.kind, ""), name=given(reference.name, ""), api_version=reference.api_version
    )


def text(value: object) -> str | None:
    """A quantity as upstream writes it."""
    return None if value is None else canonicalize(value)


def or_zero(value: object) -> str:
    return canonicalize("0" if value is None else value)


def given(value: T | UnsetType, otherwise: T) -> T:
    return otherwise if value is UNSET else value
