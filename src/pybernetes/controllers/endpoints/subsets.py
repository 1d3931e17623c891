"""Endpoints in their oldest form: subsets of addresses that share ports. Pure.

Any list of subsets can be written in many ways; `repack` finds the one in which every set of addresses with the same
ports is together once, sorted, so that equal lists look equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from pybernetes.api.addresses import parse_ip
from pybernetes.api.core.v1 import Pod, Service
from pybernetes.api.core.v1.reference import ObjectReference
from pybernetes.api.core.v1.service import EndpointAddress, EndpointPort, EndpointSubset, ServiceSpec

from ..common.pods import is_ready
from ..endpointslice.endpoints import find_port, is_named_by, pod_belongs

MAX_CAPACITY: Final = 1000
"""Addresses in one Endpoints object."""

_AddressKey = tuple[str, str]
_Port = tuple[str, int, str, str | None]


def subsets_of(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """The subsets of a service's pods; terminating ones only where unready addresses are published."""
    spec = service.spec or ServiceSpec()
    unready = bool(spec.publish_not_ready_addresses)
    found = []
    for pod in pods:
        if not pod_belongs(pod, include_terminating=unready):
            continue
        address = _address(service, pod)
        if address is None:
            continue
        if not spec.ports and spec.cluster_ip == "None":
            found.append(_subset(address, None, ready=unready or is_ready(pod)))
        for each in spec.ports or ():
            number = find_port(pod, each)
            if number is not None:
                port = EndpointPort(
                    name=each.name or None, port=number, protocol=each.protocol, app_protocol=each.app_protocol
                )
                found.append(_subset(address, port, ready=unready or is_ready(pod)))
    return repack(found)


def repack(subsets: Iterable[EndpointSubset]) -> list[EndpointSubset]:
    """The canonical form. An address that is both ready and not for one port is not."""
    addresses: dict[_AddressKey, EndpointAddress] = {}
    ports: dict[_Port, EndpointPort] = {}
    by_port: dict[_Port | None, dict[_AddressKey, bool]] = {}
    for subset in subsets:
        keys: list[_Port | None] = []
        for port in subset.ports or ():
            key = (port.name or "", port.port or 0, port.protocol or "", port.app_protocol)
            ports[key] = port
            keys.append(key)
        for ready, listed in ((True, subset.addresses), (False, subset.not_ready_addresses)):
            for address in listed or ():
                where = (address.ip or "", (address.target_ref.uid if address.target_ref else None) or "")
                addresses.setdefault(where, address)
                for key_ in keys or [None]:
                    known = by_port.setdefault(key_, {})
                    known[where] = ready and known.get(where, True)
    together: dict[tuple[tuple[_AddressKey, bool], ...], list[_Port]] = {}
    for key_, known in by_port.items():
        shared = together.setdefault(tuple(sorted(known.items())), [])
        if key_ is not None:
            shared.append(key_)
    result = []
    for states, shared in together.items():
        result.append(
            EndpointSubset(
                addresses=[addresses[where] for where, ready in states if ready] or None,
                not_ready_addresses=[addresses[where] for where, ready in states if not ready] or None,
                ports=[ports[key] for key in sorted(shared, key=str)] or None,
            )
        )
    return sorted(result, key=_order)


def truncate(subsets: list[EndpointSubset]) -> tuple[list[EndpointSubset], bool]:
    """At most a thousand addresses, ready ones before others, each subset in proportion; whether any had to go."""
    ready = sum(len(each.addresses or ()) for each in subsets)
    unready = sum(len(each.not_ready_addresses or ()) for each in subsets)
    if ready + unready <= MAX_CAPACITY:
        return subsets, False
    cut_ready = ready > MAX_CAPACITY
    room = MAX_CAPACITY if cut_ready else MAX_CAPACITY - ready
    total, left = (ready if cut_ready else unready), room
    result = []
    for each in subsets:
        listed = (each.addresses if cut_ready else each.not_ready_addresses) or []
        kept = listed[: min(math.ceil(len(listed) / total * room), left)]
        left -= len(kept)
        result.append(
            EndpointSubset(
                addresses=(kept or None) if cut_ready else each.addresses,
                not_ready_addresses=None if cut_ready else (kept or None),
                ports=each.ports,
            )
        )
    return result, True


def same_subsets(a: Iterable[EndpointSubset] | None, b: Iterable[EndpointSubset] | None) -> bool:
    """Whether two lists of subsets say the same, however they are arranged; targets' revisions do not count."""
    return [_comparable(each) for each in repack(a or ())] == [_comparable(each) for each in repack(b or ())]


def _address(service: Service, pod: Pod) -> EndpointAddress | None:
    spec, metadata = service.spec or ServiceSpec(), pod.metadata
    assert metadata is not None
    family = next(iter(spec.ip_families or ()), None)
    if family is None:
        hint = spec.cluster_ip if spec.cluster_ip not in (None, "", "None") else (pod.status and pod.status.pod_ip)
        family = "IPv6" if ":" in (hint or "") else "IPv4"
    parsed = (parse_ip(each.ip or "") for each in (pod.status.pod_ips if pod.status else None) or ())
    ip = next((str(each) for each in parsed if each is not None and f"IPv{each.version}" == family), None)
    if ip is None:
        return None
    return EndpointAddress(
        ip=ip,
        hostname=(pod.spec.hostname if pod.spec else None) if is_named_by(pod, service) else None,
        node_name=(pod.spec.node_name if pod.spec else None) or None,
        target_ref=ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
    )


def _subset(address: EndpointAddress, port: EndpointPort | None, *, ready: bool) -> EndpointSubset:
    return EndpointSubset(
        addresses=[address] if ready else None,
        not_ready_addresses=None if ready else [address],
        ports=[port] if port else None,
    )


def _order(subset: EndpointSubset) -> str:
    ports = [(each.name, each.port, each.protocol) for each in subset.ports or ()]
    first = [each.ip for each in (*(subset.addresses or ()), *(subset.not_ready_addresses or ()))]
    return str((ports, first))


def _comparable(subset: EndpointSubset) -> tuple[object, ...]:
    def address(each: EndpointAddress) -> tuple[object, ...]:
        target = each.target_ref
        who = (target.kind, target.namespace, target.name, target.uid) if target else ()
        return each.ip, each.hostname or "", each.node_name or "", who

    return (
        [address(each) for each in subset.addresses or ()],
        [address(each) for each in subset.not_ready_addresses or ()],
        [(each.name or "", each.port, each.protocol, each.app_protocol) for each in subset.ports or ()],
    )
