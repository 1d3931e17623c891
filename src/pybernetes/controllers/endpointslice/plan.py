"""Plans the writes that make a Service's slices match its pods. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from pybernetes.api.core.v1 import Node, Pod, Service
from pybernetes.api.discovery.v1 import Endpoint, EndpointPort, EndpointSlice
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.keys import controller_reference, copy, key_of, uid_of

from ..common.meta import is_deleting, labels_of, meta, name_of
from ..common.pods import node_of, pod_name_prefix
from .endpoints import (
    EndpointKey,
    Ports,
    address_types,
    endpoint_key,
    labels_differ,
    pod_belongs,
    pod_endpoint,
    pod_ports,
    ports_key,
    slice_labels,
)
from .hints import HintEvent, Topology, hint_near, hint_nothing, near, wants_topology
from .packing import Changes, pack

CONTROLLER: Final = "endpointslice-controller.k8s.io"
TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
MAX_ENDPOINTS: Final = 100
"""The default number of endpoints in a slice; the API takes up to 1000."""


@dataclass
class Plan:
    """Writes, events, and pods that had to be left out for now."""

    changes: Changes = field(default_factory=Changes)
    events: list[HintEvent] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def plan(
    service: Service,
    pods: Iterable[Pod],
    node: Callable[[str], Node | None],
    slices: Iterable[EndpointSlice],
    topology: Topology,
    *,
    maximum: int = MAX_ENDPOINTS,
) -> Plan:
    """The writes for all families of a service."""
    result = Plan()
    pods, families = list(pods), address_types(service)
    by_family: dict[str, list[EndpointSlice]] = {each: [] for each in families}
    key = str(key_of(service))
    for each in slices:
        if each.address_type in by_family:
            by_family[each.address_type].append(each)
        else:
            topology.forget(key, each.address_type or "")
            result.changes.delete.append(each)
    for family, existing in by_family.items():
        part = _plan_family(service, pods, node, existing, family, maximum, topology)
        result.changes.extend(part.changes)
        result.events += part.events
        result.skipped += [each for each in part.skipped if each not in result.skipped]
    if is_deleting(service):
        result.changes.create = []  # the garbage collector is on its way
    return result


def _plan_family(
    service: Service,
    pods: Iterable[Pod],
    node: Callable[[str], Node | None],
    existing: list[EndpointSlice],
    family: str,
    maximum: int,
    topology: Topology,
) -> Plan:
    result = Plan()
    changes = result.changes
    desired, ports, result.skipped = _desired(service, pods, node, family)
    by_ports: dict[Ports, list[EndpointSlice]] = {}
    for each in existing:
        if owned_by(each, service):
            by_ports.setdefault(ports_key(each.ports), []).append(each)
        else:
            changes.delete.append(each)
    for key, endpoints in desired.items():
        part = pack(
            by_ports.pop(key, ()),
            endpoints,
            fresh=lambda key=key: new_slice(service, ports[key], family),  # type: ignore[misc]
            refresh=lambda current: _refreshed(current, service),
            maximum=maximum,
        )
        changes.extend(part)
    for outdated in by_ports.values():
        changes.delete += outdated
    if len(changes.delete) == len(existing) and not changes.create:
        # A service always has a slice, so that "no endpoints" differs from "not seen yet".
        placeholder = new_slice(service, [], family)
        if len(changes.delete) == 1 and _is_placeholder(changes.delete[0], placeholder):
            changes.delete = []
        else:
            changes.create.append(placeholder)
    result.events = _hint(service, family, changes, existing, topology)
    changes.reuse(lambda doomed, new: doomed.address_type == new.address_type and owned_by(doomed, service))
    return result


def _desired(
    service: Service, pods: Iterable[Pod], node: Callable[[str], Node | None], family: str
) -> tuple[dict[Ports, dict[EndpointKey, Endpoint]], dict[Ports, list[EndpointPort]], list[str]]:
    """Endpoints by their ports; and the pods whose node is not known yet."""
    desired: dict[Ports, dict[EndpointKey, Endpoint]] = {}
    ports: dict[Ports, list[EndpointPort]] = {}
    skipped = []
    unready = bool(service.spec and service.spec.publish_not_ready_addresses)
    for pod in pods:
        if not pod_belongs(pod):
            continue
        numbers = pod_ports(service, pod)
        key = ports_key(numbers)
        endpoints = desired.setdefault(key, {})
        ports.setdefault(key, numbers)
        where = node(node_of(pod)) if node_of(pod) else None
        if where is None and not unready:
            namespace = meta(service).namespace
            skipped.append(
                f"skipping Pod {name_of(pod)} for Service {namespace}/{name_of(service)}: Node {node_of(pod)} Not Found"
            )
            continue
        endpoint = pod_endpoint(pod, where, service, family)
        if endpoint.addresses:
            endpoints[endpoint_key(endpoint)] = endpoint
    return desired, ports, skipped


def _hint(
    service: Service, family: str, changes: Changes, existing: list[EndpointSlice], topology: Topology
) -> list[HintEvent]:
    key = str(key_of(service))
    unchanged = changes.unchanged(existing)
    if wants_topology(service):
        return topology.hint(key, family, changes, unchanged)
    events = []
    if topology.forget(key, family):
        message = f"Topology Aware Hints has been disabled, addressType: {family}"
        events.append(HintEvent("Warning", "TopologyAwareHintsDisabled", message))
    distribution = near(service)
    if distribution is not None:
        hint_near(distribution, changes, unchanged)
    else:
        hint_nothing(changes, unchanged)
    return events


def new_slice(service: Service, ports: list[EndpointPort], family: str) -> EndpointSlice:
    """An empty slice of a service."""
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=pod_name_prefix(name_of(service)),
            namespace=meta(service).namespace,
            labels=slice_labels(service, CONTROLLER),
            owner_references=[controller_reference(service)],
        ),
        address_type=family,
        endpoints=[],
        ports=list(ports),
    )


def owned_by(each: EndpointSlice, service: Service) -> bool:
    """Whether a slice belongs to this very service, not to one of the same name before it."""
    references = (each.metadata.owner_references if each.metadata else None) or ()
    return any(
        reference.uid == uid_of(service) and reference.kind == "Service" and reference.api_version == "v1"
        for reference in references
    )


def set_trigger_time(each: EndpointSlice, time: str | None) -> None:
    """Say when the change that a write is about began; None if nothing in particular did."""
    metadata = meta(each)
    annotations = dict(metadata.annotations or {})
    annotations.pop(TRIGGER_TIME, None)
    if time is not None:
        annotations[TRIGGER_TIME] = time
    metadata.annotations = annotations or None


def _refreshed(current: EndpointSlice, service: Service) -> EndpointSlice | None:
    labels = slice_labels(service, CONTROLLER)
    if not labels_differ(current, service):
        return None
    updated = copy(current)
    meta(updated).labels = labels
    return updated


def _is_placeholder(each: EndpointSlice, placeholder: EndpointSlice) -> bool:
    return not each.endpoints and not each.ports and labels_of(each) == labels_of(placeholder)
