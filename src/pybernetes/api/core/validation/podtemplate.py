"""Templates of pods: inside a Deployment, a Job and all the others, and by themselves as a PodTemplate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError, Path, forbidden
from ...meta.validation import (
    METADATA,
    validate_annotations,
    validate_labels,
    validate_object_meta,
    validate_object_meta_update,
)
from ...names import name_is_dns_subdomain
from ..v1.pod import PodSpec, PodTemplate, PodTemplateSpec
from .options import TEMPLATE, options_for_update
from .podannotations import validate_annotations_match_fields, validate_pod_annotations
from .podspec import validate_pod_spec


def validate_pod_template_spec(
    template: PodTemplateSpec | None, path: Path, old: PodTemplateSpec | None = None
) -> list[FieldError]:
    """The template of a pod in a Deployment, a Job and all the others; `old` is what it was before an update."""
    if template is None:
        template = PodTemplateSpec()
    spec = template.spec or PodSpec()
    options = options_for_update(old.spec, old.metadata, is_pod=False) if old is not None else TEMPLATE
    errors: list[FieldError] = []
    meta = template.metadata
    if meta is not None:
        if meta.labels:
            errors += validate_labels(meta.labels, path.child("labels"))
        if meta.annotations:
            errors += validate_annotations(meta.annotations, path.child("annotations"))
            errors += validate_pod_annotations(meta.annotations, spec, path.child("annotations"), options)
    errors += validate_pod_spec(spec, None, path.child("spec"), options)
    errors += validate_annotations_match_fields(meta, spec, path.child("spec"))
    if spec.ephemeral_containers:
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(path.child("spec", "ephemeralContainers"), detail))
    return errors


def validate_pod_template(obj: PodTemplate) -> list[FieldError]:
    """A new PodTemplate."""
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, METADATA)
    return errors + validate_pod_template_spec(obj.template, Path("template"))


def validate_pod_template_update(new: PodTemplate, old: PodTemplate) -> list[FieldError]:
    """A change of a PodTemplate: anything, as long as it is valid."""
    errors = validate_object_meta_update(new.metadata, old.metadata, METADATA)
    return errors + validate_pod_template_spec(new.template, Path("template"), old.template)


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"PodTemplate": validate_pod_template}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"PodTemplate": validate_pod_template_update}
