"""Which DNS records a Service has, by the specification of DNS-based service discovery 1.1.

A Service with a cluster IP has an address record at `SERVICE.NAMESPACE.svc.ZONE`, a headless one the addresses of its
ready endpoints there, and one name for each endpoint: its hostname, or its address with dashes. Named ports have SRV
records. ExternalName is a CNAME. Addresses lead back by PTR records, of cluster IPs and of endpoints with a hostname.
Pure functions: Service and EndpointSlices in, records out.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from pybernetes.api.core.v1 import Service
from pybernetes.api.discovery.v1 import Endpoint, EndpointPort, EndpointSlice

from .message import CNAME, PTR, FormatError, Record, address_record, name_record, srv_record

VERSION = "1.1.0"
"""The content of the TXT record `dns-version`."""
NONE = "None"


def service_name(service: Service, zone: str) -> str:
    """The name of a Service in the cluster zone."""
    meta = service.metadata
    assert meta
    return f"{meta.name}.{meta.namespace}.svc.{zone}".lower()


def service_records(service: Service, slices: Iterable[EndpointSlice], zone: str, ttl: int) -> list[Record]:
    """All records of a Service. What cannot be a name or an address is left out."""
    spec, name = service.spec, service_name(service, zone)
    if spec is None:
        return []
    if spec.type == "ExternalName":
        return _kept(lambda: name_record(name, CNAME, ttl, (spec.external_name or "").lower().rstrip(".")))
    addresses = list(dict.fromkeys(spec.cluster_ips or ([spec.cluster_ip] if spec.cluster_ip else [])))
    if NONE in addresses:
        return _headless(name, slices, ttl)
    records: list[Record] = []
    for address in addresses:
        records += _kept(lambda address=address: address_record(name, ttl, address))
        records += _kept(lambda address=address: name_record(reverse_name(address), PTR, ttl, name))
    for port in spec.ports or ():
        if port.name and records:
            owner = f"_{port.name}._{(port.protocol or 'TCP').lower()}.{name}"
            records += _kept(lambda port=port, owner=owner: srv_record(owner, ttl, port.port or 0, name))
    return records


def _headless(name: str, slices: Iterable[EndpointSlice], ttl: int) -> list[Record]:
    records: dict[Record, None] = {}
    for one in slices:
        if one.address_type not in ("IPv4", "IPv6"):
            continue
        for endpoint in one.endpoints or ():
            if _is_ready(endpoint):
                for address in endpoint.addresses or ():
                    records.update(dict.fromkeys(_endpoint(name, endpoint, address, one.ports or (), ttl)))
    return list(records)


def _endpoint(name: str, endpoint: Endpoint, address: str, ports: Iterable[EndpointPort], ttl: int) -> Iterable[Record]:
    own = f"{(endpoint.hostname or address.replace('.', '-').replace(':', '-')).lower()}.{name}"
    yield from _kept(lambda: address_record(name, ttl, address))
    yield from _kept(lambda: address_record(own, ttl, address))
    for port in ports:
        if port.name and port.port:
            owner = f"_{port.name}._{(port.protocol or 'TCP').lower()}.{name}"
            yield from _kept(lambda port=port, owner=owner: srv_record(owner, ttl, port.port or 0, own))
    if endpoint.hostname:
        yield from _kept(lambda: name_record(reverse_name(address), PTR, ttl, own))


def _is_ready(endpoint: Endpoint) -> bool:
    """Whether the endpoint is published: a missing `ready` condition counts as ready."""
    conditions = endpoint.conditions
    return conditions is None or conditions.ready is None or conditions.ready


def _kept(make: object) -> list[Record]:
    try:
        return [make()]  # type: ignore[operator]
    except (FormatError, ValueError):
        return []


def reverse_name(address: str) -> str:
    """The name below `in-addr.arpa` or `ip6.arpa` of an address. ValueError if it is none."""
    return ip_address(address).reverse_pointer
