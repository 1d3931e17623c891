"""The kinds of admissionregistration/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ..base import Kind, Struct
from ..meta.v1.labelselector import LabelSelector
from ..meta.v1.objectmeta import Condition
from ..types import Always, Base64, Enum, Int32, Int64, ListType, MapType, Patch, Pointer, Required


class MutatingAdmissionPolicy(Kind):
    """Expressions that change requests."""

    spec: Annotated[MutatingAdmissionPolicySpec | None, Always({})] = None


class MutatingAdmissionPolicySpec(Struct):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    variables: Annotated[list[Variable] | None, ListType("atomic")] = None
    mutations: Annotated[list[Mutation] | None, ListType("atomic")] = None
    failure_policy: Annotated[str | None, Pointer, Enum("Fail", "Ignore")] = None
    match_conditions: Annotated[
        list[MatchCondition] | None, ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None
    reinvocation_policy: Annotated[str | None, Enum("IfNeeded", "Never")] = None


class ParamKind(Struct):
    map_type: ClassVar = MapType("atomic")

    api_version: str | None = None
    kind: str | None = None


class MatchResources(Struct):
    map_type: ClassVar = MapType("atomic")

    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: Annotated[list[NamedRuleWithOperations] | None, ListType("atomic")] = None
    exclude_resource_rules: Annotated[list[NamedRuleWithOperations] | None, ListType("atomic")] = None
    match_policy: Annotated[str | None, Pointer, Enum("Equivalent", "Exact")] = None


class NamedRuleWithOperations(Struct):
    map_type: ClassVar = MapType("atomic")

    resource_names: Annotated[list[str] | None, ListType("atomic")] = None
    operations: Annotated[list[str] | None, Enum("*", "CONNECT", "CREATE", "DELETE", "UPDATE"), ListType("atomic")] = (
        None
    )
    api_groups: Annotated[list[str] | None, ListType("atomic")] = None
    api_versions: Annotated[list[str] | None, ListType("atomic")] = None
    resources: Annotated[list[str] | None, ListType("atomic")] = None
    scope: Annotated[str | None, Pointer, Enum("*", "Cluster", "Namespaced")] = None


class Variable(Struct):
    map_type: ClassVar = MapType("atomic")

    name: Annotated[str | None, Required, Always("")] = None
    expression: Annotated[str | None, Required, Always("")] = None


class Mutation(Struct):
    patch_type: Annotated[str | None, Required, Always(""), Enum("ApplyConfiguration", "JSONPatch")] = None
    apply_configuration: ApplyConfiguration | None = None
    json_patch: JSONPatch | None = None


class ApplyConfiguration(Struct):
    expression: str | None = None


class JSONPatch(Struct):
    expression: str | None = None


class MatchCondition(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    expression: Annotated[str | None, Required, Always("")] = None


class MutatingAdmissionPolicyBinding(Kind):
    """Where a MutatingAdmissionPolicy applies, and its parameters."""

    spec: Annotated[MutatingAdmissionPolicyBindingSpec | None, Always({})] = None


class MutatingAdmissionPolicyBindingSpec(Struct):
    policy_name: str | None = None
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None


class ParamRef(Struct):
    map_type: ClassVar = MapType("atomic")

    name: str | None = None
    namespace: str | None = None
    selector: LabelSelector | None = None
    parameter_not_found_action: Annotated[str | None, Pointer] = None


class MutatingWebhookConfiguration(Kind):
    """Servers that may change requests."""

    webhooks: Annotated[list[MutatingWebhook] | None, ListType("map", keys=("name",)), Patch("merge", "name")] = None


class MutatingWebhook(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    client_config: Annotated[WebhookClientConfig | None, Required, Always({})] = None
    rules: Annotated[list[RuleWithOperations] | None, ListType("atomic")] = None
    failure_policy: Annotated[str | None, Pointer, Enum("Fail", "Ignore")] = None
    match_policy: Annotated[str | None, Pointer, Enum("Equivalent", "Exact")] = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: Annotated[str | None, Required, Always(None), Enum("None", "NoneOnDryRun", "Some", "Unknown")] = None
    timeout_seconds: Annotated[Int32 | None, Pointer] = None
    admission_review_versions: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
    reinvocation_policy: Annotated[str | None, Pointer, Enum("IfNeeded", "Never")] = None
    match_conditions: Annotated[
        list[MatchCondition] | None, ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None


class WebhookClientConfig(Struct):
    url: Annotated[str | None, Pointer] = None
    service: ServiceReference | None = None
    ca_bundle: Base64 | None = None


class ServiceReference(Struct):
    namespace: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None
    path: Annotated[str | None, Pointer] = None
    port: Annotated[Int32 | None, Pointer] = None


class RuleWithOperations(Struct):
    operations: Annotated[list[str] | None, Enum("*", "CONNECT", "CREATE", "DELETE", "UPDATE"), ListType("atomic")] = (
        None
    )
    api_groups: Annotated[list[str] | None, ListType("atomic")] = None
    api_versions: Annotated[list[str] | None, ListType("atomic")] = None
    resources: Annotated[list[str] | None, ListType("atomic")] = None
    scope: Annotated[str | None, Pointer, Enum("*", "Cluster", "Namespaced")] = None


class ValidatingAdmissionPolicy(Kind):
    """Expressions that refuse requests."""

    spec: Annotated[ValidatingAdmissionPolicySpec | None, Always({})] = None
    status: Annotated[ValidatingAdmissionPolicyStatus | None, Always({})] = None


class ValidatingAdmissionPolicySpec(Struct):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    validations: Annotated[list[Validation] | None, ListType("atomic")] = None
    failure_policy: Annotated[str | None, Pointer, Enum("Fail", "Ignore")] = None
    audit_annotations: Annotated[list[AuditAnnotation] | None, ListType("atomic")] = None
    match_conditions: Annotated[
        list[MatchCondition] | None, ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None
    variables: Annotated[list[Variable] | None, ListType("map", keys=("name",)), Patch("merge", "name")] = None


class Validation(Struct):
    expression: Annotated[str | None, Required, Always("")] = None
    message: str | None = None
    reason: Annotated[str | None, Pointer] = None
    message_expression: str | None = None


class AuditAnnotation(Struct):
    key: Annotated[str | None, Required, Always("")] = None
    value_expression: Annotated[str | None, Required, Always("")] = None


class ValidatingAdmissionPolicyStatus(Struct):
    observed_generation: Int64 | None = None
    type_checking: TypeChecking | None = None
    conditions: Annotated[list[Condition] | None, ListType("map", keys=("type",))] = None


class TypeChecking(Struct):
    expression_warnings: Annotated[list[ExpressionWarning] | None, ListType("atomic")] = None


class ExpressionWarning(Struct):
    field_ref: Annotated[str | None, Required, Always("")] = None
    warning: Annotated[str | None, Required, Always("")] = None


class ValidatingAdmissionPolicyBinding(Kind):
    """Where a ValidatingAdmissionPolicy applies, and its parameters."""

    spec: Annotated[ValidatingAdmissionPolicyBindingSpec | None, Required, Always({})] = None


class ValidatingAdmissionPolicyBindingSpec(Struct):
    policy_name: Annotated[str | None, Required] = None
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: Annotated[list[str] | None, Required, Enum("Audit", "Deny", "Warn"), ListType("set")] = None


class ValidatingWebhookConfiguration(Kind):
    """Servers that may refuse requests."""

    webhooks: Annotated[list[ValidatingWebhook] | None, ListType("map", keys=("name",)), Patch("merge", "name")] = None


class ValidatingWebhook(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    client_config: Annotated[WebhookClientConfig | None, Required, Always({})] = None
    rules: Annotated[list[RuleWithOperations] | None, ListType("atomic")] = None
    failure_policy: Annotated[str | None, Pointer, Enum("Fail", "Ignore")] = None
    match_policy: Annotated[str | None, Pointer, Enum("Equivalent", "Exact")] = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: Annotated[str | None, Required, Always(None), Enum("None", "NoneOnDryRun", "Some", "Unknown")] = None
    timeout_seconds: Annotated[Int32 | None, Pointer] = None
    admission_review_versions: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
    match_conditions: Annotated[
        list[MatchCondition] | None, ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None
