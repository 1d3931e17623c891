"""What objects count against a quota."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api.core.v1 import PersistentVolumeClaim, Pod, ResourceQuotaSpec, Service
from pybernetes.api.core.v1.quota import ScopedResourceSelectorRequirement
from pybernetes.api.quota import ObjectCount, calculate_usage, evaluator_for, evaluators
from pybernetes.api.quota.lists import formatted
from pybernetes.api.resource.v1 import ResourceClaim

NOW = 1_800_000_000.0
PODS, SERVICES = evaluators()["", "pods"], evaluators()["", "services"]


def pod(**spec: Any) -> Pod:
    return msgspec.convert({"spec": spec}, Pod)


def container(name: str = "c", **resources: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "resources": resources}


def used(obj: Any, group: str, plural: str) -> dict[str, Any]:
    return formatted(evaluators()[group, plural].usage(obj, NOW))


def test_a_pod_counts_requests_and_limits_of_all_containers_and_its_overhead() -> None:
    obj = pod(
        containers=[
            container("a", requests={"cpu": "100m", "memory": "1Gi", "example.com/gpu": "1"}, limits={"cpu": "1"}),
            container("b", requests={"cpu": "100m", "hugepages-2Mi": "4Mi"}),
        ],
        initContainers=[container("init", requests={"cpu": "1"})],
        overhead={"cpu": "10m"},
    )
    assert used(obj, "", "pods") == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1010m",
        "requests.cpu": "1010m",
        "limits.cpu": "1010m",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
        "requests.example.com/gpu": "1",
    }


@pytest.mark.parametrize(
    ("status", "metadata", "counts"),
    [
        ({}, {}, True),
        ({"phase": "Running"}, {}, True),
        ({"phase": "Succeeded"}, {}, False),
        ({"phase": "Failed"}, {}, False),
        ({}, {"deletionTimestamp": "2027-01-15T08:00:00Z", "deletionGracePeriodSeconds": 30}, True),
        ({}, {"deletionTimestamp": "2027-01-15T07:59:00Z", "deletionGracePeriodSeconds": 30}, False),
    ],
)
def test_a_pod_that_has_ended_or_should_have_counts_only_as_an_object(
    status: dict[str, Any], metadata: dict[str, Any], counts: bool
) -> None:
    obj = msgspec.convert({"metadata": metadata, "status": status, "spec": {"containers": [container()]}}, Pod)
    assert used(obj, "", "pods") == ({"count/pods": "1", "pods": "1"} if counts else {"count/pods": "1"})


def test_a_pod_that_shrinks_counts_with_what_it_has_until_it_has_less() -> None:
    obj = pod(containers=[container("a", requests={"cpu": "1"})])
    obj.status = msgspec.convert(
        {"status": {"containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "2"}}}]}}, Pod
    ).status
    assert used(obj, "", "pods")["cpu"] == "2"


SCOPES = [
    ("Terminating", "Exists", [], pod(activeDeadlineSeconds=5), True),
    ("Terminating", "Exists", [], pod(), False),
    ("NotTerminating", "Exists", [], pod(), True),
    ("BestEffort", "Exists", [], pod(containers=[container()]), True),
    ("NotBestEffort", "Exists", [], pod(containers=[container(requests={"cpu": "1"})]), True),
    ("PriorityClass", "Exists", [], pod(priorityClassName="high"), True),
    ("PriorityClass", "Exists", [], pod(), False),
    ("PriorityClass", "In", ["high"], pod(priorityClassName="high"), True),
    ("PriorityClass", "NotIn", ["high"], pod(priorityClassName="high"), False),
    ("PriorityClass", "DoesNotExist", [], pod(), True),
    (
        "CrossNamespacePodAffinity",
        "Exists",
        [],
        pod(
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", "namespaces": ["b"]}]
                }
            }
        ),
        True,
    ),
    ("VolumeAttributesClass", "Exists", [], pod(), False),
]


@pytest.mark.parametrize(("scope", "operator", "values", "obj", "within"), SCOPES)
def test_scopes_of_pods(scope: str, operator: str, values: list[str], obj: Pod, within: bool) -> None:
    requirement = ScopedResourceSelectorRequirement(scope_name=scope, operator=operator, values=values)
    assert PODS.matches_scope(requirement, obj) is within


def test_a_limited_resource_must_be_said_by_every_container() -> None:
    obj = pod(containers=[container("b"), container("a"), container("c", requests={"cpu": "1", "memory": "1"})])
    assert PODS.missing(["pods", "cpu", "requests.memory", "configmaps"], obj) == (
        "must specify cpu for: a,b; requests.memory for: a,b"
    )
    assert PODS.missing(["limits.cpu"], pod(resources={"limits": {"cpu": "1"}}, containers=[container()])) is None


@pytest.mark.parametrize(
    ("spec", "ports", "balancers"),
    [
        ({"type": "ClusterIP", "ports": [{"port": 1}]}, "0", "0"),
        ({"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]}, "2", "0"),
        ({"type": "LoadBalancer", "ports": [{"port": 1}]}, "1", "1"),
        ({"type": "LoadBalancer", "ports": [{"port": 1}], "allocateLoadBalancerNodePorts": False}, "0", "1"),
        (
            {
                "type": "LoadBalancer",
                "ports": [{"port": 1, "nodePort": 30000}],
                "allocateLoadBalancerNodePorts": False,
            },
            "1",
            "1",
        ),
    ],
)
def test_services_count_node_ports_and_load_balancers(spec: dict[str, Any], ports: str, balancers: str) -> None:
    usage = used(msgspec.convert({"spec": spec}, Service), "", "services")
    assert (usage["services.nodeports"], usage["services.loadbalancers"]) == (ports, balancers)


def test_claims_count_by_storage_class_too() -> None:
    claim = msgspec.convert(
        {
            "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"allocatedResources": {"storage": "2Gi"}},
        },
        PersistentVolumeClaim,
    )
    assert used(claim, "", "persistentvolumeclaims") == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": "2Gi",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "2Gi",
    }


def test_claims_of_devices_count_the_largest_alternative_of_each_class() -> None:
    claim = msgspec.convert(
        {
            "spec": {
                "devices": {
                    "requests": [
                        {"name": "a", "exactly": {"deviceClassName": "x", "allocationMode": "ExactCount", "count": 2}},
                        {
                            "name": "b",
                            "firstAvailable": [
                                {"name": "1", "deviceClassName": "x", "allocationMode": "ExactCount", "count": 3},
                                {"name": "2", "deviceClassName": "y", "allocationMode": "All"},
                            ],
                        },
                    ]
                }
            }
        },
        ResourceClaim,
    )
    assert used(claim, "resource.k8s.io", "resourceclaims") == {
        "count/resourceclaims.resource.k8s.io": "1",
        "x.deviceclass.resource.k8s.io/devices": "5",
        "y.deviceclass.resource.k8s.io/devices": "32",
    }


def test_usage_is_counted_for_the_names_of_the_quota_within_its_scopes() -> None:
    spec = ResourceQuotaSpec(
        hard={"pods": "5", "cpu": "1", "services": "2", "count/deployments.apps": "1", "unknown": "1"}
    )
    known = [PODS, SERVICES, ObjectCount("apps", "deployments")]
    objects = {"pods": [pod(containers=[container(requests={"cpu": "100m"})])] * 2, "services": [Service()]}
    usage = calculate_usage(spec, known, lambda each: objects.get(each.plural, []), NOW)
    assert formatted(usage) == {"pods": "2", "cpu": "200m", "services": "1", "count/deployments.apps": "0"}

    spec.scopes = ["BestEffort"]
    usage = calculate_usage(spec, known, lambda each: objects.get(each.plural, []), NOW)
    assert formatted(usage) == {"pods": "0", "cpu": "0", "services": "0", "count/deployments.apps": "0"}


def test_every_resource_has_an_evaluator_except_events() -> None:
    counted = evaluator_for("stable.example.com", "crontabs")
    assert counted is not None
    assert counted.matching_resources(["count/crontabs.stable.example.com", "pods"]) == [
        "count/crontabs.stable.example.com"
    ]
    assert evaluator_for("", "events") is None
    secrets = evaluator_for("", "secrets")
    assert secrets is not None
    assert secrets.matching_resources(["secrets", "count/secrets"]) == ["count/secrets", "secrets"]
