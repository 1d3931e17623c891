"""What the caches of node-network leave out is nothing that rules or names are made of."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from proxy.services import endpoint, endpoint_slice, service, terminating

from pybernetes.api.core.v1 import Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.dns.records import service_records
from pybernetes.network import lean
from pybernetes.network.lean import Lean
from pybernetes.proxy.endpoints import NodeFacts
from pybernetes.proxy.frontends import FAMILIES, compile_service

NODE = NodeFacts("node-1", "zone-a")
ZONES = {"forZones": [{"name": "zone-a"}]}
REFERENCE = {"kind": "Pod", "name": "web-1", "namespace": "default", "uid": "u"}
SERVICES = [
    service(),
    service(protocol="UDP", sessionAffinity="ClientIP"),
    service(type="NodePort", nodePort=30080, externalTrafficPolicy="Local", internalTrafficPolicy="Local"),
    service(
        type="LoadBalancer",
        annotations={"service.beta.kubernetes.io/load-balancer-source-ranges": "192.0.2.0/24", "other": "x"},
        status={"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}},
    ),
    service(labels={"service.kubernetes.io/service-proxy-name": "mine", "app": "web"}),
    service(ip="None"),
    service(type="ExternalName", externalName="www.example.com"),
    service(externalIPs=["192.0.2.9"], publishNotReadyAddresses=True, trafficDistribution="PreferClose"),
]
SLICES = [
    endpoint_slice("10.1.0.1", "10.1.0.2"),
    endpoint_slice(endpoint("10.1.0.1", nodeName="node-1", hostname="db-0", zone="zone-a", targetRef=REFERENCE)),
    endpoint_slice(endpoint("10.1.0.1", nodeName="node-1"), endpoint("10.1.0.2", nodeName="node-2"), protocol="UDP"),
    endpoint_slice(terminating("10.1.0.1", nodeName="node-1"), terminating("10.1.0.2", serving=False)),
    endpoint_slice(endpoint("10.1.0.1", hints=ZONES), endpoint("10.1.0.2", hints={"forZones": [{"name": "zone-b"}]})),
    endpoint_slice("fd00::1", addressType="IPv6"),
    msgspec.convert(
        {
            "metadata": {
                "name": "x",
                "namespace": "default",
                "labels": {"kubernetes.io/service-name": "web", "service.kubernetes.io/headless": ""},
            },
            "addressType": "IPv4",
            "endpoints": [endpoint("10.1.0.9")],
            "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
        },
        EndpointSlice,
    ),
]


@pytest.mark.parametrize("one", SERVICES)
@pytest.mark.parametrize("of", SLICES)
def test_rules_and_names_are_those_of_the_whole_objects(one: Service, of: EndpointSlice) -> None:
    fat = msgspec.convert(
        {
            "generateName": "web-",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "u"}],
            "finalizers": ["example.com/x"],
        },
        type(one.metadata),
    )
    small, small_slice = copy.deepcopy(one), copy.deepcopy(of)
    for each in (small, small_slice):
        assert each.metadata is not None
        assert fat is not None
        each.metadata.owner_references, each.metadata.finalizers = fat.owner_references, fat.finalizers
    keep = Lean()
    for each in (small, small_slice):
        keep(each)
        assert each.metadata is not None
        assert not each.metadata.owner_references
        assert "app" not in (each.metadata.labels or {})
    for family in FAMILIES:
        assert compile_service(small, [small_slice], NODE, family) == compile_service(one, [of], NODE, family)
    assert service_records(small, [small_slice], "cluster.local", 30) == service_records(one, [of], "cluster.local", 30)


def test_equal_parts_are_kept_once_and_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Lean()
    pairs: list[Any] = [endpoint_slice(endpoint("10.1.0.1", nodeName="node-1"), of=f"web{n}") for n in range(2)]
    for each in pairs:
        keep(each)
    assert pairs[0].ports is pairs[1].ports
    assert pairs[0].endpoints[0].conditions is pairs[1].endpoints[0].conditions
    monkeypatch.setattr(lean, "SHARED", 10)
    for number in range(50):
        keep(endpoint_slice(endpoint("10.1.0.1", nodeName=f"node-{number}")))
    assert len(keep._shared) <= 10
