"""Computes the usage of a simulated node, its pods and containers, in the form in which a kubelet measures it. Pure.

Nothing is sampled: what a container has used up to any moment is known (`curves.py`), so a rate is the mean of the ten
seconds before, as a kubelet measures it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pybernetes.api.core.v1 import Pod

from ..runtime.types import ObservedContainer, find_container
from ..stats.network import Interface
from ..stats.sampler import INTERVAL, SHORTEST, ContainerSample, NodeSample, PodSample, Sample
from ..stats.usage import Usage
from . import usage
from .pod import SimulatedPod

KUBEPODS: Final = "/kubepods"
SYSTEM: Final = Usage(cpu=0, memory=256 << 20, working_set=256 << 20, rss=192 << 20, processes=100)
"""The node's own usage, and its CPU in cores."""
SYSTEM_CPU: Final = 0.05


def node_sample(pods: Iterable[tuple[Pod, SimulatedPod]], started_at: float, now: float) -> NodeSample:
    """All of a node that has been there since `started_at`."""
    found = [each for pod, simulated in pods if (each := pod_sample(pod, simulated, now)) is not None]
    kubepods = _sum([each.sample for each in found if each.sample is not None], now)
    age = max(0.0, now - started_at)
    own = Sample(now, _with_cpu(SYSTEM, SYSTEM_CPU * age), int(SYSTEM_CPU * 1e9) if age >= SHORTEST else None)
    root = _sum([kubepods, own], now)
    return NodeSample(now, root, kubepods, found)


def interfaces(sample: NodeSample) -> dict[str, list[Interface]]:
    """The network of each pod that has one of its own, by uid: nothing has ever come or gone."""
    nothing = Interface("eth0", 0, 0, 0, 0, 0, 0, 0, 0)
    return {each.pod.uid: [nothing] for each in sample.pods if each.pod.sandbox and not each.pod.sandbox.host_network}


def pod_sample(pod: Pod, simulated: SimulatedPod, now: float) -> PodSample | None:
    """The usage of a pod; None if nothing of it runs."""
    observed = simulated.observed
    sandbox = observed.sandbox
    running = observed.running()
    if sandbox is None or not (running or sandbox.ready):
        return None
    cgroup = f"{KUBEPODS}/pod{observed.uid}"
    containers = [
        ContainerSample(each, f"{cgroup}/{each.id}", sample)
        for each in running
        if (sample := _container_sample(pod, simulated, each, now)) is not None
    ]
    total = _sum([each.sample for each in containers], now)
    return PodSample(observed, cgroup, sandbox.created_at, total, containers)


def _container_sample(pod: Pod, simulated: SimulatedPod, found: ObservedContainer, now: float) -> Sample | None:
    container = find_container(pod, found.name)
    if container is None:
        return None
    wanted = simulated.behaviour(pod, found.name)
    age = max(0.0, now - found.started_at)
    curve = usage.cpu(container, wanted, found)
    total = curve.total(age)
    rate = None
    if age >= SHORTEST:
        window = min(INTERVAL, age)
        rate = int((total - curve.total(age - window)) / window * 1e9)
    limit = usage.memory_limit(container)
    memory = int(usage.memory(container, wanted, found).at(age))
    measured = Usage(
        cpu=0, memory=memory, working_set=memory, rss=memory, memory_limit=limit, processes=1, page_faults=memory >> 12
    )
    return Sample(now, _with_cpu(measured, total), rate)


def _with_cpu(measured: Usage, seconds: float) -> Usage:
    nanoseconds = int(seconds * 1e9)
    return replace(measured, cpu=nanoseconds, cpu_user=nanoseconds)


def _sum(samples: list[Sample], now: float) -> Sample:
    """The sum of several samples; an unknown rate counts as zero, unless all are unknown."""
    uses = [each.usage for each in samples]
    rates = [each.rate for each in samples]
    total = Usage(
        cpu=sum(each.cpu for each in uses),
        memory=sum(each.memory for each in uses),
        working_set=sum(each.working_set for each in uses),
        rss=sum(each.rss for each in uses),
        page_faults=sum(each.page_faults for each in uses),
        processes=sum(each.processes or 0 for each in uses),
        cpu_user=sum(each.cpu_user for each in uses),
    )
    known = [each for each in rates if each is not None]
    return Sample(now, total, sum(known) if known or not rates else None)
