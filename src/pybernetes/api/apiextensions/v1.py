"""The kinds of apiextensions/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ..base import Kind, Struct
from ..types import JSON, Always, Base64, Double, Enum, Int32, Int64, ListType, Patch, Pointer, Required, Time


class CustomResourceDefinition(Kind):
    """A kind that users add to the API."""

    spec: Annotated[CustomResourceDefinitionSpec | None, Required, Always({})] = None
    status: Annotated[CustomResourceDefinitionStatus | None, Always({})] = None


class CustomResourceDefinitionSpec(Struct):
    group: Annotated[str | None, Required, Always("")] = None
    names: Annotated[CustomResourceDefinitionNames | None, Required, Always({})] = None
    scope: Annotated[str | None, Required, Always("")] = None
    versions: Annotated[list[CustomResourceDefinitionVersion] | None, Required, Always(None), ListType("atomic")] = None
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: bool | None = None


class CustomResourceDefinitionNames(Struct):
    plural: Annotated[str | None, Required, Always("")] = None
    singular: str | None = None
    short_names: Annotated[list[str] | None, ListType("atomic")] = None
    kind: Annotated[str | None, Required, Always("")] = None
    list_kind: str | None = None
    categories: Annotated[list[str] | None, ListType("atomic")] = None


class CustomResourceDefinitionVersion(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    served: Annotated[bool | None, Required, Always(False)] = None
    storage: Annotated[bool | None, Required, Always(False)] = None
    deprecated: bool | None = None
    deprecation_warning: Annotated[str | None, Pointer] = None
    schema: CustomResourceValidation | None = None
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: Annotated[list[CustomResourceColumnDefinition] | None, ListType("atomic")] = None
    selectable_fields: Annotated[list[SelectableField] | None, ListType("atomic")] = None


class CustomResourceValidation(Struct):
    open_apiv_3_schema: JSONSchemaProps | None = field(default=None, name="openAPIV3Schema")


class JSONSchemaProps(Struct):
    """A JSON schema, as far as custom resources use it."""

    id: str | None = None
    schema: str | None = field(default=None, name="$schema")
    ref: Annotated[str | None, Pointer] = field(default=None, name="$ref")
    description: str | None = None
    type: str | None = None
    format: str | None = None
    title: str | None = None
    default: JSON = None
    maximum: Annotated[Double | None, Pointer] = None
    exclusive_maximum: bool | None = None
    minimum: Annotated[Double | None, Pointer] = None
    exclusive_minimum: bool | None = None
    max_length: Annotated[Int64 | None, Pointer] = None
    min_length: Annotated[Int64 | None, Pointer] = None
    pattern: str | None = None
    max_items: Annotated[Int64 | None, Pointer] = None
    min_items: Annotated[Int64 | None, Pointer] = None
    unique_items: bool | None = None
    multiple_of: Annotated[Double | None, Pointer] = None
    enum: Annotated[list[JSON] | None, ListType("atomic")] = None
    max_properties: Annotated[Int64 | None, Pointer] = None
    min_properties: Annotated[Int64 | None, Pointer] = None
    required: Annotated[list[str] | None, ListType("atomic")] = None
    items: JSONSchemaPropsOrArray | None = None
    all_of: Annotated[list[JSONSchemaProps] | None, ListType("atomic")] = None
    one_of: Annotated[list[JSONSchemaProps] | None, ListType("atomic")] = None
    any_of: Annotated[list[JSONSchemaProps] | None, ListType("atomic")] = None
    not_: JSONSchemaProps | None = None
    properties: dict[str, JSONSchemaProps] | None = None
    additional_properties: JSONSchemaPropsOrBool | None = None
    pattern_properties: dict[str, JSONSchemaProps] | None = None
    dependencies: dict[str, JSONSchemaPropsOrStringArray] | None = None
    additional_items: JSONSchemaPropsOrBool | None = None
    definitions: dict[str, JSONSchemaProps] | None = None
    external_docs: ExternalDocumentation | None = None
    example: JSON = None
    nullable: bool | None = None
    x_kubernetes_preserve_unknown_fields: Annotated[bool | None, Pointer] = field(
        default=None, name="x-kubernetes-preserve-unknown-fields"
    )
    x_kubernetes_embedded_resource: bool | None = field(default=None, name="x-kubernetes-embedded-resource")
    x_kubernetes_int_or_string: bool | None = field(default=None, name="x-kubernetes-int-or-string")
    x_kubernetes_list_map_keys: Annotated[list[str] | None, ListType("atomic")] = field(
        default=None, name="x-kubernetes-list-map-keys"
    )
    x_kubernetes_list_type: Annotated[str | None, Pointer] = field(default=None, name="x-kubernetes-list-type")
    x_kubernetes_map_type: Annotated[str | None, Pointer] = field(default=None, name="x-kubernetes-map-type")
    x_kubernetes_validations: Annotated[
        list[ValidationRule] | None, ListType("map", keys=("rule",)), Patch("merge", "rule")
    ] = field(default=None, name="x-kubernetes-validations")


class ExternalDocumentation(Struct):
    description: str | None = None
    url: str | None = None


class ValidationRule(Struct):
    rule: Annotated[str | None, Required, Always("")] = None
    message: str | None = None
    message_expression: str | None = None
    reason: Annotated[
        str | None,
        Pointer,
        Enum("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"),
    ] = None
    field_path: str | None = None
    optional_old_self: Annotated[bool | None, Pointer] = None


class CustomResourceSubresources(Struct):
    status: CustomResourceSubresourceStatus | None = None
    scale: CustomResourceSubresourceScale | None = None


class CustomResourceSubresourceStatus(Struct):
    pass


class CustomResourceSubresourceScale(Struct):
    spec_replicas_path: Annotated[str | None, Required, Always("")] = None
    status_replicas_path: Annotated[str | None, Required, Always("")] = None
    label_selector_path: Annotated[str | None, Pointer] = None


class CustomResourceColumnDefinition(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    type: Annotated[str | None, Required, Always("")] = None
    format: str | None = None
    description: str | None = None
    priority: Int32 | None = None
    json_path: Annotated[str | None, Required, Always("")] = None


class SelectableField(Struct):
    json_path: Annotated[str | None, Required, Always("")] = None


class CustomResourceConversion(Struct):
    strategy: Annotated[str | None, Required, Always("")] = None
    webhook: WebhookConversion | None = None


class WebhookConversion(Struct):
    client_config: WebhookClientConfig | None = None
    conversion_review_versions: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None


class WebhookClientConfig(Struct):
    url: Annotated[str | None, Pointer] = None
    service: ServiceReference | None = None
    ca_bundle: Base64 | None = None


class ServiceReference(Struct):
    namespace: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None
    path: Annotated[str | None, Pointer] = None
    port: Annotated[Int32 | None, Pointer] = None


class CustomResourceDefinitionStatus(Struct):
    conditions: Annotated[
        list[CustomResourceDefinitionCondition] | None, Always(None), ListType("map", keys=("type",))
    ] = None
    accepted_names: Annotated[CustomResourceDefinitionNames | None, Always({})] = None
    stored_versions: Annotated[list[str] | None, Always(None), ListType("atomic")] = None
    observed_generation: Int64 | None = None


class CustomResourceDefinitionCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None
    observed_generation: Int64 | None = None


JSONSchemaPropsOrArray = JSONSchemaProps | list[JSONSchemaProps]
JSONSchemaPropsOrBool = JSONSchemaProps | bool
JSONSchemaPropsOrStringArray = JSONSchemaProps | list[str]
