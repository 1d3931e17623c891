"""ResourceQuotas and LimitRanges."""

from __future__ import annotations

import uuid
from typing import Any, Final

from pybernetes.api.core.v1.quota import ResourceQuotaStatus
from pybernetes.api.quantity import parse
from pybernetes.apiserver.registry.strategy import Context, Strategy


class ResourceQuotaStrategy(Strategy):
    """Requests that may be larger than limits are worth a warning."""

    returns_deleted = True

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        obj.status = ResourceQuotaStatus()

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        hard = (obj.spec and obj.spec.hard) or {}
        warnings: list[str] = []
        for resource in ("cpu", "memory", "storage", "ephemeral-storage"):
            request, limit = f"requests.{resource}", f"limits.{resource}"
            if request not in hard and resource in ("cpu", "memory"):
                request = resource
            if request in hard and limit in hard and parse(str(hard[request])) > parse(str(hard[limit])):
                warnings.append(
                    f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})"
                )
        return warnings

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        return []


class LimitRangeStrategy(Strategy):
    """A LimitRange without a name gets one."""

    allow_create_on_update = True

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        if not obj.metadata.name:
            obj.metadata.name = str(uuid.uuid4())


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "resourcequotas": ResourceQuotaStrategy,
    "limitranges": LimitRangeStrategy,
}
