"""The kinds of authorization/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ..base import Kind, Struct
from ..meta.v1.labelselector import FieldSelectorRequirement, LabelSelectorRequirement
from ..types import Always, ListType, Required


class LocalSubjectAccessReview(Kind):
    """May this user do that in this namespace?"""

    spec: Annotated[SubjectAccessReviewSpec | None, Required, Always({})] = None
    status: Annotated[SubjectAccessReviewStatus | None, Always({})] = None


class SubjectAccessReviewSpec(Struct):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str | None = None
    groups: Annotated[list[str] | None, ListType("atomic")] = None
    extra: dict[str, list[str]] | None = None
    uid: str | None = None


class ResourceAttributes(Struct):
    namespace: str | None = None
    verb: str | None = None
    group: str | None = None
    version: str | None = None
    resource: str | None = None
    subresource: str | None = None
    name: str | None = None
    field_selector: FieldSelectorAttributes | None = None
    label_selector: LabelSelectorAttributes | None = None


class FieldSelectorAttributes(Struct):
    raw_selector: str | None = None
    requirements: Annotated[list[FieldSelectorRequirement] | None, ListType("atomic")] = None


class LabelSelectorAttributes(Struct):
    raw_selector: str | None = None
    requirements: Annotated[list[LabelSelectorRequirement] | None, ListType("atomic")] = None


class NonResourceAttributes(Struct):
    path: str | None = None
    verb: str | None = None


class SubjectAccessReviewStatus(Struct):
    allowed: Annotated[bool | None, Required, Always(False)] = None
    denied: bool | None = None
    reason: str | None = None
    evaluation_error: str | None = None


class SelfSubjectAccessReview(Kind):
    """May I do that?"""

    spec: Annotated[SelfSubjectAccessReviewSpec | None, Required, Always({})] = None
    status: Annotated[SubjectAccessReviewStatus | None, Always({})] = None


class SelfSubjectAccessReviewSpec(Struct):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SelfSubjectRulesReview(Kind):
    """What may I do in this namespace?"""

    spec: Annotated[SelfSubjectRulesReviewSpec | None, Required, Always({})] = None
    status: Annotated[SubjectRulesReviewStatus | None, Always({})] = None


class SelfSubjectRulesReviewSpec(Struct):
    namespace: str | None = None


class SubjectRulesReviewStatus(Struct):
    resource_rules: Annotated[list[ResourceRule] | None, Required, Always(None), ListType("atomic")] = None
    non_resource_rules: Annotated[list[NonResourceRule] | None, Required, Always(None), ListType("atomic")] = None
    incomplete: Annotated[bool | None, Required, Always(False)] = None
    evaluation_error: str | None = None


class ResourceRule(Struct):
    verbs: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
    api_groups: Annotated[list[str] | None, ListType("atomic")] = None
    resources: Annotated[list[str] | None, ListType("atomic")] = None
    resource_names: Annotated[list[str] | None, ListType("atomic")] = None


class NonResourceRule(Struct):
    verbs: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
    non_resource_urls: Annotated[list[str] | None, ListType("atomic")] = field(default=None, name="nonResourceURLs")


class SubjectAccessReview(Kind):
    """May this user do that?"""

    spec: Annotated[SubjectAccessReviewSpec | None, Required, Always({})] = None
    status: Annotated[SubjectAccessReviewStatus | None, Always({})] = None
