"""The webhooks of all configurations, compiled: whom a request of some form concerns is looked up, not searched for.

The table is made anew when a configuration changes (the lister's stamp says so): a change holds from the next
request on.
"""

from __future__ import annotations

from typing import Any

from pybernetes.api.resources import Resource

from ...registry.lister import Lister, lister
from ...registry.registry import Registry
from ..matching import EXEMPT_GROUP, Form, Selectors, form_of, rules_for
from ..plugin import Attributes


class Hook:
    """One webhook of a configuration."""

    __slots__ = ("_conditions", "configuration", "ignores", "index", "name", "selectors", "uid", "webhook")

    def __init__(self, configuration: str, webhook: Any, uid: str, index: int) -> None:
        self.configuration = configuration
        self.webhook = webhook
        self.name: str = webhook.name or ""
        self.uid = uid
        self.index = index
        self.ignores = webhook.failure_policy == "Ignore"
        self.selectors = Selectors(webhook.namespace_selector, webhook.object_selector)
        self._conditions: Any = None

    @property
    def within(self) -> float:
        """Seconds for an answer."""
        return float(self.webhook.timeout_seconds or 10)

    @property
    def conditions(self) -> Any:
        """The match conditions, compiled when first asked for; None if there are none."""
        if self._conditions is None and self.webhook.match_conditions:
            from pybernetes.api.admissionregistration.expressions import environment

            from ..expressions import MatchConditions

            self._conditions = MatchConditions(
                self.webhook.match_conditions, environment(), self.webhook.failure_policy
            )
        return self._conditions


Invocation = tuple[Hook, Resource]
"""A webhook and the resource in the version that it wants to see."""


class Hooks:
    """All webhooks of one kind of configuration."""

    def __init__(self, registry: Registry, plural: str) -> None:
        self._registry = registry
        self._plural = plural
        self._lister: Lister[Any] | None = None
        self._changed = self._generation = -1
        self._hooks: list[Hook] = []
        self._table: dict[Form, tuple[Invocation, ...]] = {}

    def concerned(self, attributes: Attributes) -> tuple[Invocation, ...]:
        """The webhooks whose rules are about requests of this form, in the order they are called."""
        configurations = self._lister
        if configurations is None:
            configurations = self._lister = lister(self._registry, EXEMPT_GROUP, "v1", self._plural)
        if self._changed != configurations.changed or self._generation != self._registry.generation:
            self._read(configurations)
        if not self._hooks:
            return ()
        form = form_of(attributes)
        found = self._table.get(form)
        if found is None:
            found = self._table[form] = tuple(self._find(form))
        return found

    def _read(self, configurations: Lister[Any]) -> None:
        self._changed, self._generation = configurations.changed, self._registry.generation
        self._table = {}
        self._hooks = []
        for configuration in sorted(configurations.list(), key=lambda each: each.metadata.name):
            name = configuration.metadata.name
            for position, webhook in enumerate(configuration.webhooks or ()):
                uid = f"{name}/{webhook.name}/{position}"
                self._hooks.append(Hook(name, webhook, uid, len(self._hooks)))

    def _find(self, form: Form) -> list[Invocation]:
        if form[1].group == EXEMPT_GROUP:
            return []
        found = []
        for hook in self._hooks:
            matches = rules_for(hook.webhook.rules or (), hook.webhook.match_policy, form, self._registry)
            if matches:
                found.append((hook, matches[0].target))
        return found
