"""What is written into cgroups, as numbers."""

from __future__ import annotations

from typing import Any

import pytest
from kubelet.pods import container, pod, resources

from pybernetes.api.core.v1 import Pod
from pybernetes.cri.cpu_weight import shares_to_weight, weight_to_shares
from pybernetes.kubelet.cgroups.config import (
    CgroupConfig,
    milli_cpu_to_quota,
    milli_cpu_to_shares,
    node_config,
    pod_config,
    quota_to_milli_cpu,
    shares_to_milli_cpu,
)
from pybernetes.kubelet.cgroups.container import ContainerSettings, linux_resources, overhead_resources
from pybernetes.kubelet.cgroups.oom import oom_score_adj

GI = 1 << 30


@pytest.mark.parametrize(("milli", "shares"), [(0, 2), (1, 2), (2, 2), (100, 102), (1000, 1024), (10**9, 262144)])
def test_cpu_as_shares(milli: int, shares: int) -> None:
    assert milli_cpu_to_shares(milli) == shares


def test_shares_become_cpu_again_rounded_up() -> None:
    assert [shares_to_milli_cpu(each) for each in (0, 2, 102, 1024)] == [0, 2, 100, 1000]


@pytest.mark.parametrize(("milli", "quota"), [(0, 0), (1, 1000), (10, 1000), (200, 20_000), (1500, 150_000)])
def test_cpu_as_quota_of_at_least_a_millisecond(milli: int, quota: int) -> None:
    assert milli_cpu_to_quota(milli) == quota


def test_quota_becomes_cpu_again() -> None:
    assert [quota_to_milli_cpu(quota, 100_000) for quota in (-1, 20_000)] == [0, 200]


def test_shares_and_weights_are_two_scales_of_one_thing() -> None:
    assert [shares_to_weight(each) for each in (0, 2, 102, 512, 1024, 2048, 262144)] == [1, 1, 17, 59, 100, 174, 10000]
    assert [weight_to_shares(each) for each in (1, 100, 10000)] == [2, 1024, 262144]
    assert all(shares_to_weight(weight_to_shares(each)) == each for each in range(1, 10001))


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (pod("u", container()), CgroupConfig(cpu_shares=2, hugepages={})),
        (
            pod("u", container("a", "=1", "=1Gi"), container("b", "=500m", "=1Gi")),
            CgroupConfig(cpu_shares=1536, cpu_quota=150_000, cpu_period=100_000, memory=2 * GI, hugepages={}),
        ),
        (pod("u", container("a", "100m/200m", "1Gi"), container("b")), CgroupConfig(cpu_shares=102, hugepages={})),
        (
            pod("u", container("a", "100m/200m"), container("b", "100m/1")),
            CgroupConfig(cpu_shares=204, cpu_quota=120_000, cpu_period=100_000, hugepages={}),
        ),
        (
            pod("u", container("a", "100m/200m"), container("b"), resources=resources("1/2", "1Gi/2Gi")),
            CgroupConfig(cpu_shares=1024, cpu_quota=200_000, cpu_period=100_000, memory=2 * GI, hugepages={}),
        ),
    ],
    ids=["best effort", "guaranteed", "limits of some containers are none", "limits of all", "the pod's own"],
)
def test_the_cgroup_of_a_pod(subject: Pod, expected: CgroupConfig) -> None:
    assert pod_config(subject) == expected


def test_overhead_is_added_to_a_pods_cgroup() -> None:
    subject = pod("u", container("a", "=1", "=1Gi"), overhead={"cpu": "250m", "memory": "100Mi"})
    config = pod_config(subject)
    assert (config.cpu_shares, config.cpu_quota, config.memory) == (1280, 125_000, GI + 100 * (1 << 20))


def test_without_quotas_a_pod_has_none_and_the_pids_limit_is_the_nodes() -> None:
    config = pod_config(pod("u", container("a", "=1", "=1Gi")), cpu_cfs_quota=False, pids=1024)
    assert (config.cpu_quota, config.pids) == (-1, 1024)


def test_huge_pages_that_were_not_asked_for_are_limited_to_none() -> None:
    asked = container("a", "1", limits={"hugepages-2Mi": "4Mi", "cpu": "1"})
    asked.resources.requests["hugepages-2Mi"] = "4Mi"
    assert pod_config(pod("u", asked)).hugepages == {2 << 20: 4 << 20}


def test_the_cgroup_of_all_pods_is_limited_to_what_may_be_allocated() -> None:
    from pybernetes.api.core.podresources import parsed

    config = node_config(parsed({"cpu": "1800m", "memory": "7Gi", "pods": "110"}), pids=9000)
    assert config == CgroupConfig(cpu_shares=1843, memory=7 * GI, pids=9000, hugepages={})


SETTINGS = ContainerSettings(memory_capacity=10 * GI)


def test_the_fields_for_a_container() -> None:
    subject = pod("u", container("a", "100m/200m", "1Gi/2Gi"))
    assert linux_resources(subject, subject.spec.containers[0], SETTINGS) == {
        "cpu_shares": 102,
        "cpu_quota": 20_000,
        "cpu_period": 100_000,
        "memory_limit_in_bytes": 2 * GI,
        "oom_score_adj": 900,
    }


