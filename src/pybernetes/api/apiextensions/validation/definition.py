"""CustomResourceDefinitions as a whole: group, names, scope, versions.

What all versions share is reported at one place above them (`spec.validation`, `spec.subresources`, ...), as upstream
does, whose internal type has it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ... import names as rules
from ...apps.shared import in_order
from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...meta.v1.objectmeta import ObjectMeta
from ...meta.validation import IMMUTABLE, validate_object_meta, validate_object_meta_update
from ...webhooks import validate_ca_bundle
from ..schemas import all_subschemas, has_rules, schema_of, shared
from ..v1 import (
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    CustomResourceValidation,
    JSONSchemaProps,
)
from .conversion import REVIEW_VERSIONS, validate_conversion
from .default_values import is_unpruned, validate_defaults
from .names import validate_approval, validate_names
from .schema import TYPES, Rules, has_non_atomic_items, validate_list_map_keys, validate_schema
from .structural import conversion_problem, validate_structural
from .version import validate_columns, validate_deprecation_warning, validate_selectable_fields, validate_subresources

_SPEC: Final = Path("spec")
_STORED: Final = Path("status", "storedVersions")
# Go's names: the list is part of a message.
_ALLOWED_AT_ROOT: Final = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_NOT_ALLOWED_AT_ROOT: Final = (
    "id",
    "schema",
    "ref",
    "nullable",
    "enum",
    "max_properties",
    "min_properties",
    "all_of",
    "one_of",
    "any_of",
    "not_",
    "pattern_properties",
    "dependencies",
    "definitions",
    "x_kubernetes_embedded_resource",
    "x_kubernetes_int_or_string",
    "x_kubernetes_list_map_keys",
    "x_kubernetes_list_type",
    "x_kubernetes_map_type",
)


class _Options(msgspec.Struct, frozen=True):
    """How strict to be; a definition keeps what it was once allowed to have."""

    rules: Rules = Rules()
    schema_required: bool = True
    structural: bool = True
    pruned_defaults: bool = True
    recognized_review_version: bool = True
    allow_any_bundle: bool = True
    many_selectable_fields: frozenset[str] = frozenset()
    known_schemas: tuple[JSONSchemaProps, ...] = ()


def validate_custom_resource_definition(definition: CustomResourceDefinition) -> list[FieldError]:
    """A new definition."""
    meta, spec = definition.metadata or ObjectMeta(), definition.spec or CustomResourceDefinitionSpec()
    names = spec.names or CustomResourceDefinitionNames()
    wanted = f"{names.plural or ''}.{spec.group or ''}"

    def name_rule(name: str, prefix: bool) -> list[str]:
        wrong = [] if name == wanted else ['must be spec.names.plural+"."+spec.group']
        return rules.name_is_dns_subdomain(name, prefix) + wrong

    errors = validate_object_meta(meta, False, name_rule, custom=True)
    errors += _validate_spec(spec, _Options())
    errors += _validate_status(definition)
    errors += validate_approval(spec.group or "", meta, None)
    return errors + _validate_preserve(spec, None)


def validate_custom_resource_definition_update(
    new: CustomResourceDefinition, old: CustomResourceDefinition
) -> list[FieldError]:
    """A changed definition. Once it is established, what objects are stored under stays."""
    spec, before = new.spec or CustomResourceDefinitionSpec(), old.spec or CustomResourceDefinitionSpec()
    errors = validate_object_meta_update(new.metadata, old.metadata, custom=True)
    errors += _validate_spec(spec, _options_for_update(spec, before, old))
    names, old_names = spec.names or CustomResourceDefinitionNames(), before.names or CustomResourceDefinitionNames()
    if _established(old):
        errors += _immutable(spec.scope, before.scope, _SPEC.child("scope"))
        errors += _immutable(names.kind, old_names.kind, _SPEC.child("names", "kind"))
    errors += _immutable(spec.group, before.group, _SPEC.child("group"))
    errors += _immutable(names.plural, old_names.plural, _SPEC.child("names", "plural"))
    errors += _validate_status(new)
    errors += validate_approval(spec.group or "", new.metadata or ObjectMeta(), old.metadata or ObjectMeta())
    return errors + _validate_preserve(spec, before)


def validate_custom_resource_definition_status_update(
    new: CustomResourceDefinition, old: CustomResourceDefinition
) -> list[FieldError]:
    """A new status."""
    errors = validate_object_meta_update(new.metadata, old.metadata, custom=True)
    status = new.status or CustomResourceDefinitionStatus()
    names = status.accepted_names or CustomResourceDefinitionNames()
    return errors + validate_names(names, Path("status", "acceptedNames"))


def _immutable(new: str | None, old: str | None, path: Path) -> list[FieldError]:
    return [] if (new or "") == (old or "") else [invalid(path, new or "", IMMUTABLE)]


def _established(definition: CustomResourceDefinition) -> bool:
    conditions = definition.status.conditions if definition.status else None
    return any(each.type == "Established" and each.status == "True" for each in conditions or ())


def _options_for_update(
    spec: CustomResourceDefinitionSpec, before: CustomResourceDefinitionSpec, old: CustomResourceDefinition
) -> _Options:
    schemas = list(all_subschemas(before))
    roots = [schema for schema in map(schema_of, before.versions or ()) if schema is not None]
    webhook = before.conversion.webhook if before.conversion else None
    versions = webhook.conversion_review_versions or [] if webhook else []
    bundle = webhook.client_config.ca_bundle if webhook and webhook.client_config else None
    structural = not any(conversion_problem(each) or validate_structural(each, _SPEC) for each in roots)
    old_fields = {each.name: each.selectable_fields or [] for each in before.versions or ()}
    return _Options(
        rules=Rules(
            valid_types=all(not each.type or each.type in TYPES for each in schemas),
            atomic_sets=not any(map(has_non_atomic_items, schemas)),
            list_map_keys=not any(validate_list_map_keys(each, _SPEC) for each in schemas),
        ),
        schema_required=len(roots) == len(before.versions or ()),
        structural=structural,
        known_schemas=tuple(roots),
        pruned_defaults=not (structural and any(map(is_unpruned, schemas))),
        recognized_review_version=not versions or bool(set(versions).intersection(REVIEW_VERSIONS)),
        allow_any_bundle=not _established(old) or bool(bundle and validate_ca_bundle(bundle, _SPEC)),
        many_selectable_fields=frozenset(
            each.name or ""
            for each in spec.versions or ()
            if semantically_equal(old_fields.get(each.name), each.selectable_fields)
        ),
    )


def _validate_spec(spec: CustomResourceDefinitionSpec, options: _Options) -> list[FieldError]:
    errors = _validate_group(spec.group or "", _SPEC.child("group"))
    if not spec.scope:
        errors.append(required(_SPEC.child("scope")))
    elif spec.scope not in ("Cluster", "Namespaced"):
        errors.append(not_supported(_SPEC.child("scope"), spec.scope, ("Cluster", "Namespaced")))
    if not spec.preserve_unknown_fields:
        options = msgspec.structs.replace(options, structural=True)
    common = shared(spec)
    versions = spec.versions or []
    errors += _validate_schemas_are_there(spec, versions, options)
    errors += _validate_defaults_allowed(spec)
    for index, version in enumerate(common.versions):
        path = _SPEC.child("versions").index(index)
        problems = rules.is_dns1035_label(version.name or "")
        if problems:
            errors.append(invalid(path.child("name"), version.name or "", ",".join(problems)))
        has_status = _has_status(version.subresources or common.subresources)
        errors += _validate_version(version, path, has_status, options)
    errors += _validate_versions(versions, None if spec.versions is None else common.versions)
    errors += _validate_required_names(spec.names or CustomResourceDefinitionNames())
    any_status = any(_has_status(version.subresources) for version in versions)
    errors += _validate_schema(common.schema, _SPEC.child("validation"), any_status, options)
    errors += validate_subresources(common.subresources, _SPEC.child("subresources"))
    errors += validate_columns(common.columns or (), _SPEC.child("additionalPrinterColumns"))
    if common.selectable_fields:
        allow_many = options.many_selectable_fields.issuperset(version.name or "" for version in versions)
        errors += validate_selectable_fields(
            common.selectable_fields, common.schema, _SPEC, allow_many=allow_many, top_level=True
        )
    return errors + _validate_conversion(spec, options)


def _validate_group(group: str, path: Path) -> list[FieldError]:
    if not group:
        return [required(path)]
    problems = rules.is_dns1123_subdomain(group)
    if problems:
        return [invalid(path, group, ",".join(problems))]
    return [] if "." in group else [invalid(path, group, "should be a domain with at least one dot")]


def _validate_schemas_are_there(
    spec: CustomResourceDefinitionSpec, versions: Sequence[CustomResourceDefinitionVersion], options: _Options
) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        path = _SPEC.child("versions").index(index).child("schema", "openAPIV3Schema")
        if schema_of(version) is not None:
            continue
        if options.schema_required:
            errors.append(required(path))
        elif version.served and not spec.preserve_unknown_fields:
            errors.append(required(path, "because otherwise all fields are pruned"))
    return errors


def _validate_defaults_allowed(spec: CustomResourceDefinitionSpec) -> list[FieldError]:
    if spec.preserve_unknown_fields and any(each.default is not None for each in all_subschemas(spec)):
        detail = "must be false in order to use defaults in the schema"
        return [invalid(_SPEC.child("preserveUnknownFields"), True, detail)]
    return []


def _has_status(subresources: CustomResourceSubresources | None) -> bool:
    return subresources is not None and subresources.status is not None


def _validate_version(
    version: CustomResourceDefinitionVersion, path: Path, has_status: bool, options: _Options
) -> list[FieldError]:
    errors = validate_deprecation_warning(version, path.child("deprecationWarning"))
    errors += _validate_schema(version.schema, path.child("schema"), has_status, options)
    errors += validate_subresources(version.subresources, path.child("subresources"))
    errors += validate_columns(version.additional_printer_columns or (), path.child("additionalPrinterColumns"))
    if version.selectable_fields:
        allow_many = (version.name or "") in options.many_selectable_fields
        errors += validate_selectable_fields(version.selectable_fields, version.schema, path, allow_many=allow_many)
    return errors


def _validate_versions(
    versions: Sequence[CustomResourceDefinitionVersion], shown: Sequence[CustomResourceDefinitionVersion] | None
) -> list[FieldError]:
    errors: list[FieldError] = []
    path, printed = _SPEC.child("versions"), None if shown is None else [_printed(each) for each in shown]
    if len({version.name for version in versions}) != len(versions):
        errors.append(invalid(path, printed, "must contain unique version names"))
    if sum(1 for version in versions if version.storage) != 1:
        errors.append(invalid(path, printed, "must have exactly one version marked as storage version"))
    # Upstream keeps the first version's name in a field of its own, too.
    problems = rules.is_dns1035_label(versions[0].name or "") if versions and versions[0].name else []
    if problems:
        errors.append(invalid(_SPEC.child("version"), versions[0].name, ",".join(problems)))
    return errors


def _printed(version: CustomResourceDefinitionVersion) -> msgspec.Raw:
    return in_order(
        Name=version.name or "",
        Served=bool(version.served),
        Storage=bool(version.storage),
        Deprecated=bool(version.deprecated),
        DeprecationWarning=version.deprecation_warning,
        Schema=version.schema,
        Subresources=version.subresources,
        AdditionalPrinterColumns=version.additional_printer_columns,
        SelectableFields=version.selectable_fields,
    )


def _validate_required_names(names: CustomResourceDefinitionNames) -> list[FieldError]:
    path = _SPEC.child("names")
    errors = [
        required(path.child(name))
        for name, value in (
            ("plural", names.plural),
            ("singular", names.singular),
            ("kind", names.kind),
            ("listKind", names.list_kind),
        )
        if not value
    ]
    return errors + validate_names(names, path)


def _validate_schema(
    validation: CustomResourceValidation | None, path: Path, has_status: bool, options: _Options
) -> list[FieldError]:
    schema = validation.open_apiv_3_schema if validation else None
    if schema is None:
        return []
    errors: list[FieldError] = []
    if has_status:
        errors += _validate_root(schema, path)
    if schema.nullable:
        errors.append(forbidden(path.child("openAPIV3Schema.nullable"), "nullable cannot be true at the root"))
    path = path.child("openAPIV3Schema")
    problem = None
    if options.structural:
        problem = conversion_problem(schema)
        if not problem:
            found = validate_structural(schema, path)
            errors += found or validate_defaults(schema, path, require_pruned=options.pruned_defaults)
    errors += validate_schema(schema, path, options.rules, is_root=True)
    if not errors and not problem and has_rules(schema):
        from ...structural.rulecosts import validate_default_rules, validate_rules  # loads CEL: only where needed

        errors += validate_rules(schema, path, unchanged=schema in options.known_schemas)
        errors += [] if errors else validate_default_rules(schema, path)
    if problem and not errors:
        errors.append(invalid(path, "", problem))
    return errors


def _validate_root(schema: Any, path: Path) -> list[FieldError]:
    """With a status subresource the schema of the status is cut out of the whole, which must lose nothing by it."""
    if schema.type and schema.type != "object":
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [invalid(path.child("openAPIV3Schema.type"), schema.type, detail)]
    additional = schema.additional_properties is not None or schema.default is not None
    if additional or any(getattr(schema, name) for name in _NOT_ALLOWED_AT_ROOT):
        where = "at the root of the schema if the status subresource is enabled"
        detail = f"only [{_ALLOWED_AT_ROOT}] fields are allowed {where}"
        return [invalid(path.child("openAPIV3Schema"), schema, detail)]
    return []


def _validate_conversion(spec: CustomResourceDefinitionSpec, options: _Options) -> list[FieldError]:
    conversion, path = spec.conversion or CustomResourceConversion(strategy="None"), _SPEC.child("conversion")
    errors: list[FieldError] = []
    if conversion.strategy != "None" and spec.preserve_unknown_fields:
        detail = "must be None if spec.preserveUnknownFields is true"
        errors.append(invalid(path.child("strategy"), conversion.strategy or "", detail))
    return errors + validate_conversion(
        conversion,
        path,
        recognized_version=options.recognized_review_version,
        allow_any_bundle=options.allow_any_bundle,
    )


def _validate_status(definition: CustomResourceDefinition) -> list[FieldError]:
    status = definition.status or CustomResourceDefinitionStatus()
    names = status.accepted_names or CustomResourceDefinitionNames()
    errors = validate_names(names, Path("status", "acceptedNames"))
    versions = (definition.spec or CustomResourceDefinitionSpec()).versions or []
    stored = status.stored_versions
    if not stored:
        return [*errors, invalid(_STORED, stored, "must have at least one stored version")]
    left = {name: index for index, name in enumerate(stored)}
    for version in versions:
        if left.pop(version.name or "", None) is None and version.storage:
            errors.append(invalid(_STORED, stored, f"must have the storage version {version.name or ''}"))
    for name, index in left.items():
        detail = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        errors.append(invalid(_STORED.index(index), name, detail))
    return errors


def _validate_preserve(
    spec: CustomResourceDefinitionSpec, before: CustomResourceDefinitionSpec | None
) -> list[FieldError]:
    if not spec.preserve_unknown_fields or (before is not None and before.preserve_unknown_fields):
        return []
    detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [invalid(_SPEC.child("preserveUnknownFields"), True, detail)]
