"""From samples to the summary and the metrics: rates, what is there and what is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from pybernetes.api.core.v1 import Pod
from pybernetes.client.clock import FakeClock
from pybernetes.client.metrics import Registry
from pybernetes.kubelet.cgroups.none import NoCgroups
from pybernetes.kubelet.metrics.node import NodeMetrics
from pybernetes.kubelet.runtime.types import ContainerState, ObservedContainer, ObservedPod, ObservedSandbox, PodRef
from pybernetes.kubelet.stats.cadvisor import cadvisor_metrics
from pybernetes.kubelet.stats.cgroup_details import Details, DeviceIO
from pybernetes.kubelet.stats.claims import claims_of
from pybernetes.kubelet.stats.disk import EMPTY_DIR, ImageStore, PodDisk, Volume
from pybernetes.kubelet.stats.filesystem import FileSystem, Size
from pybernetes.kubelet.stats.log_sizes import log_metrics
from pybernetes.kubelet.stats.network import Interface
from pybernetes.kubelet.stats.resource import resource_metrics
from pybernetes.kubelet.stats.sampler import Sampler
from pybernetes.kubelet.stats.summary import Facts, summary
from pybernetes.kubelet.stats.usage import Pressure, Usage

NOW = 1_700_000_000.0
IDLE = Usage(cpu=0, memory=2048, working_set=1024, rss=512, memory_limit=4096, processes=3)
DISK = FileSystem(capacity=1000, available=600, used=400, inodes=100, inodes_free=90)


class Cgroups:
    """Usage by name; what is not there is None."""

    def __init__(self) -> None:
        self.found: dict[str, Usage] = {}

    async def refresh(self) -> None:
        pass

    def read(self, name: str) -> Usage | None:
        return self.found.get(name)

    def uses(self, name: str, nanos: int) -> None:
        self.found[name] = replace(self.found.get(name, IDLE), cpu=self.found.get(name, IDLE).cpu + nanos)


class Node:
    """A node with one pod `ns/p` of one running container `c` and one that has ended."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOW)
        self.cgroups = Cgroups()
        running = ObservedContainer("id1", "c", ContainerState.RUNNING, image="img", started_at=NOW - 4)
        ended = ObservedContainer("id0", "c", ContainerState.EXITED, started_at=NOW - 60)
        sandbox = ObservedSandbox("s", True, created_at=NOW - 100)
        self.pods = [ObservedPod(PodRef("u", "ns", "p"), (sandbox,), (running, ended))]
        for name in ("/", "/kubepods", "/kubepods/podu", "/kubepods/podu/id1"):
            self.cgroups.uses(name, 0)
        self.sampler = Sampler(
            self.cgroups,
            self.clock,
            observed=lambda: self.pods,
            cgroups=lambda: {"u": "/kubepods/podu", "stray": "/kubepods/podstray"},
        )


FACTS = Facts("n1", NOW - 1000, 8192)


def test_a_young_containers_first_rate_is_that_of_its_life() -> None:
    node = Node()
    node.cgroups.uses("/kubepods/podu/id1", 2_000_000_000)
    (pod,) = node.sampler.sample().pods
    (container,) = pod.containers
    assert container.sample.rate == 500_000_000
    assert pod.sample is not None
    assert pod.sample.rate == 0


def test_later_rates_are_between_readings_and_a_reading_is_kept_for_ten_seconds() -> None:
    node = Node()
    first = node.sampler.newest()
    assert first.root is not None
    assert first.root.rate is None  # its start time is unknown
    node.clock.advance(9.0)
    assert node.sampler.newest() is first
    node.cgroups.uses("/", 5_000_000_000)
    node.clock.advance(1.0)
    root = node.sampler.newest().root
    assert root is not None
    assert root.rate == 500_000_000


def test_what_has_ended_is_not_sampled() -> None:
    node = Node()
    del node.cgroups.found["/kubepods/podu/id1"]
    assert [each.containers for each in node.sampler.sample().pods] == [[]]
    node.pods = [replace(node.pods[0], sandboxes=(), containers=node.pods[0].containers[1:])]
    assert node.sampler.sample().pods == []


