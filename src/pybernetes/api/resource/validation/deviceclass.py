"""DeviceClasses."""

from __future__ import annotations

from typing import Final

from ...core.resourcenames import is_extended
from ...equality import semantically_equal
from ...field import FieldError, Path, invalid
from ...meta.validation import validate_object_meta, validate_object_meta_update
from ...names import name_is_long_name
from ..v1 import DeviceClass, DeviceClassSpec
from .shared import validate_list, validate_opaque, validate_selectors

MAX_CONFIG: Final = 32

_SPEC = Path("spec")


def validate_device_class(obj: DeviceClass) -> list[FieldError]:
    """Validate a new DeviceClass."""
    return validate_object_meta(obj.metadata, False, name_is_long_name) + _validate_spec(obj, None)


def validate_device_class_update(new: DeviceClass, old: DeviceClass) -> list[FieldError]:
    """Everything may change."""
    errors = validate_object_meta(new.metadata, False, _whole_name)
    return errors + validate_object_meta_update(new.metadata, old.metadata) + _validate_spec(new, old)


def _whole_name(name: str, prefix: bool) -> list[str]:
    """The rule for names; that of `generateName` is checked elsewhere, for all kinds alike."""
    return [] if prefix else name_is_long_name(name, False)


def _validate_spec(obj: DeviceClass, old: DeviceClass | None) -> list[FieldError]:
    spec = obj.spec or DeviceClassSpec()
    before = old.spec if old else None
    stored = before is not None and semantically_equal(spec.config, before.config)
    errors = validate_selectors(spec.selectors, _SPEC.child("selectors"))
    errors += validate_list(
        spec.config,
        MAX_CONFIG,
        lambda config, path: validate_opaque(config.opaque, path.child("opaque"), stored=stored),
        _SPEC.child("config"),
    )
    name = spec.extended_resource_name
    if name is not None and not is_extended(name):
        errors.append(invalid(_SPEC.child("extendedResourceName"), name, "must be a valid extended resource name"))
    return errors
