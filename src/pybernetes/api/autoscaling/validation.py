"""Validation of a HorizontalPodAutoscaler (v2, as it is stored) or a Scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .. import names
from ..field import FieldError, Path, forbidden, invalid, not_supported, required
from ..meta.validation import validate_not_negative, validate_object_meta, validate_object_meta_update
from ..quantity import parse
from .v1 import Scale
from .v2 import (
    ContainerResourceMetricSource,
    CrossVersionObjectReference,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)

MAX_PERIOD_SECONDS: Final = 1800
MAX_STABILIZATION_WINDOW_SECONDS: Final = 3600

_SPEC = Path("spec")
_POLICIES = ("Percent", "Pods")
_SELECTIONS = ("Disabled", "Max", "Min")
_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SOURCES = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}


def validate_scale(scale: Scale) -> list[FieldError]:
    """The Scale of anything that has one."""
    errors = validate_object_meta(scale.metadata, True, names.name_is_dns_subdomain)
    return errors + validate_not_negative(scale.spec.replicas if scale.spec else None, _SPEC.child("replicas"))


def validate_horizontal_pod_autoscaler(autoscaler: HorizontalPodAutoscaler) -> list[FieldError]:
    """A new autoscaler."""
    errors = validate_object_meta(autoscaler.metadata, True, names.name_is_dns_subdomain)
    return errors + _validate_spec(autoscaler.spec or HorizontalPodAutoscalerSpec(), None)


def validate_horizontal_pod_autoscaler_update(
    new: HorizontalPodAutoscaler, old: HorizontalPodAutoscaler
) -> list[FieldError]:
    """A changed autoscaler; references that were accepted before rules were made stay accepted."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    spec, before = new.spec or HorizontalPodAutoscalerSpec(), old.spec or HorizontalPodAutoscalerSpec()
    return errors + _validate_spec(spec, before)


