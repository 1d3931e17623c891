"""Where a Service is: an address to connect to.

Upstream goes to the cluster IP and leaves the rest to the service proxy of its host, or, with aggregator routing, to an
endpoint. An API server of ours need not have a proxy beside it, so endpoints are asked first and the cluster IP is
what is left when there are none that we know of.
"""

from __future__ import annotations

import random
from typing import Any

from pybernetes.api.gocompat.quote import quote

from ..registry.lister import lister
from ..registry.registry import Registry


class Unresolved(Exception):
    """There is no way to the Service; the text says why, in upstream's words."""


async def resolve(registry: Registry, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Host and port of one that serves this port of the Service. Raises Unresolved."""
    return random.choice(await candidates(registry, namespace, name, port))


async def candidates(registry: Registry, namespace: str, name: str, port: int) -> list[tuple[str, int]]:
    """Host and port of all that serve this port of the Service, at least one. Raises Unresolved."""
    service = await lister(registry, "", "v1", "services").find(namespace, name)
    if service is None:
        raise Unresolved(f"service {quote(name)} not found")
    spec = service.spec
    if spec.type == "ExternalName":
        return [(spec.external_name or "", port)]
    wanted = next((each for each in spec.ports or () if each.port == port), None)
    if wanted is None:
        raise Unresolved(f"no service port {port} found for service {quote(name)}")
    found = _endpoints(registry, namespace, name, wanted)
    if found:
        return found
    if not spec.cluster_ip or spec.cluster_ip == "None":
        raise Unresolved(f"no endpoints available for service {quote(name)}")
    return [(spec.cluster_ip, port)]


def _endpoints(registry: Registry, namespace: str, name: str, wanted: Any) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for slice in lister(registry, "discovery.k8s.io", "v1", "endpointslices").list(namespace):
        if (slice.metadata.labels or {}).get("kubernetes.io/service-name") != name:
            continue
        port = next((each.port for each in slice.ports or () if (each.name or "") == (wanted.name or "")), None)
        if port is None:
            continue
        for endpoint in slice.endpoints or ():
            conditions = endpoint.conditions
            if conditions is None or conditions.ready is not False:
                found += [(address, port) for address in endpoint.addresses or ()]
    return found
