"""Evictions with a clock and figures of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from kubelet.pods import container, pod

from pybernetes.api.core.v1 import EmptyDirVolumeSource, Pod, PodCondition, Toleration, Volume
from pybernetes.client.clock import FakeClock
from pybernetes.kubelet.eviction.manager import EvictionManager
from pybernetes.kubelet.eviction.ranking import rank
from pybernetes.kubelet.eviction.thresholds import Level, parse_thresholds
from pybernetes.kubelet.eviction.usage import ContainerUsage, DiskUsage, PodUsage
from pybernetes.kubelet.pod.refusal import PodRefused

MI = 1 << 20
GI = 1 << 30
CONFIG_SOURCE = "kubernetes.io/config.source"


class Node:
    """A node whose levels and usages are set by the test."""

    dedicated_imagefs = False

    def __init__(self, pods: Sequence[Pod] = (), **config: Any) -> None:
        self.clock = FakeClock()
        self.levels: dict[str, Level] = {}
        self.usages: dict[str, PodUsage] = {}
        self.active = list(pods)
        self.asked: list[tuple[list[str], bool]] = []
        self.evicted: list[tuple[str, float, str, PodCondition | None, Mapping[str, str]]] = []
        self.events: list[str] = []
        self.changes = 0
        self.reclaimed: list[str] = []
        thresholds = parse_thresholds(
            config.pop("hard", {"memory.available": "1Gi"}),
            config.pop("soft", None),
            config.pop("soft_grace", None),
            config.pop("reclaim", None),
        )
        self.manager = EvictionManager(
            thresholds,
            source=self,
            active_pods=lambda: list(self.active),
            evict=self._evict,
            clock=self.clock,
            reclaim_containers=self._reclaim("containers"),
            reclaim_images=self._reclaim("images"),
            event=lambda *words: self.events.append(" ".join(words)),
            changed=self._changed,
            **config,
        )

    async def node(self) -> Mapping[str, Level]:
        return self.levels

    async def pods(self, pods: Sequence[Pod], *, disk: bool) -> Mapping[str, PodUsage]:
        self.asked.append(([each.metadata.uid for each in pods], disk))
        return self.usages

    async def _evict(
        self, pod: Pod, grace: float, message: str, condition: PodCondition | None, notes: Mapping[str, str]
    ) -> None:
        self.evicted.append((pod.metadata.uid, grace, message, condition, notes))
        self.active = [each for each in self.active if each is not pod]

    def _changed(self) -> None:
        self.changes += 1

    def _reclaim(self, what: str) -> Any:
        async def reclaim() -> None:
            self.reclaimed.append(what)

        return reclaim

    def memory(self, available: int) -> None:
        self.levels["memory.available"] = Level(available, 8 * GI)

    def disk(self, available: int, signal: str = "nodefs.available") -> None:
        self.levels[signal] = Level(available, 100 * GI)


SMALL = pod("small", container("a", memory="100Mi"))
LARGE = pod("large", container("a", memory="100Mi"))
BEST_EFFORT = pod("best-effort", container("a"))


async def test_nothing_is_measured_while_nothing_is_short() -> None:
    node = Node([SMALL, LARGE])
    node.memory(2 * GI)
    assert await node.manager.synchronize() == []
    assert (node.asked, node.changes, node.events) == ([], 0, [])


async def test_who_uses_most_beyond_its_request_goes_with_the_reason() -> None:
    node = Node([SMALL, LARGE])
    node.memory(512 * MI)
    node.usages = {
        "small": PodUsage(memory=150 * MI, containers={"a": ContainerUsage(memory=150 * MI)}),
        "large": PodUsage(memory=400 * MI, containers={"a": ContainerUsage(memory=400 * MI)}),
    }
    assert await node.manager.synchronize() == [LARGE]
    ((uid, grace, message, condition, notes),) = node.evicted
    assert (uid, grace) == ("large", 1.0)
    assert message == (
        "The node was low on resource: memory. Threshold quantity: 1Gi, available: 512Mi. "
        "Container a was using 400Mi, request is 100Mi, has larger consumption of memory. "
    )
    assert condition is not None
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "DisruptionTarget",
        "True",
        "TerminationByKubelet",
        message,
    )
    assert notes == {
        "offending_containers": "a",
        "offending_containers_usage": "400Mi",
        "starved_resource": "memory",
    }
    assert node.events == ["Warning EvictionThresholdMet Attempting to reclaim memory"]
    assert node.manager.under_pressure("MemoryPressure")
    assert node.changes == 1


async def test_critical_pods_stay_and_the_next_one_goes() -> None:
    static = pod("static", container("a"), annotations={CONFIG_SOURCE: "file"})
    critical = pod("critical", container("a"), priority=2_000_000_000)
    node = Node([static, critical, SMALL])
    node.memory(0)
    node.usages = {uid: PodUsage(memory=size) for uid, size in (("static", 900), ("critical", 800), ("small", 1))}
    assert await node.manager.synchronize() == [SMALL]


async def test_a_soft_threshold_waits_and_gives_pods_time() -> None:
    slow = pod("slow", container("a"), termination_grace_period_seconds=60)
    node = Node(
        [slow], hard={}, soft={"memory.available": "2Gi"}, soft_grace={"memory.available": "1m"}, max_pod_grace=30
    )
    node.memory(GI)
    assert await node.manager.synchronize() == []
    assert node.manager.under_pressure("MemoryPressure")
    node.clock.advance(59)
    assert await node.manager.synchronize() == []
    node.clock.advance(1)
    assert await node.manager.synchronize() == [slow]
    assert node.evicted[0][1] == 30


async def test_a_soft_threshold_that_recovers_starts_anew() -> None:
    node = Node([SMALL], hard={}, soft={"memory.available": "2Gi"}, soft_grace={"memory.available": "1m"})
    for available, seconds in ((GI, 50), (3 * GI, 20), (GI, 50)):
        node.memory(available)
        assert await node.manager.synchronize() == []
        node.clock.advance(seconds)
    assert await node.manager.synchronize() == []


async def test_a_condition_stays_for_the_transition_period() -> None:
    node = Node(pressure_transition_period=300.0)
    node.memory(0)
    await node.manager.synchronize()
    node.memory(4 * GI)
    node.clock.advance(299)
    await node.manager.synchronize()
    assert node.manager.under_pressure("MemoryPressure")
    node.clock.advance(1)
    await node.manager.synchronize()
    assert not node.manager.under_pressure("MemoryPressure")
    assert node.changes == 2


async def test_more_is_won_back_than_the_threshold_where_asked_for() -> None:
    node = Node([SMALL, LARGE], reclaim={"memory.available": "500Mi"})
    node.memory(1000 * MI)
    assert len(await node.manager.synchronize()) == 1
    node.memory(1100 * MI)
    assert len(await node.manager.synchronize()) == 1
    node.memory(1600 * MI)
    node.active = [SMALL]
    assert await node.manager.synchronize() == []


async def test_disk_is_won_from_dead_containers_and_images_before_pods() -> None:
    node = Node([SMALL], hard={"nodefs.available": "10%"})
    node.disk(5 * GI)
    original = node.manager._reclaim_images

    async def images() -> None:
        await original()  # type: ignore[misc]
        node.disk(20 * GI)

    node.manager._reclaim_images = images
    assert await node.manager.synchronize() == []
    assert (node.reclaimed, node.evicted) == (["containers", "images"], [])
    node.manager._reclaim_images = original
    node.disk(5 * GI)
    node.usages = {"small": PodUsage(containers={"a": ContainerUsage(rootfs=DiskUsage(2 * GI), logs=DiskUsage(GI))})}
    assert await node.manager.synchronize() == [SMALL]
    assert node.asked[-1] == (["small"], True)
    message = node.evicted[0][2]
    assert message.startswith("The node was low on resource: ephemeral-storage. Threshold quantity: ")
    assert "Container a was using 3Gi, request is 0, has larger consumption of ephemeral-storage. " in message


async def test_memory_comes_before_disk() -> None:
    node = Node([SMALL], hard={"nodefs.available": "10%", "memory.available": "1Gi"})
    node.disk(0)
    node.memory(0)
    await node.manager.synchronize()
    assert node.events == ["Warning EvictionThresholdMet Attempting to reclaim memory"]
    assert [
        each for each in ("MemoryPressure", "DiskPressure", "PIDPressure") if node.manager.under_pressure(each)
    ] == [
        "MemoryPressure",
        "DiskPressure",
    ]


async def test_pids_are_watched_too() -> None:
    node = Node([SMALL, LARGE], hard={"pid.available": "10%"})
    node.levels["pid.available"] = Level(100, 32768)
    node.usages = {"small": PodUsage(processes=5), "large": PodUsage(processes=500)}
    assert await node.manager.synchronize() == [LARGE]
    assert node.manager.under_pressure("PIDPressure")
    assert node.evicted[0][2] == "The node was low on resource: pids. Threshold quantity: 3276, available: 100. "


# who is let in


async def _pressed(*signals: str) -> EvictionManager:
    hard = {"memory.available": "1Gi", "nodefs.available": "1Gi"}
    node = Node(hard=hard)
    for signal in signals:
        node.levels[signal] = Level(0, 8 * GI)
    await node.manager.synchronize()
    return node.manager


async def test_under_memory_pressure_best_effort_pods_are_refused_unless_they_tolerate_it() -> None:
    manager = await _pressed("memory.available")
    manager.admit(SMALL)
    with pytest.raises(PodRefused) as refused:
        manager.admit(BEST_EFFORT)
    assert (refused.value.reason, refused.value.message) == ("Evicted", "The node had condition: [MemoryPressure]. ")
    toleration = Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule")
    manager.admit(pod("x", container("a"), tolerations=[toleration]))


async def test_under_disk_pressure_only_critical_pods_are_let_in() -> None:
    manager = await _pressed("nodefs.available")
    with pytest.raises(PodRefused, match="DiskPressure"):
        manager.admit(SMALL)
    manager.admit(pod("x", container("a"), priority=2_000_000_000))


# limits of local storage


def _volume(limit: str, medium: str = "") -> Volume:
    return Volume(name="v", empty_dir=EmptyDirVolumeSource(size_limit=limit, medium=medium))


@pytest.mark.parametrize(
    ("subject", "usage", "message"),
    [
        (
            pod("p", container("a"), volumes=[_volume("1Mi")]),
            PodUsage(volumes={"v": DiskUsage(2 * MI)}),
            'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
        ),
        (
            pod("p", container("a", limits={"ephemeral-storage": "1Mi"}), container("b")),
            PodUsage(containers={"a": ContainerUsage(rootfs=DiskUsage(MI), logs=DiskUsage(1))}, volumes={}),
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
        (
            pod(
                "p",
                container("a", limits={"ephemeral-storage": "1Mi"}),
                container("b", limits={"ephemeral-storage": "9Mi"}),
            ),
            PodUsage(containers={"a": ContainerUsage(rootfs=DiskUsage(MI), logs=DiskUsage(1))}),
            'Container a exceeded its local ephemeral storage limit "1Mi". ',
        ),
        (
            pod("p", container("a", limits={"ephemeral-storage": "1Mi"}), volumes=[_volume("9Gi", "Memory")]),
            PodUsage(volumes={"v": DiskUsage(5 * MI)}),
            "",
        ),
        (pod("p", container("a"), volumes=[_volume("2Mi")]), PodUsage(volumes={"v": DiskUsage(2 * MI)}), ""),
    ],
    ids=["emptyDir", "pod", "container", "memory is no disk", "at the limit"],
)
async def test_pods_over_their_disk_limits_go_though_nothing_is_short(
    subject: Pod, usage: PodUsage, message: str
) -> None:
    node = Node([subject, SMALL])
    node.memory(4 * GI)
    node.usages = {"p": usage}
    await node.manager.synchronize()
    assert [(each[0], each[2]) for each in node.evicted] == ([("p", message)] if message else [])
    assert node.asked == [(["p"], True)]


# order


def _ranked(signal: str, usages: dict[str, PodUsage], *pods: Pod, dedicated: bool = False) -> list[str]:
    return [each.metadata.uid for each in rank(pods, signal, usages, dedicated_imagefs=dedicated)]


def test_pods_beyond_their_requests_go_first_then_low_priority_then_the_hungriest() -> None:
    pods = [
        pod("modest", container("a", memory="1Gi"), priority=0),
        pod("important", container("a", memory="1Mi"), priority=100),
        pod("hungry", container("a", memory="1Mi"), priority=0),
        pod("less-hungry", container("a", memory="1Mi"), priority=0),
        pod("unknown", container("a"), priority=1000),
    ]
    usages = {
        "modest": PodUsage(memory=900 * MI),
        "important": PodUsage(memory=900 * MI),
        "hungry": PodUsage(memory=500 * MI),
        "less-hungry": PodUsage(memory=400 * MI),
    }
    expected = ["unknown", "hungry", "less-hungry", "important", "modest"]
    assert _ranked("memory.available", usages, *pods) == expected


def test_on_a_file_system_of_their_own_images_are_counted_apart_from_logs_and_volumes() -> None:
    pods = [pod("layers", container("a")), pod("logs", container("a"))]
    usages = {
        "layers": PodUsage(containers={"a": ContainerUsage(rootfs=DiskUsage(100, 1))}),
        "logs": PodUsage(containers={"a": ContainerUsage(logs=DiskUsage(50, 7))}),
    }
    assert _ranked("nodefs.available", usages, *pods) == ["layers", "logs"]
    assert _ranked("nodefs.available", usages, *pods, dedicated=True) == ["logs", "layers"]
    assert _ranked("imagefs.available", usages, *pods, dedicated=True) == ["layers", "logs"]
    assert _ranked("nodefs.inodesFree", usages, *pods) == ["logs", "layers"]
