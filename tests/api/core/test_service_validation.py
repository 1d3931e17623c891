"""The rules for Services, each broken once: a Service that is right except for one field has that one error."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api.core.v1.service import Service
from pybernetes.api.core.validation.service import (
    SOURCE_RANGES,
    TOPOLOGY_HINTS,
    TOPOLOGY_MODE,
    validate_service,
    validate_service_status_update,
    validate_service_update,
)

CLUSTER_IP: dict[str, Any] = {
    "type": "ClusterIP",
    "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
    "sessionAffinity": "None",
    "clusterIP": "10.0.0.1",
    "clusterIPs": ["10.0.0.1"],
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
    "internalTrafficPolicy": "Cluster",
}
NODE_PORT = {**CLUSTER_IP, "type": "NodePort", "externalTrafficPolicy": "Cluster"}
BALANCER = {**NODE_PORT, "type": "LoadBalancer", "allocateLoadBalancerNodePorts": True}
LOCAL = {**BALANCER, "externalTrafficPolicy": "Local", "healthCheckNodePort": 30000}
EXTERNAL = {"type": "ExternalName", "externalName": "a.example.", "sessionAffinity": "None"}
AFFINE = {**CLUSTER_IP, "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86400}}}


def service(spec: dict[str, Any], annotations: dict[str, str] | None = None, ingress: Any = None) -> Service:
    metadata = {"name": "web", "namespace": "default", "annotations": annotations, "resourceVersion": "1"}
    raw = {"metadata": metadata, "spec": spec, "status": {"loadBalancer": {"ingress": ingress}}}
    return msgspec.convert(raw, Service)


def port(**changes: Any) -> dict[str, Any]:
    return {"port": 80, "targetPort": 80, "protocol": "TCP", **changes}


@pytest.mark.parametrize("spec", [CLUSTER_IP, NODE_PORT, BALANCER, LOCAL, EXTERNAL, AFFINE])
def test_a_service_that_is_right_has_no_error(spec: dict[str, Any]) -> None:
    assert validate_service(service(spec)) == []
    assert validate_service_update(service(spec), service(spec)) == []


def changed(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**base, **changes}.items() if value is not None}


AFFINITY = "spec.sessionAffinityConfig"


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (changed(CLUSTER_IP, ports=[]), "spec.ports: Required value"),
        (changed(CLUSTER_IP, type="Other"), "spec.type: Unsupported value"),
        (changed(CLUSTER_IP, sessionAffinity=None), "spec.sessionAffinity: Required value"),
        (changed(CLUSTER_IP, sessionAffinity="Other"), "spec.sessionAffinity: Unsupported value"),
        (changed(AFFINE, sessionAffinityConfig=None), f"{AFFINITY}: Required value"),
        (changed(AFFINE, sessionAffinityConfig={}), f"{AFFINITY}.clientIP: Required value"),
        (changed(AFFINE, sessionAffinityConfig={"clientIP": {}}), f"{AFFINITY}.clientIP.timeoutSeconds: Required"),
        (
            changed(AFFINE, sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}),
            f"{AFFINITY}.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400",
        ),
        (
            changed(AFFINE, sessionAffinityConfig={"clientIP": {"timeoutSeconds": 86401}}),
            f"{AFFINITY}.clientIP.timeoutSeconds: Invalid value: 86401",
        ),
        (changed(AFFINE, sessionAffinity="None"), f"{AFFINITY}: Forbidden: must not be set"),
        (changed(CLUSTER_IP, ports=[port(), port(name="b", port=81)]), "spec.ports[0].name: Required value"),
        (changed(CLUSTER_IP, ports=[port(name="a"), port(name="a", port=81)]), "spec.ports[1].name: Duplicate value"),
        (changed(CLUSTER_IP, ports=[port(name="A")]), 'spec.ports[0].name: Invalid value: "A"'),
        (changed(CLUSTER_IP, ports=[port(port=0)]), "spec.ports[0].port: Invalid value: 0"),
        (changed(CLUSTER_IP, ports=[port(port=65536)]), "spec.ports[0].port: Invalid value: 65536"),
        (changed(CLUSTER_IP, ports=[port(protocol="ICMP")]), "spec.ports[0].protocol: Unsupported value"),
        (changed(CLUSTER_IP, ports=[port(targetPort=0)]), "spec.ports[0].targetPort: Invalid value: 0"),
        (changed(CLUSTER_IP, ports=[port(nodePort=30000)]), "spec.ports[0].nodePort: Forbidden: may not be used"),
        (
            changed(NODE_PORT, ports=[port(name="a", nodePort=30000), port(name="b", port=81, nodePort=30000)]),
            "spec.ports[1].nodePort: Duplicate value: 30000",
        ),
        (changed(CLUSTER_IP, ports=[port(name="a"), port(name="b")]), "spec.ports[1]: Duplicate value"),
        (changed(CLUSTER_IP, selector={"a/b/c": "d"}), "spec.selector: Invalid value"),
        (changed(NODE_PORT, externalIPs=["127.0.0.1"]), "spec.externalIPs[0]: Invalid value"),
        (changed(CLUSTER_IP, loadBalancerSourceRanges=["10.0.0.0/8"]), "spec.LoadBalancerSourceRanges: Forbidden"),
        (changed(BALANCER, loadBalancerSourceRanges=["10.0.0.0/33"]), "spec.LoadBalancerSourceRanges[0]: Invalid"),
        (changed(CLUSTER_IP, allocateLoadBalancerNodePorts=True), "spec.allocateLoadBalancerNodePorts: Forbidden"),
        (changed(BALANCER, allocateLoadBalancerNodePorts=None), "allocateLoadBalancerNodePorts: Required value"),
        (changed(CLUSTER_IP, loadBalancerClass="a/b"), "spec.loadBalancerClass: Forbidden"),
        (changed(BALANCER, loadBalancerClass="a/b/c"), "spec.loadBalancerClass: Invalid value"),
        (changed(CLUSTER_IP, externalTrafficPolicy="Cluster"), "spec.externalTrafficPolicy: Invalid value"),
        (changed(NODE_PORT, externalTrafficPolicy=None), "spec.externalTrafficPolicy: Required value"),
        (changed(NODE_PORT, externalTrafficPolicy="Other"), "spec.externalTrafficPolicy: Unsupported value"),
        (changed(LOCAL, healthCheckNodePort=None), "spec.healthCheckNodePort: Required value"),
        (changed(LOCAL, healthCheckNodePort=70000), "spec.healthCheckNodePort: Invalid value: 70000"),
        (changed(BALANCER, healthCheckNodePort=30000), "spec.healthCheckNodePort: Invalid value: 30000: may only"),
        (changed(CLUSTER_IP, internalTrafficPolicy=None), "spec.internalTrafficPolicy: Required value"),
        (changed(CLUSTER_IP, internalTrafficPolicy="Other"), "spec.internalTrafficPolicy: Unsupported value"),
        (changed(CLUSTER_IP, trafficDistribution="Other"), "spec.trafficDistribution: Unsupported value"),
        (changed(EXTERNAL, externalName="."), "spec.externalName: Required value"),
        (changed(EXTERNAL, externalName="A"), 'spec.externalName: Invalid value: "A"'),
    ],
)
def test_each_rule_has_its_one_error(spec: dict[str, Any], error: str) -> None:
    errors = [str(each) for each in validate_service(service(spec))]
    assert len(errors) == 1, errors
    assert errors[0].startswith(error)


def test_annotations_have_rules_too() -> None:
    hints = {TOPOLOGY_HINTS: "auto", TOPOLOGY_MODE: "disabled"}
    (error,) = validate_service(service(CLUSTER_IP, hints))
    assert str(error).startswith(f"metadata.annotations[{TOPOLOGY_MODE}]: Invalid value")
    assert validate_service(service(CLUSTER_IP, {**hints, TOPOLOGY_MODE: "auto"})) == []
    (error,) = validate_service(service(CLUSTER_IP, {SOURCE_RANGES: "10.0.0.0/8"}))
    assert "Forbidden" in str(error)
    (error,) = validate_service(service(BALANCER, {SOURCE_RANGES: "10.0.0.0/8, x"}))
    assert "Invalid value" in str(error)
    kept = service(BALANCER, {SOURCE_RANGES: "x"})
    assert validate_service_update(kept, kept) == []


def test_what_an_update_may_not_change() -> None:
    before = service(changed(BALANCER, loadBalancerClass="a/b"))
    (error,) = validate_service_update(service(changed(BALANCER, loadBalancerClass="a/c")), before)
    assert str(error).startswith("spec.loadBalancerClass: Invalid value")
    assert validate_service_update(service(NODE_PORT), before) == []
    (error,) = validate_service_update(service(changed(LOCAL, healthCheckNodePort=30001)), service(LOCAL))
    assert str(error) == "spec.healthCheckNodePort: Forbidden: field is immutable"


@pytest.mark.parametrize(
    ("spec", "ingress", "error"),
    [
        (BALANCER, {"ip": "10.0.0.9", "ipMode": "VIP"}, None),
        (BALANCER, {"hostname": "a.example"}, None),
        (NODE_PORT, {"hostname": "a.example"}, "status.loadBalancer.ingress: Forbidden"),
        (BALANCER, {"ip": "x", "ipMode": "VIP"}, "status.loadBalancer.ingress[0].ip: Invalid value"),
        (BALANCER, {"ip": "10.0.0.9"}, "status.loadBalancer.ingress[0].ipMode: Required value"),
        (BALANCER, {"ipMode": "VIP"}, "status.loadBalancer.ingress[0].ipMode: Forbidden"),
        (BALANCER, {"ip": "10.0.0.9", "ipMode": "x"}, "status.loadBalancer.ingress[0].ipMode: Unsupported value"),
        (BALANCER, {"hostname": "A"}, "status.loadBalancer.ingress[0].hostname: Invalid value"),
        (BALANCER, {"hostname": "10.0.0.9"}, "status.loadBalancer.ingress[0].hostname: Invalid value"),
    ],
)
def test_the_status_of_a_load_balancer(spec: dict[str, Any], ingress: dict[str, str], error: str | None) -> None:
    errors = [str(each) for each in validate_service_status_update(service(spec, ingress=[ingress]), service(spec))]
    assert len(errors) == (error is not None), errors
    assert error is None or errors[0].startswith(error)