def test_the_short_summary() -> None:
    node = Node()
    found = summary(node.sampler.sample(), FACTS, only_cpu_and_memory=True)
    time = "2023-11-14T22:13:20Z"
    assert found["node"]["nodeName"] == "n1"
    assert found["node"]["memory"]["availableBytes"] == 8192 - 1024
    assert found["node"]["systemContainers"][0]["name"] == "pods"
    (pod,) = found["pods"]
    assert pod["podRef"] == {"name": "p", "namespace": "ns", "uid": "u"}
    assert pod["containers"] == [
        {
            "name": "c",
            "startTime": "2023-11-14T22:13:16Z",
            "cpu": {"time": time, "usageNanoCores": 0, "usageCoreNanoSeconds": 0},
            "memory": {
                "time": time,
                "availableBytes": 3072,
                "usageBytes": 2048,
                "workingSetBytes": 1024,
                "rssBytes": 512,
                "pageFaults": 0,
                "majorPageFaults": 0,
            },
            "swap": {"time": time, "swapUsageBytes": 0},
        }
    ]
    assert not {"network", "volume", "ephemeral-storage", "process_stats"} & pod.keys()


def test_the_whole_summary() -> None:
    node = Node()
    pressure = (Pressure(1, 2.0, 3.0, 4.0), Pressure(0, 0.0, 0.0, 0.0))
    node.cgroups.found["/kubepods/podu"] = replace(IDLE, pressure={"io": pressure})
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "mine"}}
    pod_object = msgspec.convert({"metadata": {"name": "p", "namespace": "ns"}, "spec": {"volumes": [claim]}}, Pod)
    volumes = [
        Volume("tmp", EMPTY_DIR, Size(10, 1), DISK),
        Volume("mem", EMPTY_DIR, Size(99, 9), DISK, in_memory=True),
        Volume("v", "kubernetes.io~local-volume", Size(50, 5), DISK),
    ]
    facts = replace(
        FACTS,
        nodefs=DISK,
        images=ImageStore("/images", DISK, 70, 7),
        layers={"id1": Size(100, 2), "id0": Size(1, 1)},
        disks={"u": PodDisk({"c": Size(20, 2)}, volumes)},
        node_network=[Interface("eth0", 1, 2, 3, 4, 5, 6, 7, 8)],
        default_interface="eth0",
        pod_networks={"u": [Interface("eth0", 10, 0, 0, 0, 20, 0, 0, 0)]},
        pods={"u": pod_object},
        processes=(1000, 10),
    )
    found = summary(node.sampler.sample(), facts)
    assert found["node"]["fs"]["usedBytes"] == 400
    assert found["node"]["runtime"]["imageFs"]["usedBytes"] == 70
    assert found["node"]["runtime"]["containerFs"]["usedBytes"] == 101
    assert found["node"]["rlimit"]["maxpid"] == 1000
    assert found["node"]["network"]["rxBytes"] == 1
    (pod,) = found["pods"]
    assert (pod["network"]["name"], pod["network"]["txBytes"]) == ("eth0", 20)
    assert pod["ephemeral-storage"]["usedBytes"] == 20 + 101 + 10
    assert pod["process_stats"] == {"process_count": 3}
    assert pod["io"]["psi"]["some"] == {"total": 1, "avg10": 2.0, "avg60": 3.0, "avg300": 4.0}
    assert [each["name"] for each in pod["volume"]] == ["tmp", "mem", "v"]
    assert pod["volume"][2]["pvcRef"] == {"name": "mine", "namespace": "ns"}
    container = pod["containers"][0]
    assert (container["rootfs"]["usedBytes"], container["logs"]["usedBytes"]) == (100, 20)


def lines(text: bytes) -> dict[str, str]:
    pairs = (line.rpartition("} ") if "}" in line else line.partition(" ") for line in text.decode().splitlines())
    return {name + ("}" if sep == "} " else ""): value for name, sep, value in pairs if not name.startswith("#")}


