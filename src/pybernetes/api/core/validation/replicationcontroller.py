"""ReplicationControllers: a selector that is a plain map, and a template that it must match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...meta.validation import METADATA, validate_not_negative, validate_object_meta, validate_object_meta_update
from ...names import name_is_long_name
from ..v1.pod import PodSpec, PodTemplateSpec
from ..v1.replicationcontroller import ReplicationController, ReplicationControllerSpec, ReplicationControllerStatus
from .podtemplate import validate_pod_template_spec

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")


def validate_replication_controller(obj: ReplicationController) -> list[FieldError]:
    """A new ReplicationController."""
    errors = validate_object_meta(obj.metadata, True, name_is_long_name, METADATA)
    return errors + _validate_spec(obj.spec or ReplicationControllerSpec(), None)


def validate_replication_controller_update(new: ReplicationController, old: ReplicationController) -> list[FieldError]:
    """A change of a ReplicationController: anything, as long as it is valid."""
    errors = validate_object_meta_update(new.metadata, old.metadata, METADATA)
    template = old.spec.template if old.spec is not None else None
    return errors + _validate_spec(new.spec or ReplicationControllerSpec(), template)


def _validate_spec(spec: ReplicationControllerSpec, old: PodTemplateSpec | None) -> list[FieldError]:
    errors = validate_not_negative(spec.min_ready_seconds, _SPEC.child("minReadySeconds"))
    if not spec.selector:
        errors.append(required(_SPEC.child("selector")))
    if spec.replicas is None:
        errors.append(required(_SPEC.child("replicas")))
    else:
        errors += validate_not_negative(spec.replicas, _SPEC.child("replicas"))
    path, template = _SPEC.child("template"), spec.template
    if template is None:
        return [*errors, required(path)]
    labels = template.metadata.labels if template.metadata is not None else None
    if any((labels or {}).get(key) != value for key, value in (spec.selector or {}).items()):
        detail = "`selector` does not match template `labels`"
        errors.append(invalid(path.child("metadata", "labels"), labels, detail))
    errors += validate_pod_template_spec(template, path, old)
    inner = template.spec or PodSpec()
    if inner.restart_policy != "Always":
        at = path.child("spec", "restartPolicy")
        errors.append(not_supported(at, inner.restart_policy or "", ("Always",)))
    if inner.active_deadline_seconds is not None:
        detail = "activeDeadlineSeconds in ReplicationController is not Supported"
        errors.append(forbidden(path.child("spec", "activeDeadlineSeconds"), detail))
    return errors


def validate_replication_controller_status_update(
    new: ReplicationController, old: ReplicationController
) -> list[FieldError]:
    """Counts that fit together."""
    errors = validate_object_meta_update(new.metadata, old.metadata, METADATA)
    status = new.status or ReplicationControllerStatus()
    replicas, ready, available = status.replicas or 0, status.ready_replicas or 0, status.available_replicas or 0
    labeled = status.fully_labeled_replicas or 0
    for wire, value in (
        ("replicas", replicas),
        ("fullyLabeledReplicas", labeled),
        ("readyReplicas", ready),
        ("availableReplicas", available),
        ("observedGeneration", status.observed_generation or 0),
    ):
        errors += validate_not_negative(value, _STATUS.child(wire))
    for wire, value in (("fullyLabeledReplicas", labeled), ("readyReplicas", ready), ("availableReplicas", available)):
        if value > replicas:
            errors.append(invalid(_STATUS.child(wire), value, "cannot be greater than status.replicas"))
    if available > ready:
        errors.append(invalid(_STATUS.child("availableReplicas"), available, "cannot be greater than readyReplicas"))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"ReplicationController": validate_replication_controller}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "ReplicationController": validate_replication_controller_update
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "ReplicationController": validate_replication_controller_status_update
}
