"""ReplicaSets, and the pod template that a Deployment hands down to them."""

from __future__ import annotations

from ... import names
from ...core.v1.pod import PodTemplateSpec
from ...core.validation.podtemplate import validate_pod_template_spec
from ...field import FieldError, Path, invalid
from ...labels import Selector
from ...meta.validation import validate_not_negative, validate_object_meta, validate_object_meta_update
from ..shared import (
    MISMATCH,
    SPEC,
    STATUS,
    compiled,
    template_labels,
    validate_counters,
    validate_immutable,
    validate_not_more,
    validate_required_selector,
    validate_restarts,
)
from ..v1 import ReplicaSet, ReplicaSetSpec, ReplicaSetStatus

_COUNTERS = (
    ("replicas", "replicas"),
    ("fully_labeled_replicas", "fullyLabeledReplicas"),
    ("ready_replicas", "readyReplicas"),
    ("available_replicas", "availableReplicas"),
    ("observed_generation", "observedGeneration"),
    ("terminating_replicas", "terminatingReplicas"),
)
_AVAILABLE = (("available_replicas", "availableReplicas"),)


def validate_replica_set(replica_set: ReplicaSet) -> list[FieldError]:
    """A new ReplicaSet."""
    errors = validate_object_meta(replica_set.metadata, True, names.name_is_dns_subdomain)
    return errors + validate_replica_set_spec(replica_set.spec or ReplicaSetSpec())


def validate_replica_set_update(new: ReplicaSet, old: ReplicaSet) -> list[FieldError]:
    """A changed ReplicaSet: it selects the same pods for ever."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    spec, before = new.spec or ReplicaSetSpec(), old.spec or ReplicaSetSpec()
    errors += validate_replica_set_spec(spec, before)
    return errors + validate_immutable(spec.selector, before.selector, SPEC.child("selector"))


def validate_replica_set_status_update(new: ReplicaSet, old: ReplicaSet) -> list[FieldError]:
    """Counters that fit together."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    status = new.status or ReplicaSetStatus()
    errors += validate_counters(status, _COUNTERS, STATUS)
    errors += validate_not_more(
        status, _COUNTERS[1:4], status.replicas, "cannot be greater than status.replicas", STATUS
    )
    detail = "cannot be greater than readyReplicas"
    return errors + validate_not_more(status, _AVAILABLE, status.ready_replicas, detail, STATUS)


def validate_replica_set_spec(spec: ReplicaSetSpec, before: ReplicaSetSpec | None = None) -> list[FieldError]:
    """How many pods of which kind."""
    errors = validate_not_negative(spec.replicas, SPEC.child("replicas"))
    errors += validate_not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
    # Upstream says deployment here too.
    errors += validate_required_selector(spec.selector, SPEC.child("selector"), "deployment")
    selector = compiled(spec.selector)
    if selector is None:
        errors.append(invalid(SPEC.child("selector"), spec.selector, "invalid label selector"))
    else:
        template = spec.template or PodTemplateSpec()
        old = before.template if before else None
        errors += validate_template_for_replica_set(template, selector, SPEC.child("template"), old)
    return errors


def validate_template_for_replica_set(
    template: PodTemplateSpec, selector: Selector, path: Path, old: PodTemplateSpec | None
) -> list[FieldError]:
    """A pod template whose pods the selector finds again."""
    errors: list[FieldError] = []
    labels = template_labels(template)
    if not selector.empty() and not selector.matches(labels or {}):
        errors.append(invalid(path.child("metadata", "labels"), labels, MISMATCH))
    errors += validate_pod_template_spec(template, path, old)
    return errors + validate_restarts(template, "ReplicaSet", path)