def test_resource_metrics() -> None:
    node = Node()
    node.cgroups.uses("/kubepods/podu/id1", 1_500_000_000)
    found = lines(resource_metrics(node.sampler.sample()))
    labels = '{container="c",namespace="ns",pod="p"}'
    assert found["container_cpu_usage_seconds_total" + labels] == "1.5 1700000000000"
    assert found["container_memory_working_set_bytes" + labels] == "1024 1700000000000"
    assert found["container_start_time_seconds" + labels] == "1699999996"
    assert found['pod_memory_working_set_bytes{namespace="ns",pod="p"}'] == "1024 1700000000000"
    assert found["node_cpu_usage_seconds_total"] == "0 1700000000000"
    assert found["resource_scrape_error"] == "0"
    assert lines(resource_metrics(None)) == {"resource_scrape_error": "1"}


def test_cadvisor_metrics() -> None:
    node = Node()
    networks: Any = {"u": [Interface("eth0", 10, 0, 0, 0, 20, 0, 0, 0)]}
    found = lines(cadvisor_metrics(node.sampler.sample(), networks, cores=2, memory=8192))
    container = 'container="c",{}id="/kubepods/podu/id1",image="img",name="id1",namespace="ns",pod="p"'
    assert found[f"container_memory_rss{{{container.format('')}}}"] == "512 1700000000000"
    total = container.replace("{}", 'cpu="total",')
    assert found[f"container_cpu_usage_seconds_total{{{total}}}"] == "0 1700000000000"
    assert found["machine_cpu_cores"] == "2"
    assert any(name.startswith("container_network_transmit_bytes_total") for name in found)


def test_cadvisor_metrics_show_limits_out_of_memory_kills_and_disks() -> None:
    node = Node()
    details = Details(512, 50000, 100000, 7, 3, {"8:0": DeviceIO(4096, 10, 2, 1)})
    nodefs = FileSystem(1000, 400, 600, 50, 20)
    found = lines(
        cadvisor_metrics(node.sampler.sample(), {}, cores=2, memory=1, details=lambda _: details, nodefs=nodefs)
    )
    container = 'container="c",id="/kubepods/podu/id1",image="img",name="id1",namespace="ns",pod="p"'
    device = container.replace('id="/kube', 'device="8:0",id="/kube')
    shown = {
        name: found[f"{name}{{{labels}}}"].split()[0]
        for name, labels in (
            ("container_spec_cpu_shares", container),
            ("container_spec_cpu_quota", container),
            ("container_spec_cpu_period", container),
            ("container_threads", container),
            ("container_oom_events_total", container),
            ("container_fs_reads_bytes_total", device),
            ("container_fs_writes_total", device),
        )
    }
    assert list(shown.values()) == ["512", "50000", "100000", "7", "3", "4096", "1"]
    assert (
        found['container_fs_usage_bytes{container="",device="/",id="/",image="",name="",namespace="",pod=""}'] == "600"
    )


def test_claimed_volumes_and_logs_are_shown_among_the_kubelets_own_metrics_once() -> None:
    node = Node()
    mounted = Volume("data", "kubernetes.io~csi", Size(30, 3), DISK, abnormal=True)
    other = Volume("scratch", EMPTY_DIR, Size(1, 1), DISK)
    disks = {"u": PodDisk(logs={"c": Size(77, 1)}, volumes=[mounted, other])}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}, {"name": "scratch", "emptyDir": {}}]
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "ns"}, "spec": {"volumes": volumes}}, Pod)
    registry = Registry()
    NodeMetrics(registry, NoCgroups()).follow_volumes(lambda: claims_of(disks, {"u": pod}.get))
    text = registry.render() + log_metrics(node.sampler.sample(), disks)
    families = [line.split()[2] for line in text.decode().splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    found = lines(text)
    labels = '{namespace="ns",persistentvolumeclaim="claim"}'
    for name, value in (
        ("available_bytes", "600"),
        ("capacity_bytes", "1000"),
        ("used_bytes", "400"),
        ("inodes", "100"),
        ("inodes_free", "90"),
        ("inodes_used", "10"),
        ("health_status_abnormal", "1"),
    ):
        assert found[f"kubelet_volume_stats_{name}{labels}"] == value
    where = '{container="c",namespace="ns",pod="p",uid="u"}'
    assert found[f"kubelet_container_log_filesystem_used_bytes{where}"] == "77"
    assert len([name for name in found if "volume_stats" in name]) == 7
