"""How custom resources are created and updated: every kind the same way, by its schema.

All but metadata counts as a change of what is wanted; with a status subresource the status does not, and belongs to it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import msgspec

from pybernetes.api import names
from pybernetes.api.apiextensions.v1 import JSONSchemaProps
from pybernetes.api.apiextensions.values import NEW, validate_value
from pybernetes.api.field import (
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    TYPE_INVALID,
    FieldError,
    Path,
    invalid,
)
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.validation import STANDARD_FINALIZERS, validate_object_meta, validate_object_meta_update
from pybernetes.api.structural import embedded, listtypes
from pybernetes.api.structural.objects import CustomObject, plain, short_numbers

from ..registry.strategy import Context, Strategy
from .resource import CustomResource
from .scale import validate_scale_spec, validate_scale_status

_BLOCKING: Final = frozenset({NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID})
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


class CustomResourceStrategy(Strategy):
    """One version of a custom resource."""

    has_generation = True
    allow_unconditional_update = False

    def __init__(self, resource: CustomResource) -> None:
        self.resource = resource
        self._custom = resource.custom
        self.has_status = self._custom.has_status
        self.checks_metadata = True

    def default(self, obj: CustomObject) -> None:
        """Does nothing: defaults are filled in when an object is read."""

    # -- create -------------------------------------------------------------------------------------------------

    def prepare_for_create(self, obj: CustomObject, context: Context) -> None:
        if self.has_status:
            obj.content.pop("status", None)
        obj.metadata.generation = 1

    @property
    def costly(self) -> bool:  # type: ignore[override]
        """Whether the definition's own rules may be expensive."""
        rules = self._custom.rules
        return rules is not None and rules.costly

    def validate(self, obj: CustomObject, context: Context) -> list[FieldError]:
        custom = self._custom
        custom.check_type(obj)
        namespaced = self.resource.namespaced
        errors = validate_object_meta(obj.metadata, namespaced, names.name_is_dns_subdomain, custom=True)
        obeys = custom.obeys(obj)
        if not obeys:
            obj.content = short_numbers(obj.content)
            errors += _schema_errors(custom.schema, plain(obj), NEW)
        if custom.scale is not None:
            errors += validate_scale_spec(custom.scale, obj.content) + validate_scale_status(custom.scale, obj.content)
        if not obeys:
            errors += embedded.validate(obj.content, custom.schema)
            errors += listtypes.validate(obj.content, custom.schema)
        return errors + self._rules(obj, None, errors, context)

    def warnings_on_create(self, obj: CustomObject, context: Context) -> list[str]:
        return _finalizer_warnings(obj.metadata.finalizers or ())

    # -- update -------------------------------------------------------------------------------------------------

    def prepare_for_update(self, new: CustomObject, old: CustomObject, context: Context) -> None:
        if self.has_status:
            if "status" in old.content:
                new.content["status"] = old.content["status"]
            else:
                new.content.pop("status", None)
        if self.changed(new, old):
            new.metadata.generation = (old.metadata.generation or 0) + 1

    def changed(self, new: CustomObject, old: CustomObject) -> bool:
        return new.content != old.content

    def validate_update(self, new: CustomObject, old: CustomObject, context: Context) -> list[FieldError]:
        custom = self._custom
        custom.check_type(new)
        errors = validate_object_meta_update(new.metadata, old.metadata, custom=True)
        obeys = custom.obeys(new)
        if not obeys:
            new.content = short_numbers(new.content)
            errors += _schema_errors(custom.schema, plain(new), plain(old))
        if custom.scale is not None:
            errors += validate_scale_spec(custom.scale, new.content) + validate_scale_status(custom.scale, new.content)
        if not obeys:
            errors += embedded.validate(new.content, custom.schema)
            errors += _ratcheted_lists(new, old, custom.schema)
        return errors + self._rules(new, old, errors, context)

    def warnings_on_update(self, new: CustomObject, old: CustomObject, context: Context) -> list[str]:
        before = set(old.metadata.finalizers or ())
        return _finalizer_warnings([each for each in new.metadata.finalizers or () if each not in before])

    def prepare_for_status_update(self, new: CustomObject, old: CustomObject, context: Context) -> None:
        status = new.content.get("status", NEW)
        entries = new.metadata.managed_fields
        new.metadata = msgspec.structs.replace(old.metadata, managed_fields=entries)
        new.content = deepcopy(old.content)
        if status is NEW:
            new.content.pop("status", None)
        else:
            new.content["status"] = status

    def validate_status_update(self, new: CustomObject, old: CustomObject, context: Context) -> list[FieldError]:
        custom = self._custom
        custom.check_type(new)
        errors = validate_object_meta_update(new.metadata, old.metadata, custom=True)
        obeys = custom.status_obeys(new)
        if not obeys and custom.status_schema is not None:
            before = old.content.get("status", NEW)
            errors += validate_value(new.content["status"], custom.status_schema, Path("status"), old=before)
        if custom.scale is not None:
            errors += validate_scale_status(custom.scale, new.content)
        if not obeys:
            errors += _ratcheted_lists(new, old, custom.schema)
        return errors + self._rules(new, old, errors, context)

    def _rules(
        self, new: CustomObject, old: CustomObject | None, errors: list[FieldError], context: Context
    ) -> list[FieldError]:
        """Violations of the definition's own rules (`x-kubernetes-validations`)."""
        rules = self._custom.rules
        if rules is None:
            return []
        if any(error.type in _BLOCKING for error in errors):
            return [invalid(None, None, _NOT_CHECKED)]
        return rules(plain(new), plain(old) if old is not None else None, context.warnings.append)


def _schema_errors(schema: JSONSchemaProps | None, value: dict[str, Any], old: Any) -> list[FieldError]:
    return [] if schema is None else validate_value(value, schema, old=old)


def _ratcheted_lists(new: CustomObject, old: CustomObject, schema: JSONSchemaProps | None) -> list[FieldError]:
    """Duplicates in sets and maps, unless there were some before."""
    found = listtypes.validate(new.content, schema)
    return [] if found and listtypes.validate(old.content, schema) else found


def _finalizer_warnings(finalizers: Any) -> list[str]:
    warnings = []
    for name in sorted(set(finalizers)):
        start = f"metadata.finalizers: {quote(name)}: "
        warnings += [start + problem for problem in names.is_qualified_name(name)]
        if "/" not in name and name not in STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            warnings.append(
                f"{start}prefer a domain-qualified finalizer name{path} "
                "to avoid accidental conflicts with other finalizer writers"
            )
    return warnings
