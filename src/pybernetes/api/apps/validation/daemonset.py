"""DaemonSets."""

from __future__ import annotations

from ... import names
from ...core.v1.pod import PodTemplateSpec
from ...core.validation.podtemplate import validate_pod_template_spec
from ...field import FieldError, Path, invalid, not_supported, required
from ...intstr import or_zero
from ...meta.validation import (
    has_invalid_label_value,
    validate_label_selector,
    validate_not_negative,
    validate_object_meta,
    validate_object_meta_update,
)
from ..shared import (
    MISMATCH,
    SPEC,
    STATUS,
    amount,
    compiled,
    in_order,
    template_labels,
    validate_at_most_100_percent,
    validate_collision_count,
    validate_counters,
    validate_immutable,
    validate_int_or_percent,
    validate_restarts,
)
from ..v1 import DaemonSet, DaemonSetSpec, DaemonSetStatus, DaemonSetUpdateStrategy, RollingUpdateDaemonSet

_COUNTERS = (
    ("current_number_scheduled", "currentNumberScheduled"),
    ("number_misscheduled", "numberMisscheduled"),
    ("desired_number_scheduled", "desiredNumberScheduled"),
    ("number_ready", "numberReady"),
    ("observed_generation", "observedGeneration"),
    ("updated_number_scheduled", "updatedNumberScheduled"),
    ("number_available", "numberAvailable"),
    ("number_unavailable", "numberUnavailable"),
    ("collision_count", "collisionCount"),
)


def validate_daemon_set(daemon_set: DaemonSet) -> list[FieldError]:
    """A new DaemonSet."""
    errors = validate_object_meta(daemon_set.metadata, True, names.name_is_dns_subdomain)
    return errors + validate_daemon_set_spec(daemon_set.spec or DaemonSetSpec())


def validate_daemon_set_update(new: DaemonSet, old: DaemonSet) -> list[FieldError]:
    """A changed DaemonSet: it selects the same pods for ever."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    spec, before = new.spec or DaemonSetSpec(), old.spec or DaemonSetSpec()
    errors += validate_immutable(spec.selector, before.selector, SPEC.child("selector"))
    return errors + validate_daemon_set_spec(spec, before)


def validate_daemon_set_status_update(new: DaemonSet, old: DaemonSet) -> list[FieldError]:
    """Counters from 0 on."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    status, before = new.status or DaemonSetStatus(), old.status or DaemonSetStatus()
    errors += validate_counters(status, _COUNTERS, STATUS)
    return errors + validate_collision_count(status.collision_count, before.collision_count, STATUS)


def validate_daemon_set_spec(spec: DaemonSetSpec, before: DaemonSetSpec | None = None) -> list[FieldError]:
    """Which pod on every node, and how it is replaced."""
    lenient = before is not None and has_invalid_label_value(before.selector)
    errors = validate_label_selector(spec.selector, SPEC.child("selector"), allow_invalid_values=lenient)
    template, path = spec.template or PodTemplateSpec(), SPEC.child("template")
    labels = template_labels(template)
    selector = compiled(spec.selector)
    if selector is not None and not selector.matches(labels or {}):
        errors.append(invalid(path.child("metadata", "labels"), labels, MISMATCH))
    if spec.selector is not None and not spec.selector.match_labels and not spec.selector.match_expressions:
        errors.append(invalid(SPEC.child("selector"), spec.selector, "empty selector is invalid for daemonset"))
    errors += validate_pod_template_spec(template, path, before.template if before else None)
    errors += validate_restarts(template, "DaemonSet", path)
    errors += validate_not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
    strategy = spec.update_strategy or DaemonSetUpdateStrategy()
    errors += validate_daemon_set_update_strategy(strategy, SPEC.child("updateStrategy"))
    return errors + validate_not_negative(spec.revision_history_limit, SPEC.child("revisionHistoryLimit"))


def validate_daemon_set_update_strategy(strategy: DaemonSetUpdateStrategy, path: Path) -> list[FieldError]:
    """By the user's hand, or a few nodes at a time."""
    update = strategy.rolling_update
    if strategy.type == "OnDelete":
        return []
    if strategy.type == "RollingUpdate":
        if update is None:
            return [required(path.child("rollingUpdate"))]
        return _validate_rolling_update(update, path.child("rollingUpdate"))
    printed = in_order(
        Type=strategy.type or "",
        RollingUpdate=update
        and {"MaxUnavailable": or_zero(update.max_unavailable), "MaxSurge": or_zero(update.max_surge)},
    )
    return [not_supported(path, printed, ("RollingUpdate", "OnDelete"))]


def _validate_rolling_update(update: RollingUpdateDaemonSet, path: Path) -> list[FieldError]:
    unavailable, surge = or_zero(update.max_unavailable), or_zero(update.max_surge)
    errors = validate_int_or_percent(unavailable, path.child("maxUnavailable"))
    errors += validate_int_or_percent(surge, path.child("maxSurge"))
    errors += validate_at_most_100_percent(unavailable, path.child("maxUnavailable"))
    errors += validate_at_most_100_percent(surge, path.child("maxSurge"))
    if amount(unavailable) and amount(surge):
        errors.append(invalid(path.child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero"))
    elif not amount(unavailable) and not amount(surge):
        errors.append(required(path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
    return errors
