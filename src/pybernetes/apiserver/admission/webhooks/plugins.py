"""The two webhook plugins. The client is imported when there are webhooks to call."""

from __future__ import annotations

from collections.abc import Awaitable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..plugin import Attributes, Plugin
from .hooks import Hooks

if TYPE_CHECKING:
    from ...registry.registry import Registry
    from .calling import Dispatcher


class WebhookPlugin(Plugin):
    """Calls webhooks. `configurations` is where they are described, `place` who calls them."""

    configurations = ""
    place = ("", "")

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry, configuration)
        self._hooks = Hooks(registry, self.configurations)
        self._configuration = configuration
        self._dispatcher: Dispatcher | None = None
        if configuration is not None:
            self._load()  # errors in it fail the start of the server

    def look(self, attributes: Attributes) -> Awaitable[None] | None:
        """The calls that a request needs; None for the many that need none."""
        found = self._hooks.concerned(attributes)
        if not found:
            return None
        return (self._dispatcher or self._load()).dispatch(attributes, found)

    async def stop(self) -> None:
        if self._dispatcher is not None:
            await self._dispatcher.close()

    def _load(self) -> Dispatcher:
        module, name = self.place
        made: Dispatcher = getattr(import_module(f".{module}", __package__), name)(
            self.registry, self._configuration, self.name
        )
        self._dispatcher = made
        return made


class MutatingAdmissionWebhook(WebhookPlugin):
    """Upstream's MutatingAdmissionWebhook."""

    name = "MutatingAdmissionWebhook"
    configurations = "mutatingwebhookconfigurations"
    place = ("mutating", "MutatingDispatcher")

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.look(attributes)


class ValidatingAdmissionWebhook(WebhookPlugin):
    """Upstream's ValidatingAdmissionWebhook."""

    name = "ValidatingAdmissionWebhook"
    configurations = "validatingwebhookconfigurations"
    place = ("validating", "ValidatingDispatcher")

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.look(attributes)
