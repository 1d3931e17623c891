"""Reads all cgroups of a node every ten seconds, so that rates are available at any time.

A reading costs a few files of the kernel for each container, and no call to the runtime. A container that is younger
than the last reading had used nothing when it started, so its rate is known from its first reading on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from pybernetes.client.clock import Clock

from ..runtime.types import ObservedContainer, ObservedPod
from .usage import Usage, UsageReader

INTERVAL: Final = 10.0
"""Seconds between two readings: cAdvisor's."""
SHORTEST: Final = 1.0
"""Seconds that a rate must at least be measured over: less says nothing."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sample:
    """A reading and when it was taken; `rate` is nanoseconds of CPU per second since the reading before."""

    time: float
    usage: Usage
    rate: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerSample:
    """A running container."""

    container: ObservedContainer
    cgroup: str
    sample: Sample


@dataclass(frozen=True, slots=True)
class PodSample:
    """A pod of which something runs."""

    pod: ObservedPod
    cgroup: str
    started_at: float
    sample: Sample | None
    containers: list[ContainerSample] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NodeSample:
    """All of a node."""

    time: float
    root: Sample | None
    kubepods: Sample | None
    pods: list[PodSample] = field(default_factory=list)


class Sampler:
    """Keeps the newest reading of everything."""

    def __init__(
        self,
        reader: UsageReader,
        clock: Clock,
        *,
        observed: Callable[[], Iterable[ObservedPod]],
        cgroups: Callable[[], dict[str, str]],
        root: str = "/",
        kubepods: str = "/kubepods",
    ) -> None:
        """`cgroups` says which cgroup each pod has, by uid (`CgroupManager.pods`); `root` is the node's own."""
        self._reader = reader
        self._clock = clock
        self._observed = observed
        self._cgroups = cgroups
        self._root = root
        self._kubepods = kubepods
        self._last: dict[str, Sample] = {}
        self._newest: NodeSample | None = None

    async def run(self) -> None:
        """Read every ten seconds until cancelled."""
        while True:
            try:
                await self._reader.refresh()
                self.sample()
            except Exception:
                log.exception("the node's usage could not be read")
            await self._clock.sleep(INTERVAL)

    def newest(self) -> NodeSample:
        """The newest reading, not older than the interval."""
        if self._newest is not None and 0 <= self._clock.now() - self._newest.time < INTERVAL:
            return self._newest
        return self.sample()  # also if the clock was set back

    def sample(self) -> NodeSample:
        """Read everything now."""
        now = self._clock.now()
        seen: dict[str, Sample] = {}
        names = self._cgroups()
        node = NodeSample(now, self._read(self._root, seen), self._read(self._kubepods, seen))
        for pod in self._observed():
            name = names.get(pod.uid)
            running = pod.running()
            if name is None or not (running or (pod.sandbox and pod.sandbox.ready)):
                continue
            started = pod.sandbox.created_at if pod.sandbox else 0.0
            entry = PodSample(pod, name, started, self._read(name, seen, started))
            for container in running:
                below = f"{name}/{container.id}"
                sample = self._read(below, seen, container.started_at)
                if sample is not None:
                    entry.containers.append(ContainerSample(container, below, sample))
            node.pods.append(entry)
        self._last = seen
        self._newest = node
        return node

    def _read(self, name: str, seen: dict[str, Sample], started: float = 0.0) -> Sample | None:
        usage = self._reader.read(name)
        if usage is None:
            return None
        now = self._clock.now()
        last = self._last.get(name)
        rate = None
        if last is not None and now < last.time:
            rate = last.rate  # the clock was set back
        elif last is not None and now - last.time < SHORTEST:
            rate = last.rate  # asked again too soon
        elif last is not None and usage.cpu >= last.usage.cpu:
            rate = int((usage.cpu - last.usage.cpu) / (now - last.time))
        elif started and now - started >= SHORTEST:
            rate = int(usage.cpu / (now - started))
        seen[name] = sample = Sample(now, usage, rate)
        return sample
