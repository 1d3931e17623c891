"""What is counted of pods on their way through the kubelet, and of the kubelet's work on its node."""

from __future__ import annotations

from typing import Any, cast

from pybernetes.api.core.v1 import Container, Pod, PodSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.clock import FakeClock
from pybernetes.client.metrics import Registry
from pybernetes.kubelet.metrics.managers import ManagerMetrics
from pybernetes.kubelet.metrics.node import NodeMetrics
from pybernetes.kubelet.metrics.pods import PodMetrics
from pybernetes.kubelet.pod.workers import PodState, PodWork
from pybernetes.kubelet.runtime.types import PodRef


def _pod(uid: str = "u1", **spec: Any) -> Pod:
    spec = {"containers": [Container(name="a"), Container(name="b")], **spec}
    return Pod(metadata=ObjectMeta(uid=uid, name=uid, namespace="default"), spec=PodSpec(**spec))


def _metrics(pods: list[Pod], works: list[PodWork] | None = None) -> tuple[PodMetrics, FakeClock, Registry]:
    clock, registry = FakeClock(), Registry()
    made = PodMetrics(registry, clock, pods=lambda: pods, active=lambda: pods, working=lambda: works or [])
    return made, clock, registry


def _lines(registry: Registry) -> list[str]:
    return registry.render().decode().splitlines()


def test_a_pods_start_is_measured_with_and_without_its_images() -> None:
    pod = _pod()
    metrics, clock, registry = _metrics([pod])
    metrics.seen(pod)
    clock.advance(0.2)
    metrics.working(pod)
    metrics.pulled("u1", 6.0)
    metrics.running(pod, 7.5)
    metrics.running(_pod("u2"), 0.3)
    lines = _lines(registry)
    assert 'kubelet_pod_start_sli_duration_seconds_sum{first_with_network="true"} 1.5' in lines
    assert 'kubelet_pod_start_total_duration_seconds_sum{first_with_network="true"} 7.5' in lines
    assert 'kubelet_pod_start_sli_duration_seconds_count{first_with_network="false"} 1' in lines
    assert "kubelet_pod_start_duration_seconds_count 2" in lines
    assert "kubelet_pod_worker_start_duration_seconds_sum 0.2" in lines
    assert "kubelet_containers_per_pod_count_sum 2" in lines


def test_pods_are_counted_by_their_state() -> None:
    pod = _pod()
    ending = PodWork(PodRef("u2", "default", "gone"), None, stopping=True, deleted=True)
    ending.state = PodState.TERMINATING
    works = [PodWork(PodRef("u1", "default", "u1"), pod), ending]
    metrics, _, registry = _metrics([pod], works)
    metrics.rejections.inc("OutOfcpu")
    metrics.preemptions.inc("cpu")
    lines = _lines(registry)
    assert 'kubelet_working_pods{config="desired",lifecycle="sync",static=""} 1' in lines
    assert 'kubelet_working_pods{config="runtime_only",lifecycle="terminating",static="unknown"} 1' in lines
    assert 'kubelet_active_pods{static=""} 1' in lines
    assert "kubelet_mirror_pods 0" in lines
    assert 'kubelet_admission_rejections_total{reason="OutOfcpu"} 1' in lines
    assert 'kubelet_preemptions{preemption_signal="cpu"} 1' in lines


class Hierarchy:
    """Cgroups that are only counted."""

    version = 2

    def create(self, name: str) -> str:
        return name

    update = remove = create


def test_work_on_the_node_is_measured() -> None:
    registry, hierarchy = Registry(), Hierarchy()
    metrics = NodeMetrics(registry, cast(Any, hierarchy))
    assert hierarchy.create("/kubepods") == "/kubepods"
    metrics.relisted(0.01, None)
    metrics.relisted(0.02, 1.0)
    metrics.pulled(3.0, 200 << 20)
    metrics.pulled(3.0, 200 << 30)
    lines = _lines(registry)
    assert "kubelet_cgroup_version 2" in lines
    assert 'kubelet_cgroup_manager_duration_seconds_count{operation_type="create"} 1' in lines
    assert "kubelet_pleg_relist_duration_seconds_count 2" in lines
    assert "kubelet_pleg_relist_interval_seconds_count 1" in lines
    assert 'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="100MB-500MB"} 1' in lines
    assert 'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="GT100GB"} 1' in lines
    opened = next(line for line in lines if line.startswith("process_open_fds "))
    assert int(opened.split()[1]) > 2


def test_the_nodes_start_is_measured_in_its_parts() -> None:
    registry = Registry()
    metrics = ManagerMetrics(registry)
    metrics._booted, metrics._began, metrics._registering_at, metrics._registered_at = 100.0, 110.0, 112.0, 115.0
    assert metrics._startup("") == 0.0  # it is not Ready yet
    metrics._ready_at = 120.0
    parts = ("pre_kubelet_", "pre_registration_", "registration_", "post_registration_", "")
    assert [metrics._startup(each) for each in parts] == [10.0, 2.0, 3.0, 5.0, 20.0]


def test_reports_of_managers_are_counted() -> None:
    registry = Registry()
    metrics = ManagerMetrics(registry)
    metrics.admitted(0.001)
    metrics.allocated("example.com/gpu", 0.2)
    metrics.evicted("memory.available", 3.0)
    metrics.volume_operation("kubernetes.io/secret", "volume_mount", 0.2, ok=False)
    metrics.delegated("authn", "201", 0.1)
    metrics.looked_up(known=True)
    metrics.certificate("client", lambda: None, lambda: 3)
    lines = _lines(registry)
    for line in (
        "kubelet_topology_manager_admission_requests_total 1",
        "kubelet_topology_manager_admission_duration_ms_sum 1",
        'kubelet_device_plugin_alloc_duration_seconds_count{resource_name="example.com/gpu"} 1',
        'kubelet_eviction_stats_age_seconds_sum{eviction_signal="memory.available"} 3',
        'apiserver_delegated_authn_request_total{code="201"} 1',
        'authentication_token_cache_request_total{status="hit"} 1',
        "kubelet_certificate_manager_client_expiration_renew_errors 3",
    ):
        assert line in lines
    labels = 'migrated="false",operation_name="volume_mount",status="fail-unknown",volume_plugin="kubernetes.io/secret"'
    assert f"storage_operation_duration_seconds_count{{{labels}}} 1" in lines
