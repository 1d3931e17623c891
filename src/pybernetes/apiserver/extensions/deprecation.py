"""Warnings for clients that use a version which its definition marks as deprecated."""

from __future__ import annotations

from pybernetes.api.versions import newer, priority

from .resource import CustomResource


def warning_of(resource: CustomResource) -> str:
    """The warning, empty if the version is not deprecated."""
    defined, spec = resource.defined, resource.spec
    if defined is None or not defined.deprecated:
        return ""
    if defined.deprecation_warning is not None:
        return defined.deprecation_warning
    kind = spec.names.kind if spec.names else ""
    others = [each.name or "" for each in spec.versions or () if each.served and not each.deprecated]
    better = sorted((each for each in others if newer(each, resource.version)), key=priority)
    message = f"{spec.group}/{resource.version} {kind} is deprecated"
    return f"{message}; use {spec.group}/{better[0]} {kind}" if better else message
