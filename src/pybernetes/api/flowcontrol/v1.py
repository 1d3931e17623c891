"""The kinds of flowcontrol/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ..base import Kind, Struct
from ..types import Always, Int32, ListType, Patch, Pointer, Required, Time, Union


class FlowSchema(Kind):
    """Which requests belong to which priority level."""

    spec: Annotated[FlowSchemaSpec | None, Always({})] = None
    status: Annotated[FlowSchemaStatus | None, Always({})] = None


class FlowSchemaSpec(Struct):
    priority_level_configuration: Annotated[PriorityLevelConfigurationReference | None, Required, Always({})] = None
    matching_precedence: Annotated[Int32 | None, Always(0)] = None
    distinguisher_method: FlowDistinguisherMethod | None = None
    rules: Annotated[list[PolicyRulesWithSubjects] | None, ListType("atomic")] = None


class PriorityLevelConfigurationReference(Struct):
    name: Annotated[str | None, Required, Always("")] = None


class FlowDistinguisherMethod(Struct):
    type: Annotated[str | None, Required, Always("")] = None


class PolicyRulesWithSubjects(Struct):
    subjects: Annotated[list[Subject] | None, Required, Always(None), ListType("atomic")] = None
    resource_rules: Annotated[list[ResourcePolicyRule] | None, ListType("atomic")] = None
    non_resource_rules: Annotated[list[NonResourcePolicyRule] | None, ListType("atomic")] = None


class Subject(Struct):
    union: ClassVar = Union("kind", {"group": "Group", "serviceAccount": "ServiceAccount", "user": "User"})

    kind: Annotated[str | None, Required, Always("")] = None
    user: UserSubject | None = None
    group: GroupSubject | None = None
    service_account: ServiceAccountSubject | None = None


class UserSubject(Struct):
    name: Annotated[str | None, Required, Always("")] = None


class GroupSubject(Struct):
    name: Annotated[str | None, Required, Always("")] = None


class ServiceAccountSubject(Struct):
    namespace: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None


class ResourcePolicyRule(Struct):
    verbs: Annotated[list[str] | None, Required, Always(None), ListType("set")] = None
    api_groups: Annotated[list[str] | None, Required, Always(None), ListType("set")] = None
    resources: Annotated[list[str] | None, Required, Always(None), ListType("set")] = None
    cluster_scope: bool | None = None
    namespaces: Annotated[list[str] | None, Always(None), ListType("set")] = None


class NonResourcePolicyRule(Struct):
    verbs: Annotated[list[str] | None, Required, Always(None), ListType("set")] = None
    non_resource_urls: Annotated[list[str] | None, Required, Always(None), ListType("set")] = field(
        default=None, name="nonResourceURLs"
    )


class FlowSchemaStatus(Struct):
    conditions: Annotated[list[FlowSchemaCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = (
        None
    )


class FlowSchemaCondition(Struct):
    type: str | None = None
    status: str | None = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None


class PriorityLevelConfiguration(Kind):
    """How many requests of a level run at once, and how the others queue."""

    spec: Annotated[PriorityLevelConfigurationSpec | None, Always({})] = None
    status: Annotated[PriorityLevelConfigurationStatus | None, Always({})] = None


class PriorityLevelConfigurationSpec(Struct):
    union: ClassVar = Union("type", {"exempt": "Exempt", "limited": "Limited"})

    type: Annotated[str | None, Required, Always("")] = None
    limited: LimitedPriorityLevelConfiguration | None = None
    exempt: ExemptPriorityLevelConfiguration | None = None


class LimitedPriorityLevelConfiguration(Struct):
    nominal_concurrency_shares: Annotated[Int32 | None, Always(None)] = None
    limit_response: Annotated[LimitResponse | None, Always({})] = None
    lendable_percent: Annotated[Int32 | None, Pointer] = None
    borrowing_limit_percent: Annotated[Int32 | None, Pointer] = None


class LimitResponse(Struct):
    union: ClassVar = Union("type", {"queuing": "Queuing"})

    type: Annotated[str | None, Required, Always("")] = None
    queuing: QueuingConfiguration | None = None


class QueuingConfiguration(Struct):
    queues: Annotated[Int32 | None, Always(0)] = None
    hand_size: Annotated[Int32 | None, Always(0)] = None
    queue_length_limit: Annotated[Int32 | None, Always(0)] = None


class ExemptPriorityLevelConfiguration(Struct):
    nominal_concurrency_shares: Annotated[Int32 | None, Pointer] = None
    lendable_percent: Annotated[Int32 | None, Pointer] = None


class PriorityLevelConfigurationStatus(Struct):
    conditions: Annotated[
        list[PriorityLevelConfigurationCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")
    ] = None


class PriorityLevelConfigurationCondition(Struct):
    type: str | None = None
    status: str | None = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None
