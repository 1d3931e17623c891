"""How EndpointSlices differ."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pybernetes.api.addresses import warnings_for_ip
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.api.equality import semantically_equal
from pybernetes.api.field import Path
from pybernetes.api.names import is_dns1123_subdomain
from pybernetes.apiserver.registry.strategy import Context, Strategy

MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
HOSTNAME: Final = "kubernetes.io/hostname"
_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


class EndpointSliceStrategy(Strategy):
    """Labels count as part of what a slice says: a change of them is a new generation too."""

    has_generation = True

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        super().prepare_for_create(obj, context)
        _drop_topology(obj, None)

    def prepare_for_update(self, new: Any, old: Any, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        if not semantically_equal(new.endpoints, old.endpoints):
            _drop_topology(new, old)

    def changed(self, new: Any, old: Any) -> bool:
        return not all(
            semantically_equal(getattr(new, name), getattr(old, name))
            for name in ("address_type", "endpoints", "ports")
        ) or not semantically_equal(new.metadata.labels, old.metadata.labels)

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        warnings = ["spec.addressType: FQDN endpoints are deprecated"] if obj.address_type == "FQDN" else []
        return warnings + _address_warnings(obj)

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        return _address_warnings(new)


def _drop_topology(new: EndpointSlice, old: EndpointSlice | None) -> None:
    """The topology of v1beta1 can no longer be set; the node that an old slice has in it moves to its field."""
    known = {(each.deprecated_topology or {}).get(HOSTNAME) for each in (old and old.endpoints) or ()}
    for endpoint in new.endpoints or ():
        node = (endpoint.deprecated_topology or {}).get(HOSTNAME)
        if endpoint.node_name is None and node and node in known and not is_dns1123_subdomain(node):
            endpoint.node_name = node
        endpoint.deprecated_topology = None


def _address_warnings(obj: EndpointSlice) -> list[str]:
    labels = (obj.metadata and obj.metadata.labels) or {}
    if labels.get(MANAGED_BY) in _CONTROLLERS:
        return []
    return [
        text
        for index, endpoint in enumerate(obj.endpoints or ())
        for position, address in enumerate(endpoint.addresses or ())
        if _is_unusual(address)
        for text in warnings_for_ip(Path("endpoints").index(index).child("addresses").index(position), address)
    ]


@lru_cache(16_384)
def _is_unusual(address: str) -> bool:
    return bool(warnings_for_ip(None, address))


STRATEGIES: Final[dict[str, type[Strategy]]] = {"endpointslices": EndpointSliceStrategy}
