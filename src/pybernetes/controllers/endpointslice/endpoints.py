"""Builds the endpoint of a pod in a Service: addresses, ports and conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pybernetes.api.addresses import parse_ip
from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Node, Pod, Service
from pybernetes.api.core.v1.pod import PodSpec, PodStatus
from pybernetes.api.core.v1.reference import ObjectReference
from pybernetes.api.core.v1.service import ServicePort, ServiceSpec
from pybernetes.api.discovery.v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice

from ..common.meta import is_deleting, labels_of, name_of
from ..common.pods import is_ready, is_terminal, node_of

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
SERVICE_NAME_LABEL: Final = "kubernetes.io/service-name"
MANAGED_BY_LABEL: Final = "endpointslice.kubernetes.io/managed-by"
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
RESERVED_LABELS: Final = frozenset({SERVICE_NAME_LABEL, MANAGED_BY_LABEL, HEADLESS_LABEL})

Ports = tuple[tuple[str, str, int, str | None], ...]


class EndpointKey(NamedTuple):
    """The identity of an endpoint, by which an update finds it."""

    addresses: tuple[str, ...]
    hostname: str
    namespace: str
    name: str


def endpoint_key(endpoint: Endpoint) -> EndpointKey:
    """The identity of an endpoint within a slice."""
    target = endpoint.target_ref
    return EndpointKey(
        tuple(sorted(endpoint.addresses or ())),
        endpoint.hostname or "",
        (target.namespace if target else None) or "",
        (target.name if target else None) or "",
    )


def same_endpoint(a: Endpoint, b: Endpoint) -> bool:
    """Whether two endpoints of one key say the same; hints and the target's revision do not count."""
    return (a.node_name, a.zone, a.conditions or EndpointConditions()) == (
        b.node_name,
        b.zone,
        b.conditions or EndpointConditions(),
    ) and _target(a.target_ref) == _target(b.target_ref)


def ports_key(ports: Iterable[EndpointPort] | None) -> Ports:
    """The identity of a set of ports; a slice has endpoints of one such set."""
    return tuple(
        sorted(
            ((each.name or "", each.protocol or "", each.port or 0, each.app_protocol) for each in ports or ()),
            key=str,
        )
    )


def pod_belongs(pod: Pod, *, include_terminating: bool = True) -> bool:
    """Whether a pod is an endpoint at all, ready or not: it has an address and has not ended."""
    status = pod.status or PodStatus()
    if is_terminal(pod) or not (status.pod_ip or status.pod_ips):
        return False
    return include_terminating or not is_deleting(pod)


def pod_endpoint(pod: Pod, node: Node | None, service: Service, address_type: str) -> Endpoint:
    """The endpoint that a pod is; without addresses if it has none of this family."""
    spec, service_spec = pod.spec or PodSpec(), service.spec or ServiceSpec()
    metadata = pod.metadata
    assert metadata is not None
    serving, terminating = is_ready(pod), is_deleting(pod)
    zone = labels_of(node).get(ZONE_LABEL) if node else None
    return Endpoint(
        addresses=pod_addresses(pod, address_type),
        conditions=EndpointConditions(
            ready=bool(service_spec.publish_not_ready_addresses) or (serving and not terminating),
            serving=serving,
            terminating=terminating,
        ),
        hostname=spec.hostname if is_named_by(pod, service) else None,
        target_ref=ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
        node_name=spec.node_name or None,
        zone=zone or None,
    )


def is_named_by(pod: Pod, service: Service) -> bool:
    """Whether a pod's host name is one within this service."""
    spec = pod.spec or PodSpec()
    same = pod.metadata is not None and service.metadata is not None
    same = same and pod.metadata.namespace == service.metadata.namespace  # type: ignore[union-attr]
    return bool(spec.hostname) and spec.subdomain == name_of(service) and same


def pod_addresses(pod: Pod, address_type: str) -> list[str]:
    """The pod's addresses of a family, `IPv4` or `IPv6`."""
    parsed = (parse_ip(each.ip or "") for each in (pod.status.pod_ips if pod.status else None) or ())
    return [str(each) for each in parsed if each is not None and f"IPv{each.version}" == address_type]


def pod_ports(service: Service, pod: Pod) -> list[EndpointPort]:
    """The service's ports with this pod's numbers; those that the pod does not have are left out."""
    found = []
    for each in (service.spec.ports if service.spec else None) or ():
        number = find_port(pod, each)
        if number is not None:
            found.append(
                EndpointPort(name=each.name or "", port=number, protocol=each.protocol, app_protocol=each.app_protocol)
            )
    return found


def find_port(pod: Pod, port: ServicePort) -> int | None:
    """The number behind a service's target port in this pod; a name is looked up in containers and sidecars."""
    target = port.target_port
    if not isinstance(target, str):
        return int(target or 0)
    spec = pod.spec or PodSpec()
    sidecars = (each for each in spec.init_containers or () if is_sidecar(each))
    for container in (*(spec.containers or ()), *sidecars):
        for each in container.ports or ():
            if each.name == target and each.protocol == port.protocol:
                return int(each.container_port or 0)
    return None


def address_types(service: Service) -> list[str]:
    """The families of a service's slices."""
    spec = service.spec or ServiceSpec()
    families = [each for each in spec.ip_families or () if each in ("IPv4", "IPv6")]
    if families:
        return families
    if spec.cluster_ip and spec.cluster_ip != "None":
        return ["IPv6" if ":" in spec.cluster_ip else "IPv4"]
    return ["IPv4", "IPv6"]


def is_headless(service: Service) -> bool:
    """Whether the service has no address of its own."""
    return (service.spec.cluster_ip if service.spec else None) in (None, "", "None")


def slice_labels(service: Service, controller: str) -> dict[str, str]:
    """The labels of a service's slices: the service's own, whose slice it is, and who keeps it."""
    labels = {key: value for key, value in labels_of(service).items() if key not in RESERVED_LABELS}
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    labels[SERVICE_NAME_LABEL] = name_of(service)
    labels[MANAGED_BY_LABEL] = controller
    return labels


def labels_differ(current: EndpointSlice, service: Service) -> bool:
    """Whether the service's own labels on a slice are out of date."""
    theirs = {key: value for key, value in labels_of(current).items() if key not in RESERVED_LABELS}
    return theirs != {key: value for key, value in labels_of(service).items() if key not in RESERVED_LABELS}


def membership_changed(old: Pod, new: Pod) -> bool:
    """Whether a pod's change can matter to the endpoints it is in already."""
    return (
        is_deleting(old) != is_deleting(new)
        or is_ready(old) != is_ready(new)
        or is_terminal(old) != is_terminal(new)
        or _ips(old) != _ips(new)
        or node_of(old) != node_of(new)
    )


def selection_changed(old: Pod, new: Pod) -> bool:
    """Whether a pod's change can bring it into other services, or under another name."""
    a, b = old.spec or PodSpec(), new.spec or PodSpec()
    return labels_of(old) != labels_of(new) or (a.hostname, a.subdomain) != (b.hostname, b.subdomain)


def selects(service: Service, labels: Mapping[str, str]) -> bool:
    """Whether a service has a selector and it fits."""
    selector = service.spec.selector if service.spec else None
    return selector is not None and all(labels.get(key) == value for key, value in selector.items())


def _ips(pod: Pod) -> list[str | None]:
    return [each.ip for each in (pod.status.pod_ips if pod.status else None) or ()]


def _target(reference: ObjectReference | None) -> tuple[str | None, ...]:
    if reference is None:
        return ()
    return (reference.kind, reference.namespace, reference.name, reference.uid, reference.api_version)
