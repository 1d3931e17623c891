"""Everything that can be asked about what a node uses: for the server's handlers, for eviction, for `kubectl top`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from pybernetes.api.core.v1 import Pod
from pybernetes.client.clock import Clock

from ..cgroups.manager import CgroupManager
from ..node.allocatable import max_pids, meminfo, running_tasks
from ..runtime.types import ObservedPod
from .cadvisor import cadvisor_metrics
from .cgroup_details import details_reader
from .disk import Disk, FilesystemRuntime, PodDisk, log_folder
from .log_sizes import log_metrics
from .network import Interface, default_interface, interfaces_of
from .resource import resource_metrics
from .sampler import NodeSample, Sampler
from .summary import Facts, Json, summary
from .usage import UsageReader

MEASURED_WITHIN = 5.0
"""Seconds that a scrape of /metrics waits for the sizes of volumes."""


class StatsProvider:
    """Resource usage of the node, its pods and containers. `await run()` keeps sampling."""

    def __init__(
        self,
        *,
        node: str,
        runtime: FilesystemRuntime,
        clock: Clock,
        root: Path,
        logs: Path,
        observed: Callable[[], Iterable[ObservedPod]],
        pods: Callable[[], Iterable[Pod]],
        cgroups: CgroupManager,
        usage: UsageReader,
        node_cgroup: str = "/",
    ) -> None:
        """`root` is the kubelet's folder, `logs` that of the pods' logs; `observed` what the runtime has, `pods` the
        API's pods of this node; `node_cgroup` the cgroup that counts as the node (that above `/kubepods`)."""
        self.disk = Disk(runtime, clock, root, logs)
        self.sampler = Sampler(
            usage,
            clock,
            observed=observed,
            cgroups=cgroups.pods,
            root=node_cgroup,
            kubepods=cgroups.kubepods,
        )
        self._node = node
        self._clock = clock
        self._pods = pods
        self._cgroups = cgroups
        self._started_at = clock.now()
        self._memory = meminfo()["MemTotal"]
        self._measuring: asyncio.Task[dict[str, PodDisk]] | None = None

    async def run(self) -> None:
        """Sample until cancelled."""
        await self.sampler.run()

    async def summary(self, only_cpu_and_memory: bool = False) -> Json:
        """The document of /stats/summary."""
        sample = self.sampler.newest()
        facts = Facts(self._node, self._started_at, self._memory)
        if not only_cpu_and_memory:
            facts.nodefs = self.disk.nodefs()
            facts.images = await self.disk.images()
            facts.layers = await self.disk.layers()
            facts.disks = await self._disks(sample)
            facts.node_network = interfaces_of("self")
            facts.default_interface = default_interface()
            facts.pod_networks = self._networks(sample)
            facts.pods = self._pods_by_uid()
            facts.processes = (max_pids(), running_tasks())
        return summary(sample, facts, only_cpu_and_memory=only_cpu_and_memory)

    async def log_metrics(self) -> bytes:
        """The metrics of logs for /metrics, after measuring volumes and logs; slow ones appear in a later scrape."""
        sample = self.sampler.newest()
        if self._measuring is None or self._measuring.done():
            self._measuring = asyncio.create_task(self._disks(sample))
        await asyncio.wait((self._measuring,), timeout=MEASURED_WITHIN)
        ready = self._measuring.done() and not self._measuring.cancelled() and self._measuring.exception() is None
        return log_metrics(sample, self._measuring.result() if ready else {})

    async def _disks(self, sample: NodeSample) -> dict[str, PodDisk]:
        return await self.disk.pods(
            {each.pod.uid: log_folder(each.pod.ref.namespace, each.pod.ref.name, each.pod.uid) for each in sample.pods}
        )

    def _pods_by_uid(self) -> dict[str, Pod]:
        return {(each.metadata.uid or "") if each.metadata else "": each for each in self._pods()}

    def resource_metrics(self) -> bytes:
        """The text of /metrics/resource."""
        return resource_metrics(self.sampler.newest())

    def cadvisor_metrics(self) -> bytes:
        """The text of /metrics/cadvisor."""
        sample = self.sampler.newest()
        return cadvisor_metrics(
            sample,
            self._networks(sample),
            cores=os.cpu_count() or 1,
            memory=self._memory,
            details=details_reader(),
            nodefs=self.disk.nodefs(),
        )

    def _networks(self, sample: NodeSample) -> dict[str, list[Interface]]:
        """The interfaces of each pod that has a network of its own, by uid."""
        found = {}
        for each in sample.pods:
            if each.pod.sandbox is None or each.pod.sandbox.host_network:
                continue
            pids = self._cgroups.hierarchy.pids(each.cgroup) - {0}
            if pids:
                found[each.pod.uid] = interfaces_of(min(pids))
        return found
