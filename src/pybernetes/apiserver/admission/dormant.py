"""Plugins without work until they are configured: they are loaded when their first object appears.

Most clusters have neither webhooks nor policies; what would carry them out is a few thousand lines that need not be
read at every start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .plugin import Attributes, Plugin

if TYPE_CHECKING:
    from ..registry.registry import Registry

_GROUP = "admissionregistration.k8s.io"


class Dormant(Plugin):
    """Stands in for a plugin until there are objects of the resource that it follows, and calls it then."""

    def __init__(self, registry: Registry, name: str, plural: str, make: Callable[[], Plugin]) -> None:
        super().__init__(registry)
        self.name = name
        self.sleep_without(_GROUP, "v1", plural)
        self._make = make
        self._plugin: Plugin | None = None

    def awake(self) -> Plugin:
        """The plugin; it is made when the first request comes by."""
        if self._plugin is None:
            self._plugin = self._make()
        return self._plugin

    async def stop(self) -> None:
        if self._plugin is not None:
            await self._plugin.stop()


class DormantMutating(Dormant):
    """For a plugin that changes objects."""

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.awake().admit(attributes)


class DormantValidating(Dormant):
    """For a plugin that judges."""

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.awake().validate(attributes)


def dormant(registry: Registry, name: str, plural: str, make: Callable[[], Plugin]) -> Plugin:
    """A stand-in for the plugin of this name."""
    kind = DormantMutating if name.startswith("Mutating") else DormantValidating
    return kind(registry, name, plural, make)
