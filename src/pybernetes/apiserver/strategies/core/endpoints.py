"""Endpoints."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.addresses import warnings_for_ip
from pybernetes.api.core.v1.service import Endpoints
from pybernetes.api.field import Path
from pybernetes.apiserver.registry.strategy import Context, Strategy

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"


class EndpointsStrategy(Strategy):
    """Endpoints of controllers are not looked at for warnings: they have none."""

    allow_create_on_update = True

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        return endpoints_warnings(obj)


def endpoints_warnings(endpoints: Endpoints) -> list[str]:
    """Addresses that are written in an unusual way."""
    labels = (endpoints.metadata and endpoints.metadata.labels) or {}
    if labels.get(MANAGED_BY) == "endpoint-controller":
        return []
    warnings: list[str] = []
    for index, subset in enumerate(endpoints.subsets or ()):
        path = Path("subsets").index(index)
        for name, addresses in (("addresses", subset.addresses), ("notReadyAddresses", subset.not_ready_addresses)):
            for position, address in enumerate(addresses or ()):
                warnings += warnings_for_ip(path.child(name).index(position).child("ip"), address.ip or "")
    return warnings


STRATEGIES: Final[dict[str, type[Strategy]]] = {"endpoints": EndpointsStrategy}
