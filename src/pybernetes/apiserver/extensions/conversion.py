"""Objects in the other versions of their kind: by the name of the version alone, or by a webhook.

A `Converter` belongs to one state of a definition; forms that were made by it are worth nothing once there is another.
"""

from __future__ import annotations

from typing import Any

from pybernetes.api.apiextensions.v1 import CustomResourceDefinition, CustomResourceDefinitionSpec

from ..registry.registry import Registry
from .resource import CustomResource, resource_of
from .version import CustomVersion


class Converter:
    """The versions of one definition, and the way between them."""

    remote = False
    """Whether somebody has to be asked, so that conversion takes time and can fail."""

    def __init__(self, definition: CustomResourceDefinition) -> None:
        spec = definition.spec or CustomResourceDefinitionSpec()
        self.definition = definition
        self.resources: dict[str, CustomResource] = {}
        for version in spec.versions or ():
            resource = resource_of(definition, version)
            self.resources[resource.api_version] = resource

    @staticmethod
    def of(definition: CustomResourceDefinition, registry: Registry) -> Converter:
        """The way that a definition asks for."""
        return Converter(definition)

    @property
    def stored(self) -> CustomResource:
        """The version that objects are stored as."""
        return next(each for each in self.resources.values() if each.api_version == each.storage_version)

    def version(self, api_version: str) -> CustomVersion | None:
        """One of the versions, served or not."""
        resource = self.resources.get(api_version)
        return resource.custom if resource is not None else None

    async def convert(self, objects: list[dict[str, Any]], api_version: str) -> list[dict[str, Any]]:
        """The same objects in another version."""
        return [{**each, "apiVersion": api_version} for each in objects]
