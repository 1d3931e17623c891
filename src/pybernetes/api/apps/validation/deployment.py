"""Deployments."""

from __future__ import annotations

from ... import names
from ...core.v1.pod import PodTemplateSpec
from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...intstr import or_zero
from ...meta.validation import validate_not_negative, validate_object_meta, validate_object_meta_update
from ..defaults import ROLLBACK_TO
from ..shared import (
    SPEC,
    STATUS,
    amount,
    compiled,
    in_order,
    validate_at_most_100_percent,
    validate_collision_count,
    validate_counters,
    validate_immutable,
    validate_int_or_percent,
    validate_not_more,
    validate_required_selector,
)
from ..v1 import Deployment, DeploymentSpec, DeploymentStatus, DeploymentStrategy, RollingUpdateDeployment
from .replicaset import validate_template_for_replica_set

_COUNTERS = (
    ("observed_generation", "observedGeneration"),
    ("replicas", "replicas"),
    ("updated_replicas", "updatedReplicas"),
    ("ready_replicas", "readyReplicas"),
    ("available_replicas", "availableReplicas"),
    ("unavailable_replicas", "unavailableReplicas"),
    ("terminating_replicas", "terminatingReplicas"),
    ("collision_count", "collisionCount"),
)


def validate_deployment(deployment: Deployment) -> list[FieldError]:
    """A new Deployment."""
    errors = validate_object_meta(deployment.metadata, True, names.name_is_dns_subdomain)
    errors += validate_deployment_spec(deployment.spec or DeploymentSpec())
    return errors + _validate_rollback(deployment)


def validate_deployment_update(new: Deployment, old: Deployment) -> list[FieldError]:
    """A changed Deployment: it selects the same pods for ever."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    spec, before = new.spec or DeploymentSpec(), old.spec or DeploymentSpec()
    errors += validate_deployment_spec(spec, before)
    errors += _validate_rollback(new)
    return errors + validate_immutable(spec.selector, before.selector, SPEC.child("selector"))


def validate_deployment_status_update(new: Deployment, old: Deployment) -> list[FieldError]:
    """Counters that fit together."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    status, before = new.status or DeploymentStatus(), old.status or DeploymentStatus()
    errors += validate_counters(status, _COUNTERS, STATUS)
    errors += validate_not_more(
        status, _COUNTERS[2:5], status.replicas, "cannot be greater than status.replicas", STATUS
    )
    detail = "cannot be greater than readyReplicas"
    errors += validate_not_more(status, _COUNTERS[4:5], status.ready_replicas, detail, STATUS)
    return errors + validate_collision_count(status.collision_count, before.collision_count, STATUS)


def validate_deployment_spec(spec: DeploymentSpec, before: DeploymentSpec | None = None) -> list[FieldError]:
    """How many pods of which kind, and how they are replaced."""
    errors = validate_not_negative(spec.replicas, SPEC.child("replicas"))
    errors += validate_required_selector(spec.selector, SPEC.child("selector"), "deployment")
    selector = compiled(spec.selector)
    if selector is None:
        errors.append(invalid(SPEC.child("selector"), spec.selector, "invalid label selector"))
    else:
        template = spec.template or PodTemplateSpec()
        old = before.template if before else None
        errors += validate_template_for_replica_set(template, selector, SPEC.child("template"), old)
    errors += validate_deployment_strategy(spec.strategy or DeploymentStrategy(), SPEC.child("strategy"))
    errors += validate_not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
    errors += validate_not_negative(spec.revision_history_limit, SPEC.child("revisionHistoryLimit"))
    deadline = spec.progress_deadline_seconds
    if deadline is not None:
        path = SPEC.child("progressDeadlineSeconds")
        errors += validate_not_negative(deadline, path)
        if deadline <= (spec.min_ready_seconds or 0):
            errors.append(invalid(path, deadline, "must be greater than minReadySeconds"))
    return errors


def _validate_rollback(deployment: Deployment) -> list[FieldError]:
    """Validate the rollback revision: once a field, now an annotation."""
    annotations = deployment.metadata.annotations if deployment.metadata else None
    revision = annotations.get(ROLLBACK_TO) if annotations else None
    return validate_not_negative(int(revision), SPEC.child("rollback", "version")) if revision else []


def validate_deployment_strategy(strategy: DeploymentStrategy, path: Path) -> list[FieldError]:
    """All at once, or a few at a time."""
    update = strategy.rolling_update
    if strategy.type == "Recreate":
        if update is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            return [forbidden(path.child("rollingUpdate"), detail)]
        return []
    if strategy.type == "RollingUpdate":
        if update is None:
            return [required(path.child("rollingUpdate"), "this should be defaulted and never be nil")]
        return validate_rolling_update_deployment(update, path.child("rollingUpdate"))
    printed = in_order(
        Type=strategy.type or "",
        RollingUpdate=update
        and {"MaxUnavailable": or_zero(update.max_unavailable), "MaxSurge": or_zero(update.max_surge)},
    )
    return [not_supported(path, printed, ("Recreate", "RollingUpdate"))]


def validate_rolling_update_deployment(update: RollingUpdateDeployment, path: Path) -> list[FieldError]:
    """Something must be able to move: fewer pods, or more."""
    unavailable, surge = or_zero(update.max_unavailable), or_zero(update.max_surge)
    errors = validate_int_or_percent(unavailable, path.child("maxUnavailable"))
    errors += validate_int_or_percent(surge, path.child("maxSurge"))
    if amount(unavailable) == 0 and amount(surge) == 0:
        errors.append(invalid(path.child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + validate_at_most_100_percent(unavailable, path.child("maxUnavailable"))
