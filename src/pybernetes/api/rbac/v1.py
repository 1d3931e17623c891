"""The kinds of rbac/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ..base import Kind, Struct
from ..meta.v1.labelselector import LabelSelector
from ..types import Always, ListType, MapType, Required


class ClusterRole(Kind):
    """Permissions, in all namespaces or outside of them."""

    rules: Annotated[list[PolicyRule] | None, Always(None), ListType("atomic")] = None
    aggregation_rule: AggregationRule | None = None


class PolicyRule(Struct):
    verbs: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
    api_groups: Annotated[list[str] | None, ListType("atomic")] = None
    resources: Annotated[list[str] | None, ListType("atomic")] = None
    resource_names: Annotated[list[str] | None, ListType("atomic")] = None
    non_resource_urls: Annotated[list[str] | None, ListType("atomic")] = field(default=None, name="nonResourceURLs")


class AggregationRule(Struct):
    cluster_role_selectors: Annotated[list[LabelSelector] | None, ListType("atomic")] = None


class ClusterRoleBinding(Kind):
    """Who has a ClusterRole everywhere."""

    subjects: Annotated[list[Subject] | None, ListType("atomic")] = None
    role_ref: Annotated[RoleRef | None, Required, Always({})] = None


class Subject(Struct):
    map_type: ClassVar = MapType("atomic")

    kind: Annotated[str | None, Required, Always("")] = None
    api_group: str | None = None
    name: Annotated[str | None, Required, Always("")] = None
    namespace: str | None = None


class RoleRef(Struct):
    map_type: ClassVar = MapType("atomic")

    api_group: Annotated[str | None, Always("")] = None
    kind: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None


class Role(Kind):
    """Permissions in one namespace."""

    rules: Annotated[list[PolicyRule] | None, Always(None), ListType("atomic")] = None


class RoleBinding(Kind):
    """Who has a role in one namespace."""

    subjects: Annotated[list[Subject] | None, ListType("atomic")] = None
    role_ref: Annotated[RoleRef | None, Required, Always({})] = None
