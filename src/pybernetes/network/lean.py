"""Reduces Services and EndpointSlices in the caches of `pyb node-network` to the fields that proxy and resolver use.

With 10,000 Services most of the process's memory are these objects, and half of each is for others: labels,
annotations, owners, the pods behind endpoints. Parts that many objects have in the same form are one object.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Service
from pybernetes.api.core.v1.service import ServiceSpec
from pybernetes.api.discovery.v1 import EndpointConditions, EndpointPort, EndpointSlice
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.proxy.frontends import FOREIGN_LABELS, SOURCE_RANGES_ANNOTATION
from pybernetes.proxy.proxier import SERVICE_NAME_LABEL, TRIGGER_TIME

_LABELS = (*sorted(FOREIGN_LABELS), SERVICE_NAME_LABEL)
_ANNOTATIONS = (SOURCE_RANGES_ANNOTATION, TRIGGER_TIME)
_WORDS = (
    "type",
    "session_affinity",
    "internal_traffic_policy",
    "external_traffic_policy",
    "ip_family_policy",
    "traffic_distribution",
)
"""Fields of a Service's spec that have one of a few texts."""
T = TypeVar("T")
SHARED = 4096
"""Parts of objects that are kept to be shared, at most."""


class Lean:
    """The transformation of an `InformerFactory`: call it with each object before it is cached."""

    def __init__(self) -> None:
        self._shared: dict[Hashable, Any] = {}

    def __call__(self, obj: Kind) -> None:
        if isinstance(obj, Service | EndpointSlice) and obj.metadata is not None:
            self._metadata(obj.metadata)
        if isinstance(obj, Service):
            if obj.spec is not None:
                self._spec(obj.spec)
            if obj.status is not None and not (obj.status.load_balancer and obj.status.load_balancer.ingress):
                obj.status = None
        elif isinstance(obj, EndpointSlice):
            obj.address_type = self._one(obj.address_type)
            obj.ports = self._ports(obj.ports) if obj.ports else obj.ports
            for endpoint in obj.endpoints or ():
                endpoint.target_ref = endpoint.deprecated_topology = None
                endpoint.node_name = self._one(endpoint.node_name)
                endpoint.zone = self._one(endpoint.zone)
                if endpoint.conditions is not None:
                    endpoint.conditions = self._conditions(endpoint.conditions)

    def _spec(self, spec: ServiceSpec) -> None:
        spec.selector = None
        for name in _WORDS:
            setattr(spec, name, self._one(getattr(spec, name)))
        families = spec.ip_families
        spec.ip_families = self._keep(("families", *families), families) if families else families
        if spec.cluster_ips and spec.cluster_ips[0] == spec.cluster_ip:
            spec.cluster_ips[0] = spec.cluster_ip
        for port in spec.ports or ():
            port.name, port.protocol = self._one(port.name), self._one(port.protocol)

    def _metadata(self, metadata: ObjectMeta) -> None:
        metadata.namespace = self._one(metadata.namespace)
        metadata.labels = _only(_LABELS, metadata.labels)
        metadata.annotations = _only(_ANNOTATIONS, metadata.annotations)
        metadata.creation_timestamp = metadata.generation = None
        metadata.owner_references = metadata.finalizers = metadata.generate_name = None

    def _conditions(self, conditions: EndpointConditions) -> EndpointConditions:
        key = (conditions.ready, conditions.serving, conditions.terminating)
        return self._keep(("conditions", *key), conditions)

    def _ports(self, ports: list[EndpointPort]) -> list[EndpointPort]:
        key = tuple((each.name, each.protocol, each.port, each.app_protocol) for each in ports)
        return self._keep(("ports", *key), ports)

    def _one(self, text: str | None) -> str | None:
        return self._keep(text, text) if text else text

    def _keep(self, key: Hashable, value: T) -> T:
        if len(self._shared) >= SHARED:
            found: T = self._shared.get(key, value)
        else:
            found = self._shared.setdefault(key, value)
        return found


def _only(keys: Sequence[str], of: dict[str, str] | None) -> dict[str, str] | None:
    """These entries, with the keys of this module: each object has texts of its own for them."""
    return {key: of[key] for key in keys if key in of} or None if of else None
