"""The records of Services, by the specification of DNS-based service discovery."""

from typing import Any

import msgspec

from pybernetes.api.core.v1 import Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.dns.message import AAAA, CNAME, PTR, SRV, A, Record, read_name
from pybernetes.dns.records import service_records

ZONE = "cluster.local"


def service(**spec: Any) -> Service:
    return msgspec.convert({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}, Service)


def endpoint_slice(
    *endpoints: dict[str, Any], family: str = "IPv4", ports: list[dict[str, Any]] | None = None
) -> EndpointSlice:
    found = {"addressType": family, "endpoints": list(endpoints), "ports": ports or []}
    return msgspec.convert(found, EndpointSlice)


def shown(records: list[Record]) -> set[tuple[str, int, str]]:
    """Records as text: addresses by their bytes, names and ports as they are."""

    def data(record: Record) -> str:
        if record.type in (A, AAAA):
            return record.data.hex()
        if record.type == SRV:
            return f"{int.from_bytes(record.data[4:6])} {read_name(record.data, 6)[0]}"
        return read_name(record.data, 0)[0]

    return {(each.name, each.type, data(each)) for each in records}


def test_a_cluster_ip_has_an_address_its_way_back_and_srv_records_for_named_ports() -> None:
    found = service(
        clusterIPs=["10.96.0.7", "fd00::7"],
        ports=[{"name": "http", "port": 80}, {"port": 81}, {"name": "dns", "port": 53, "protocol": "UDP"}],
    )
    name = "web.shop.svc.cluster.local"
    assert shown(service_records(found, [], ZONE, 30)) == {
        (name, A, "0a600007"),
        (name, AAAA, "fd000000000000000000000000000007"),
        ("7.0.96.10.in-addr.arpa", PTR, name),
        ("7." + "0." * 28 + "0.d.f.ip6.arpa", PTR, name),
        (f"_http._tcp.{name}", SRV, f"80 {name}"),
        (f"_dns._udp.{name}", SRV, f"53 {name}"),
    }


def test_a_headless_service_has_its_ready_endpoints_under_hostnames_or_dashed_addresses() -> None:
    ports = [{"name": "http", "port": 8080, "protocol": "TCP"}]
    slices = [
        endpoint_slice(
            {"addresses": ["10.1.0.5"], "hostname": "web-0", "conditions": {"ready": True}},
            {"addresses": ["10.1.0.6"]},
            {"addresses": ["10.1.0.7"], "conditions": {"ready": False}},
            ports=ports,
        ),
        endpoint_slice({"addresses": ["fd00::9"]}, family="IPv6"),
        endpoint_slice({"addresses": ["example.com"]}, family="FQDN"),
    ]
    name = "web.shop.svc.cluster.local"
    assert shown(service_records(service(clusterIPs=["None"]), slices, ZONE, 30)) == {
        (name, A, "0a010005"),
        (name, A, "0a010006"),
        (name, AAAA, "fd000000000000000000000000000009"),
        (f"web-0.{name}", A, "0a010005"),
        (f"10-1-0-6.{name}", A, "0a010006"),
        (f"fd00--9.{name}", AAAA, "fd000000000000000000000000000009"),
        (f"_http._tcp.{name}", SRV, f"8080 web-0.{name}"),
        (f"_http._tcp.{name}", SRV, f"8080 10-1-0-6.{name}"),
        ("5.0.1.10.in-addr.arpa", PTR, f"web-0.{name}"),
    }


def test_an_external_name_is_an_alias_and_what_is_no_name_or_address_is_left_out() -> None:
    found = service_records(service(type="ExternalName", externalName="Example.COM."), [], ZONE, 30)
    assert shown(found) == {("web.shop.svc.cluster.local", CNAME, "example.com")}
    assert service_records(service(type="ExternalName", externalName="x" * 64), [], ZONE, 30) == []
    assert (
        service_records(service(clusterIPs=["", "nonsense"], ports=[{"name": "http", "port": 80}]), [], ZONE, 30) == []
    )