def validate_horizontal_pod_autoscaler_status_update(
    new: HorizontalPodAutoscaler, old: HorizontalPodAutoscaler
) -> list[FieldError]:
    """Numbers of replicas."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    status = new.status or HorizontalPodAutoscalerStatus()
    errors += validate_not_negative(status.current_replicas, Path("status", "currentReplicas"))
    return errors + validate_not_negative(status.desired_replicas, Path("status", "desiredReplicas"))


def _validate_spec(spec: HorizontalPodAutoscalerSpec, before: HorizontalPodAutoscalerSpec | None) -> list[FieldError]:
    errors: list[FieldError] = []
    least, most = spec.min_replicas, spec.max_replicas or 0
    # Zero is behind a feature gate that is off; who has it already keeps it.
    lowest = 0 if before is not None and before.min_replicas == 0 else 1
    if least is not None and least < lowest:
        errors.append(invalid(_SPEC.child("minReplicas"), least, f"must be greater than or equal to {lowest}"))
    if most == 0:
        errors.append(required(_SPEC.child("maxReplicas"), "must be set and greater than 0"))
    elif most < 0:
        errors.append(invalid(_SPEC.child("maxReplicas"), most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        errors.append(invalid(_SPEC.child("maxReplicas"), most, "must be greater than or equal to `minReplicas`"))
    errors += _validate_target(spec, before)
    errors += _validate_metrics(spec, before)
    if spec.behavior is not None:
        path = _SPEC.child("behavior")
        errors += _validate_rules(spec.behavior.scale_up, path.child("scaleUp"))
        errors += _validate_rules(spec.behavior.scale_down, path.child("scaleDown"))
    return errors


def _validate_target(spec: HorizontalPodAutoscalerSpec, before: HorizontalPodAutoscalerSpec | None) -> list[FieldError]:
    target = spec.scale_target_ref or CrossVersionObjectReference()
    old = before.scale_target_ref if before else None
    same = old is not None and (old.api_version or "", old.kind or "") == (target.api_version or "", target.kind or "")
    allow_empty = target.kind == "ReplicationController"  # the only one of the core group that scales
    return _validate_reference(target, _SPEC.child("scaleTargetRef"), allow_any=same, allow_empty=allow_empty)


def _validate_reference(
    reference: CrossVersionObjectReference, path: Path, *, allow_any: bool, allow_empty: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, value in (("kind", reference.kind), ("name", reference.name)):
        if not value:
            errors.append(required(path.child(name)))
        else:
            errors += [invalid(path.child(name), value, problem) for problem in names.is_path_segment_name(value)]
    problem = _version_problem(reference.api_version or "", allow_empty)
    if problem and not allow_any:
        errors.append(invalid(path.child("apiVersion"), reference.api_version or "", problem))
    return errors


def _version_problem(api_version: str, allow_empty: bool) -> str | None:
    if api_version.count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    if not allow_empty and not api_version.rpartition("/")[0]:
        return "apiVersion must specify API group"
    return None


def _validate_rules(rules: HPAScalingRules | None, path: Path) -> list[FieldError]:
    if rules is None:
        return []
    errors: list[FieldError] = []
    window, at = rules.stabilization_window_seconds, path.child("stabilizationWindowSeconds")
    if window is not None and window < 0:
        errors.append(invalid(at, window, "must be greater than or equal to zero"))
    if window is not None and window > MAX_STABILIZATION_WINDOW_SECONDS:
        errors.append(invalid(at, window, f"must be less than or equal to {MAX_STABILIZATION_WINDOW_SECONDS}"))
    if rules.select_policy is not None and rules.select_policy not in _SELECTIONS:
        errors.append(not_supported(path.child("selectPolicy"), rules.select_policy, _SELECTIONS))
    if not rules.policies:
        errors.append(required(path.child("policies"), "must specify at least one Policy"))
    for index, policy in enumerate(rules.policies or ()):
        errors += _validate_policy(policy, path.child("policies").index(index))
    if rules.tolerance is not None:
        tolerance = parse(str(rules.tolerance))
        if tolerance.mantissa < 0:
            detail = "must be greater than or equal to 0"
            errors.append(invalid(path.child("tolerance"), str(tolerance), detail))
    return errors


def _validate_policy(policy: HPAScalingPolicy, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if policy.type not in _POLICIES:
        errors.append(not_supported(path.child("type"), policy.type or "", _POLICIES))
    value, period = policy.value or 0, policy.period_seconds or 0
    if value <= 0:
        errors.append(invalid(path.child("value"), value, "must be greater than zero"))
    if period <= 0:
        errors.append(invalid(path.child("periodSeconds"), period, "must be greater than zero"))
    if period > MAX_PERIOD_SECONDS:
        detail = f"must be less than or equal to {MAX_PERIOD_SECONDS}"
        errors.append(invalid(path.child("periodSeconds"), period, detail))
    return errors


def _validate_metrics(
    spec: HorizontalPodAutoscalerSpec, before: HorizontalPodAutoscalerSpec | None
) -> list[FieldError]:
    path = _SPEC.child("metrics")
    allow_any = before is not None and any(map(_has_odd_reference, before.metrics or ()))
    errors: list[FieldError] = []
    for index, metric in enumerate(spec.metrics or ()):
        errors += _validate_metric(metric, path.index(index), allow_any)
    if spec.min_replicas == 0 and not any(each.type in ("Object", "External") for each in spec.metrics or ()):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden(path, detail))
    return errors


def _has_odd_reference(metric: MetricSpec) -> bool:
    described = metric.object.described_object if metric.type == "Object" and metric.object else None
    return described is not None and _version_problem(described.api_version or "", True) is not None


def _validate_metric(metric: MetricSpec, path: Path, allow_any: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = metric.type or ""
    if not kind:
        errors.append(required(path.child("type"), "must specify a metric source type"))
    if kind not in _TYPES:
        errors.append(not_supported(path.child("type"), kind, _TYPES))
    present = [name for name in _ORDER if getattr(metric, _ATTRIBUTES[name]) is not None]
    if present:
        # Only the first source is looked at; more than one is an error anyway.
        errors += _validate_source(metric, present[0], path.child(present[0]), allow_any)
    expected = _SOURCES.get(kind)
    if expected is None:
        errors.append(not_supported(path.child("type"), kind, _TYPES))
    elif expected not in present:
        errors.append(required(path.child(expected), "must populate information for the given metric source"))
    if len(present) != 1:
        for name in present:
            if name != expected:
                errors.append(forbidden(path.child(name), "must populate the given metric source only"))
    return errors


_ORDER = ("object", "external", "pods", "resource", "containerResource")
_ATTRIBUTES = {name: "container_resource" if name == "containerResource" else name for name in _ORDER}


def _validate_source(metric: MetricSpec, name: str, path: Path, allow_any: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    at = path.child("target")
    if name == "object" and metric.object is not None:
        described = metric.object.described_object or CrossVersionObjectReference()
        errors += _validate_reference(described, path.child("describedObject"), allow_any=allow_any, allow_empty=True)
        errors += _validate_identifier(metric.object.metric, path.child("metric"))
        target = metric.object.target or MetricTarget()
        errors += _validate_metric_target(target, at)
        if target.value is None and target.average_value is None:
            errors.append(required(at.child("averageValue"), "must set either a target value or averageValue"))
    elif name == "external" and metric.external is not None:
        errors += _validate_identifier(metric.external.metric, path.child("metric"))
        target = metric.external.target or MetricTarget()
        errors += _validate_metric_target(target, at)
        if target.value is None and target.average_value is None:
            detail = "must set either a target value for metric or a per-pod target"
            errors.append(required(at.child("averageValue"), detail))
        if target.value is not None and target.average_value is not None:
            detail = "may not set both a target value for metric and a per-pod target"
            errors.append(forbidden(at.child("value"), detail))
    elif name == "pods" and metric.pods is not None:
        errors += _validate_identifier(metric.pods.metric, path.child("metric"))
        target = metric.pods.target or MetricTarget()
        errors += _validate_metric_target(target, at)
        if target.average_value is None:
            errors.append(required(at.child("averageValue"), "must specify a positive target averageValue"))
    elif name == "resource" and metric.resource is not None:
        if not metric.resource.name:
            errors.append(required(path.child("name"), "must specify a resource name"))
        errors += _validate_resource_target(metric.resource, at)
    elif metric.container_resource is not None:
        errors += _validate_container_resource(metric.container_resource, path)
    return errors


def _validate_container_resource(source: ContainerResourceMetricSource, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.name:
        errors.append(required(path.child("name"), "must specify a resource name"))
    else:
        from ..core.validation.resources import validate_container_resource_name

        errors += validate_container_resource_name(source.name, path.child("name"))
    if not source.container:
        errors.append(required(path.child("container"), "must specify a container"))
    else:
        for problem in names.is_dns1123_label(source.container):
            errors.append(invalid(path.child("container"), source.container, problem))
    return errors + _validate_resource_target(source, path.child("target"))


def _validate_resource_target(
    source: ResourceMetricSource | ContainerResourceMetricSource, path: Path
) -> list[FieldError]:
    target = source.target or MetricTarget()
    errors = _validate_metric_target(target, path)
    if target.average_utilization is None and target.average_value is None:
        detail = "must set either a target raw value or a target utilization"
        errors.append(required(path.child("averageUtilization"), detail))
    if target.average_utilization is not None and target.average_value is not None:
        detail = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(path.child("averageValue"), detail))
    return errors


def _validate_metric_target(target: MetricTarget, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not target.type:
        errors.append(required(path.child("type"), "must specify a metric target type"))
    if target.type not in ("Utilization", "Value", "AverageValue"):
        detail = "must be either Utilization, Value, or AverageValue"
        errors.append(invalid(path.child("type"), target.type or "", detail))
    for name, value in (("value", target.value), ("averageValue", target.average_value)):
        if value is not None and parse(str(value)).mantissa <= 0:
            errors.append(invalid(path.child(name), str(parse(str(value))), "must be positive"))
    if target.average_utilization is not None and target.average_utilization < 1:
        errors.append(invalid(path.child("averageUtilization"), target.average_utilization, "must be greater than 0"))
    return errors


def _validate_identifier(identifier: MetricIdentifier | None, path: Path) -> list[FieldError]:
    name = (identifier.name if identifier else None) or ""
    if not name:
        return [required(path.child("name"), "must specify a metric name")]
    return [invalid(path.child("name"), name, problem) for problem in names.is_path_segment_name(name)]


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "HorizontalPodAutoscaler": validate_horizontal_pod_autoscaler,
    "Scale": validate_scale,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "HorizontalPodAutoscaler": validate_horizontal_pod_autoscaler_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "HorizontalPodAutoscaler": validate_horizontal_pod_autoscaler_status_update,
}
