"""Admission: the last word on what may be stored.

One small interface. A plugin that changes objects overrides `admit`, one that only judges overrides `validate`; all
`admit`s run before the object is validated, all `validate`s after. Raising an APIError ends the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.api.resources import Resource

if TYPE_CHECKING:
    from ..registry.registry import Registry

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


class Attributes(msgspec.Struct, gc=False):
    """What is about to happen."""

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    new: Any
    old: Any
    user: Any
    dry_run: bool
    warnings: list[str]
    options: Any = None


class Plugin:
    """An admission plugin. `operations` are those it wants to see."""

    name = ""
    operations: tuple[str, ...] = (CREATE, UPDATE, DELETE, CONNECT)

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    async def admit(self, attributes: Attributes) -> None:
        """Change the new object, or refuse it."""

    async def validate(self, attributes: Attributes) -> None:
        """Refuse the new object; it must not be changed any more."""


class Chain:
    """The plugins in order; what a plugin does not override is never called."""

    def __init__(self, plugins: list[Plugin]) -> None:
        self.plugins = plugins
        self._admit = _by_operation(plugins, "admit")
        self._validate = _by_operation(plugins, "validate")

    async def admit(self, attributes: Attributes) -> None:
        """Let every mutating plugin act."""
        for plugin in self._admit[attributes.operation]:
            await plugin.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Let every validating plugin judge."""
        for plugin in self._validate[attributes.operation]:
            await plugin.validate(attributes)


def _by_operation(plugins: list[Plugin], method: str) -> dict[str, list[Plugin]]:
    overriding = [plugin for plugin in plugins if getattr(type(plugin), method) is not getattr(Plugin, method)]
    return {
        operation: [plugin for plugin in overriding if operation in plugin.operations]
        for operation in (CREATE, UPDATE, DELETE, CONNECT)
    }
