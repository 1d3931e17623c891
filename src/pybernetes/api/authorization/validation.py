"""Validates access reviews. Their metadata has no meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ..equality import semantically_equal
from ..field import FieldError, Path, forbidden, invalid, required
from ..gocompat import goencoder
from ..meta.v1 import ObjectMeta
from ..meta.v1.labelselector import FieldSelectorRequirement
from ..meta.validation import validate_label_selector_requirement
from .v1 import (
    FieldSelectorAttributes,
    LabelSelectorAttributes,
    LocalSubjectAccessReview,
    NonResourceAttributes,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)

_RESOURCE = Path("spec", "resourceAttributes")


def validate_subject_access_review(review: SubjectAccessReview) -> list[FieldError]:
    """Validate a review about another user."""
    return _validate_subject(review.spec or SubjectAccessReviewSpec()) + _validate_metadata(review.metadata, "")


def validate_self_subject_access_review(review: SelfSubjectAccessReview) -> list[FieldError]:
    """A question about oneself."""
    spec = review.spec or SelfSubjectAccessReviewSpec()
    errors = _validate_choice(spec) + _validate_resource(spec.resource_attributes)
    return errors + _validate_metadata(review.metadata, "")


def validate_local_subject_access_review(review: LocalSubjectAccessReview) -> list[FieldError]:
    """Validate a review about another user in the namespace of the review."""
    spec = review.spec or SubjectAccessReviewSpec()
    errors = _validate_subject(spec) + _validate_metadata(review.metadata, " except for namespace")
    namespace = (review.metadata and review.metadata.namespace) or ""
    asked = spec.resource_attributes
    if asked is not None and (asked.namespace or "") != namespace:
        errors.append(invalid(_RESOURCE.child("namespace"), asked.namespace or "", "must match metadata.namespace"))
    if spec.non_resource_attributes is not None:
        shown = _shown(spec.non_resource_attributes)
        errors.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    return errors


def _validate_subject(spec: SubjectAccessReviewSpec) -> list[FieldError]:
    errors = _validate_choice(spec)
    if not spec.user and not spec.groups:
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    return errors + _validate_resource(spec.resource_attributes)


def _validate_choice(spec: SubjectAccessReviewSpec | SelfSubjectAccessReviewSpec) -> list[FieldError]:
    resource, other = spec.resource_attributes, spec.non_resource_attributes
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [invalid("spec.nonResourceAttributes", _shown(other), detail)]
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid(_RESOURCE, None, detail)]
    return []


def _validate_metadata(meta: ObjectMeta | None, exception: str) -> list[FieldError]:
    meta = meta or ObjectMeta()
    plain = msgspec.structs.replace(meta, managed_fields=None)
    if exception:
        plain.namespace = None
    if semantically_equal(plain, ObjectMeta()):
        return []
    return [invalid("metadata", msgspec.Raw(goencoder.encode(meta)), f"must be empty{exception}")]


def _validate_resource(attributes: ResourceAttributes | None) -> list[FieldError]:
    if attributes is None:
        return []
    errors: list[FieldError] = []
    if attributes.field_selector is not None:
        path = _RESOURCE.child("fieldSelector")
        errors += _validate_form(attributes.field_selector, path)
        for index, field in enumerate(attributes.field_selector.requirements or ()):
            errors += _validate_field_requirement(field, path.child("requirements").index(index))
    if attributes.label_selector is not None:
        path = _RESOURCE.child("labelSelector")
        errors += _validate_form(attributes.label_selector, path)
        for index, label in enumerate(attributes.label_selector.requirements or ()):
            where = path.child("requirements").index(index)
            errors += validate_label_selector_requirement(label, where, allow_unknown_operators=True)
    return errors


def _validate_form(selector: FieldSelectorAttributes | LabelSelectorAttributes, path: Path) -> list[FieldError]:
    if selector.raw_selector and selector.requirements:
        detail = "may not specified at the same time as requirements"
        return [invalid(path.child("rawSelector"), selector.raw_selector, detail)]
    if not selector.raw_selector and not selector.requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        return [required(path.child("requirements"), detail)]
    return []


def _validate_field_requirement(requirement: FieldSelectorRequirement, path: Path) -> list[FieldError]:
    """Operators of newer clients are let through: what is not understood is left out, which asks for more."""
    errors: list[FieldError] = []
    if not requirement.key:
        errors.append(required(path.child("key"), "must be specified"))
    if requirement.operator in ("In", "NotIn"):
        if not requirement.values:
            errors.append(required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
    elif requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(forbidden(path.child("values"), detail))
    return errors


def _shown(attributes: NonResourceAttributes) -> dict[str, str]:
    return {"Path": attributes.path or "", "Verb": attributes.verb or ""}


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "LocalSubjectAccessReview": validate_local_subject_access_review,
    "SelfSubjectAccessReview": validate_self_subject_access_review,
    "SubjectAccessReview": validate_subject_access_review,
}
