"""Validation of InitializerConfigurations."""

from __future__ import annotations

from ...field import FieldError, Path, duplicate, invalid, required
from ...meta.validation import validate_object_meta, validate_object_meta_update
from ...names import is_dns1123_subdomain
from ..v1alpha1 import InitializerConfiguration, Rule
from .rules import validate_present


def validate_initializer_configuration(obj: InitializerConfiguration) -> list[FieldError]:
    """Names are unique and belong to a domain; rules name resources, no subresources."""
    errors = validate_object_meta(obj.metadata, False, lambda name, prefix: is_dns1123_subdomain(name))
    path = Path("initializers")
    seen: set[str] = set()
    for index, each in enumerate(obj.initializers or ()):
        at, name = path.index(index), each.name or ""
        errors += validate_initializer_name(name, at.child("name"))
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen.add(name)
        for number, rule in enumerate(each.rules or ()):
            errors += _validate_rule(rule, at.child("rules").index(number))
    return errors


def validate_initializer_configuration_update(
    new: InitializerConfiguration, old: InitializerConfiguration
) -> list[FieldError]:
    """As a new one."""
    return validate_object_meta_update(new.metadata, old.metadata) + validate_initializer_configuration(new)


def validate_initializer_name(name: str, path: Path) -> list[FieldError]:
    """A name in a domain: three parts at least, so that two makers do not choose the same."""
    if not name:
        return [required(path)]
    problems = is_dns1123_subdomain(name)
    if problems:
        return [invalid(path, name, each) for each in problems]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _validate_rule(rule: Rule, path: Path) -> list[FieldError]:
    errors = validate_present(rule.api_groups or [], path.child("apiGroups"), "API groups")
    versions, at = rule.api_versions or [], path.child("apiVersions")
    errors += validate_present(versions, at, "API versions")
    errors += [required(at.index(index)) for index, version in enumerate(versions) if not version]
    at = path.child("resources")
    errors += validate_present(rule.resources or [], at, "resources")
    for index, name in enumerate(rule.resources or ()):
        if not name:
            errors.append(required(at.index(index)))
        elif "/" in name:
            errors.append(invalid(at.index(index), name, "must not specify subresources"))
    return errors