def test_a_limit_without_a_request_is_a_request_too() -> None:
    subject = pod("u", container("a", "/2"))
    assert linux_resources(subject, subject.spec.containers[0], SETTINGS)["cpu_shares"] == 2048


def test_the_pods_limits_are_those_of_containers_without_their_own() -> None:
    subject = pod("u", container("a"), resources=resources("1/2", "/4Gi"))
    fields = linux_resources(subject, subject.spec.containers[0], SETTINGS)
    assert (fields["cpu_quota"], fields["memory_limit_in_bytes"]) == (200_000, 4 * GI)


def test_cpus_of_its_own_need_no_quota() -> None:
    subject = pod("u", container("a", "=2", "=1Gi"))
    fields = linux_resources(subject, subject.spec.containers[0], SETTINGS, cpuset="2-3", exclusive=True)
    assert (fields["cpu_quota"], fields["cpuset_cpus"]) == (-1, "2-3")


def test_on_cgroup_2_the_kernel_kills_all_of_a_container_by_default() -> None:
    subject = pod("u", container("a"))
    fields = linux_resources(subject, subject.spec.containers[0], ContainerSettings(GI, cgroup2=True))
    assert fields["unified"] == {"memory.oom.group": "1"}
    single = ContainerSettings(GI, cgroup2=True, single_process_oom_kill=True)
    assert "unified" not in linux_resources(subject, subject.spec.containers[0], single)


@pytest.mark.parametrize(
    ("subject", "limited", "allowed"),
    [
        (pod("u", container("a", memory="1Gi/2Gi")), True, GI // 5),
        (pod("u", container("a", memory="1Gi/2Gi")), False, 0),
        (pod("u", container("a", memory="1Gi/1Gi")), True, 0),
        (pod("u", container("a", "=1", "=1Gi")), True, 0),
        (pod("u", container("a")), True, 0),
        (pod("u", container("a", memory="1Gi/2Gi"), priority=2 * 10**9), True, 0),
        (pod("u", container("a", memory="11Gi")), True, 0),
    ],
    ids=["its share", "not wanted", "all it needs", "guaranteed", "best effort", "critical", "more than there is"],
)
def test_swap_is_for_burstable_containers_in_proportion_and_on_cgroup_2_only(
    subject: Pod, limited: bool, allowed: int
) -> None:
    settings = ContainerSettings(10 * GI, cgroup2=True, swap=2 * GI, limited_swap=limited)
    fields = linux_resources(subject, subject.spec.containers[0], settings)
    assert fields["unified"] == {"memory.oom.group": "1", "memory.swap.max": str(allowed)}
    old = ContainerSettings(10 * GI, swap=2 * GI, limited_swap=limited)
    fields = linux_resources(subject, subject.spec.containers[0], old)
    assert fields.get("memory_swap_limit_in_bytes") == fields.get("memory_limit_in_bytes")


def test_huge_pages_of_all_sizes_are_limited() -> None:
    subject = pod("u", container("a", limits={"hugepages-2Mi": "4Mi"}))
    settings = ContainerSettings(GI, page_sizes=(2 << 20, 1 << 30))
    assert linux_resources(subject, subject.spec.containers[0], settings)["hugepage_limits"] == [
        {"page_size": "2MB", "limit": 4 << 20},
        {"page_size": "1GB", "limit": 0},
    ]


def test_the_fields_are_those_of_the_cri() -> None:
    from pybernetes.cri import v1 as cri

    subject = pod("u", container("a", "=1", "=1Gi", limits={"hugepages-2Mi": "4Mi"}), overhead={"cpu": "1"})
    settings = ContainerSettings(GI, cgroup2=True, page_sizes=(2 << 20,))
    made = cri.LinuxContainerResources(**linux_resources(subject, subject.spec.containers[0], settings))
    assert made.hugepage_limits[0].page_size == "2MB"
    assert cri.LinuxContainerResources(**overhead_resources(subject, settings)).cpu_shares == 1024


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container("a", "=1", "=1Gi")]}, -997),
        ({"containers": [container("a")]}, 1000),
        ({"containers": [container("a", "1")]}, 999),
        ({"containers": [container("a", "1", "1Gi")]}, 900),
        ({"containers": [container("a", "1", "10Gi")]}, 3),
        ({"containers": [container("a", "1", "1Gi")], "priority": 2 * 10**9, "priority_class_name": "x"}, 900),
        (
            {"containers": [container("a")], "priority": 2000001000, "priority_class_name": "system-node-critical"},
            -997,
        ),
        ({"containers": [container("a", memory="1Gi"), container("b")], "resources": resources("1", "5Gi")}, 700),
    ],
    ids=["guaranteed", "best effort", "burstable", "a tenth", "all", "critical", "node critical", "the pod's"],
)
def test_whom_the_kernel_kills_first(spec: dict[str, Any], expected: int) -> None:
    subject = pod("u")
    for name, value in spec.items():
        setattr(subject.spec, name, value)
    assert oom_score_adj(subject, subject.spec.containers[0], 10 * GI) == expected


def test_a_sidecar_is_not_killed_before_those_it_serves() -> None:
    sidecar = container("s", "100m", "100Mi", restart_policy="Always")
    subject = pod("u", container("a", "1", "1Gi"), init_containers=[sidecar])
    assert oom_score_adj(subject, sidecar, 10 * GI) == 900
