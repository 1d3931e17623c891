"""A custom resource in the table of what is served: a `Resource` that knows its version's definition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from pybernetes.api.apiextensions.v1 import (
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
)
from pybernetes.api.resources import Resource, Subresource

from .outline import Outline

if TYPE_CHECKING:
    from .version import CustomVersion

_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")  # upstream's order
_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")


@dataclass(frozen=True, eq=False)
class CustomResource(Resource):
    """One version of a kind that a CustomResourceDefinition defines."""

    list_name: str = ""
    outline: Outline | None = None
    defined: CustomResourceDefinitionVersion | None = None

    @cached_property
    def list_kind(self) -> str:
        return self.list_name

    @cached_property
    def package(self) -> str:
        return "unstructured"

    @cached_property
    def type(self) -> type[Any]:
        """There is no class: objects are plain JSON."""
        raise TypeError(f"{self.fullname} is a custom resource and has no class")

    @cached_property
    def custom(self) -> CustomVersion:
        """How objects of this version are read, checked and shown."""
        from .version import CustomVersion

        return CustomVersion(self)

    @property
    def spec(self) -> CustomResourceDefinitionSpec:
        """The spec of the definition."""
        assert self.outline is not None
        return cast(CustomResourceDefinitionSpec, self.outline.definition.spec)

    @property
    def schema(self) -> bytes | msgspec.Raw | None:
        """The schema of this version as it is written."""
        assert self.outline is not None
        return self.outline.schemas.get(self.version)


def storage_version(spec: CustomResourceDefinitionSpec) -> str:
    """The version that objects are stored as."""
    return next((version.name or "" for version in spec.versions or () if version.storage), "")


def resource_of(outline: Outline, version: CustomResourceDefinitionVersion) -> CustomResource:
    """The resource of one version, by the names that were accepted."""
    definition = outline.definition
    spec = definition.spec or CustomResourceDefinitionSpec()
    names = (definition.status and definition.status.accepted_names) or CustomResourceDefinitionNames()
    group, plural = spec.group or "", names.plural or ""
    subresources = []
    if version.subresources is not None and version.subresources.status is not None:
        subresources.append(Subresource("status", _SUBRESOURCE_VERBS))
    if version.subresources is not None and version.subresources.scale is not None:
        subresources.append(Subresource("scale", _SUBRESOURCE_VERBS, "Scale", "autoscaling", "v1"))
    return CustomResource(
        group=group,
        version=version.name or "",
        plural=plural,
        kind=names.kind or "",
        namespaced=spec.scope == "Namespaced",
        singular=names.singular or "",
        verbs=_VERBS,
        short_names=tuple(names.short_names or ()),
        categories=tuple(names.categories or ()),
        subresources=tuple(subresources),
        storage_prefix=f"/registry/{group}/{plural}/",
        storage_version=f"{group}/{storage_version(spec)}",
        list_name=names.list_kind or "",
        outline=outline,
        defined=version,
    )
