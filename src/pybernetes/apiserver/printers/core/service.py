"""Services and Endpoints: addresses and ports."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Final

from pybernetes.api.core.v1 import Endpoints, EndpointSubset, Service, ServicePort, ServiceSpec

from .. import formats
from ..duration import UNKNOWN
from ..printer import AGE, NAME, NONE, SELECTOR, Cells, Printer, age, name, text

_ENDPOINTS_SHOWN: Final = 3


def _service(service: Service, now: float) -> Cells:
    spec = service.spec or ServiceSpec()
    return [
        name(service),
        spec.type or "",
        spec.cluster_ips[0] if spec.cluster_ips else NONE,
        _external(service, spec),
        ",".join(map(_port, spec.ports or ())) or NONE,
        age(service, now),
        formats.label_set(spec.selector),
    ]


def _external(service: Service, spec: ServiceSpec) -> str:
    """Where the service is reached from outside the cluster; depends on its type."""
    given = spec.external_ips or []
    match spec.type:
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            return ",".join([*_balancers(service), *given]) or "<pending>"
        case "ExternalName":
            return spec.external_name or ""
    return UNKNOWN


def _balancers(service: Service) -> list[str]:
    ingress = (service.status and service.status.load_balancer and service.status.load_balancer.ingress) or ()
    return sorted({each.ip or each.hostname or "" for each in ingress} - {""})


def _port(port: ServicePort) -> str:
    node_port = f":{port.node_port}" if port.node_port else ""
    return f"{port.port or 0}{node_port}/{port.protocol or ''}"


def _endpoints(endpoints: Endpoints, now: float) -> Cells:
    subsets = endpoints.subsets or ()
    shown = list(islice((each for subset in subsets for each in _subset(subset)), _ENDPOINTS_SHOWN + 1))
    count = sum(len(subset.addresses or ()) * max(len(subset.ports or ()), 1) for subset in subsets)
    listed = formats.cut(shown, count, _ENDPOINTS_SHOWN) if endpoints.subsets else NONE
    return [name(endpoints), listed, age(endpoints, now)]


def _subset(subset: EndpointSubset) -> Iterator[str]:
    addresses = (each.ip or "" for each in subset.addresses or ())
    if not subset.ports:  # a headless service needs none
        yield from addresses
        return
    for port, each in product(subset.ports, subset.addresses or ()):
        address = each.ip or ""
        yield f"[{address}]:{port.port or 0}" if ":" in address else f"{address}:{port.port or 0}"


SERVICE: Final = Printer(
    (
        NAME,
        text("Type", "How the service is reached"),
        text("Cluster-IP", "Address inside the cluster"),
        text("External-IP", "Addresses from outside"),
        text("Port(s)", "Ports, with the node's port after a colon"),
        AGE,
        SELECTOR,
    ),
    _service,
)
ENDPOINTS: Final = Printer((NAME, text("Endpoints", "Addresses and ports that are ready"), AGE), _endpoints)
