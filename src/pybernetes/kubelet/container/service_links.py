"""Services as environment variables: `WEB_SERVICE_HOST`, `WEB_SERVICE_PORT`, and the older `WEB_PORT_80_TCP_ADDR`...

Every container gets those of `default/kubernetes`, by which clients inside find the API server, and, unless
`enableServiceLinks` is false, those of all Services of its namespace that have an address.
"""

from __future__ import annotations

from collections.abc import Iterable

from pybernetes.api.core.v1 import Service, ServiceSpec

MASTER = ("default", "kubernetes")


def service_environment(services: Iterable[Service], namespace: str, enable_service_links: bool) -> dict[str, str]:
    """The variables for a container in a namespace."""
    chosen: dict[str, Service] = {}
    for service in services:
        metadata = service.metadata
        if metadata is None or not _has_ip(service):
            continue
        name = metadata.name or ""
        if (metadata.namespace, name) == MASTER:
            chosen.setdefault(name, service)
        elif metadata.namespace == namespace and enable_service_links:
            chosen[name] = service
    return {key: value for name, service in sorted(chosen.items()) for key, value in _variables(name, service)}


def _has_ip(service: Service) -> bool:
    return (service.spec.cluster_ip if service.spec else None) not in (None, "", "None")


def _variables(service_name: str, service: Service) -> Iterable[tuple[str, str]]:
    spec = service.spec or ServiceSpec()
    prefix, ip, ports = _variable(service_name), spec.cluster_ip or "", spec.ports or []
    yield f"{prefix}_SERVICE_HOST", ip
    if not ports:  # the API refuses a Service with an address and no port
        return
    yield f"{prefix}_SERVICE_PORT", str(ports[0].port)
    yield from ((f"{prefix}_SERVICE_PORT_{_variable(each.name)}", str(each.port)) for each in ports if each.name)
    host = f"[{ip}]" if ":" in ip else ip
    for index, port in enumerate(ports):
        protocol = (port.protocol or "TCP").lower()
        url = f"{protocol}://{host}:{port.port}"
        if index == 0:
            yield f"{prefix}_PORT", url
        own = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
        yield own, url
        yield f"{own}_PROTO", protocol
        yield f"{own}_PORT", str(port.port)
        yield f"{own}_ADDR", ip


def _variable(name: str) -> str:
    return name.replace("-", "_").upper()
