"""ResourceQuotas: what a namespace uses stays below what it may use.

Most namespaces have no quota, and most requests cost nothing: those that do are charged by `quota_charging`, which is
imported when the first quota is found.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pybernetes.api.resources import Resource

from ..registry.lister import Lister, lister
from .plugin import CREATE, UPDATE, Attributes, Plugin

if TYPE_CHECKING:
    from pybernetes.api.core.v1 import ResourceQuota as Quota

    from ..registry.registry import Registry
    from .quota_charging import Charging

_IGNORED = frozenset({("", "events"), ("events.k8s.io", "events")})  # as upstream has it


class ResourceQuota(Plugin):
    """Upstream's ResourceQuota."""

    name = "ResourceQuota"
    operations = (CREATE, UPDATE)

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry)
        self._charging: Charging | None = None
        self._limited = False
        """Whether something may only be used under a quota; then requests are looked at without one, too."""
        if configuration is not None:
            from .quota_charging import Charging
            from .quota_limits import read_configuration

            limited = read_configuration(configuration)
            self._limited = bool(limited)
            self._charging = Charging(registry, limited)
        if not self._limited:
            self.sleep_without("", "v1", "resourcequotas")

    @cached_property
    def _quotas(self) -> Lister[Quota]:
        return lister(self.registry, "", "v1", "resourcequotas")

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        if operation not in self.operations or not resource.namespaced:
            return False
        return resource.stored and (resource.group, resource.plural) not in _IGNORED

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        if not self._limited and not self._quotas.list(attributes.namespace):
            return None
        if self._charging is None:
            from .quota_charging import Charging

            self._charging = Charging(self.registry, [])
        return self._charging.charge(attributes)
