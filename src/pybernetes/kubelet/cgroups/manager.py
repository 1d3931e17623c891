"""The cgroups of a node's pods: `/kubepods`, below it one for each quality of service, below that one for each pod.

Guaranteed pods are directly in `/kubepods`. The weight of `burstable` is the sum of what its pods request, that of
`besteffort` the least there is, so that who has asked gets the CPU. A pod's cgroup is there before its sandbox and
goes after its last process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Iterable
from typing import Final

from pybernetes.api.core.podrequests import pod_requests
from pybernetes.api.core.podresources import Quantities, qos_class
from pybernetes.api.core.v1 import Pod
from pybernetes.client.keys import key_of
from pybernetes.component import klog

from .config import (
    MIN_SHARES,
    QUOTA_PERIOD,
    UNLIMITED,
    CgroupConfig,
    milli_cpu_to_shares,
    node_config,
    pod_config,
)
from .hierarchy import CgroupError, Hierarchy

KUBEPODS: Final = "kubepods"
PREFIX: Final = "pod"
QOS_FOLDERS: Final = {"Guaranteed": "", "Burstable": "/burstable", "BestEffort": "/besteffort"}
_UNBOUNDED: Final = 1 << 62
_KILL_TRIES: Final = 5
_REMOVE_TRIES: Final = 7
_REMOVE_SECONDS: Final = 0.005

log = logging.getLogger(__name__)


class CgroupManager:
    """Makes, changes and removes the cgroups of pods."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        *,
        root: str = "/",
        pod_pids_limit: int = UNLIMITED,
        cpu_cfs_quota: bool = True,
        cpu_cfs_quota_period: int = QUOTA_PERIOD,
    ) -> None:
        self.hierarchy = hierarchy
        self.kubepods = f"{root.rstrip('/')}/{KUBEPODS}"
        self._pod_pids_limit = pod_pids_limit
        self._cpu_cfs_quota = cpu_cfs_quota
        self._period = cpu_cfs_quota_period
        self._burstable: dict[str, int] = {}
        """Thousandths of a CPU that Burstable pods request, by uid."""
        self._burstable_shares: int | None = None

    @property
    def enforced(self) -> bool:
        """Whether limits have an effect."""
        return self.hierarchy.version > 0

    def start(self, allocatable: Quantities, *, pids: int | None = None, cpuset: str | None = None) -> None:
        """Make the upper levels, and limit all pods together to what may be allocated; again after a restart.

        Who does not enforce allocatable passes the capacity: the weight must be set in any case.
        """
        limits = node_config(allocatable, pids=pids)
        if not self.hierarchy.exists(self.kubepods):
            self.hierarchy.create(self.kubepods, limits)
        else:
            self.hierarchy.update(self.kubepods, limits)
        hugepages = dict.fromkeys(self.hierarchy.page_sizes(), _UNBOUNDED)
        for name, shares in ((self.burstable, None), (self.best_effort, MIN_SHARES)):
            self.hierarchy.create(name, CgroupConfig(cpu_shares=shares, hugepages=hugepages))

    def enforce_reserved(self, name: str, reserved: Quantities, *, compressible: bool = False) -> None:
        """Limit what is not pods (`kubeReservedCgroup`...) to what is reserved for it; the cgroup must be there.

        `compressible` leaves memory and pids alone: who runs short of CPU waits, who runs short of memory dies.
        """
        if not self.hierarchy.exists(name):
            raise CgroupError(f'cgroup "{name}" does not exist')
        config = node_config(reserved)
        self.hierarchy.update(name, CgroupConfig(cpu_shares=config.cpu_shares) if compressible else config)

    @property
    def burstable(self) -> str:
        """The cgroup of all Burstable pods."""
        return self.kubepods + QOS_FOLDERS["Burstable"]

    @property
    def best_effort(self) -> str:
        """The cgroup of all BestEffort pods."""
        return self.kubepods + QOS_FOLDERS["BestEffort"]

    def name(self, pod: Pod) -> str:
        """The name of a pod's cgroup, in the form the runtime expects (`cgroup_parent`)."""
        assert pod.metadata is not None
        return f"{self.kubepods}{QOS_FOLDERS[qos_class(pod.spec)]}/{PREFIX}{pod.metadata.uid}"

    def config(self, pod: Pod, *, exclusive: bool = False) -> CgroupConfig:
        """The settings a pod's cgroup should have; a pod with exclusive CPUs has no quota."""
        return pod_config(
            pod, cpu_cfs_quota=self._cpu_cfs_quota and not exclusive, period=self._period, pids=self._pod_pids_limit
        )

    def ensure(self, pod: Pod, *, exclusive: bool = False, unused: bool = False) -> str:
        """Make a pod's cgroup, by its allocated resources, if it is not there; its name, empty if it has none.

        As long as it is `unused`, nothing of the pod having been started, it is made whatever is there: a kubelet that
        was killed may have left half of it, without limits or without any CPU.
        """
        name = self.name(pod)
        if unused or not self.hierarchy.exists(name):
            if self.enforced:
                klog.info(log, 4, "The cgroup has some missing paths", cgroupName=name, pod=key_of(pod))
            self._weigh({**self._burstable, **_burstable([pod])})
            self.hierarchy.create(name, self.config(pod, exclusive=exclusive))
        return name if self.enforced else ""

    def update(self, pod: Pod, config: CgroupConfig) -> None:
        """Change a pod's cgroup."""
        self.hierarchy.update(self.name(pod), config)

    def read(self, pod: Pod) -> CgroupConfig:
        """Read the settings of a pod's cgroup."""
        return self.hierarchy.read(self.name(pod))

    def memory_usage(self, pod: Pod) -> int:
        """Bytes that all containers of a pod have."""
        return self.hierarchy.memory_usage(self.name(pod))

    def update_qos(self, pods: Iterable[Pod]) -> None:
        """Set the weight of Burstable pods to the sum of their requests; when they change, and now and then."""
        self._weigh(_burstable(pods))

    def _weigh(self, requests: dict[str, int]) -> None:
        self._burstable = requests
        shares = milli_cpu_to_shares(sum(requests.values()))
        if shares != self._burstable_shares:
            self.hierarchy.update(self.burstable, CgroupConfig(cpu_shares=shares))
            self._burstable_shares = shares

    def pods(self) -> dict[str, str]:
        """The cgroups of pods that are there, by the pod's uid."""
        return {
            child.removeprefix(PREFIX): f"{parent}/{child}"
            for parent in (self.kubepods, self.burstable, self.best_effort)
            for child in self.hierarchy.children(parent)
            if child.startswith(PREFIX)
        }

    async def remove(self, uid: str) -> None:
        """Kill what is left in a pod's cgroup and remove it; `CgroupError` if processes do not go: try again."""
        name = self.pods().get(uid)
        if name is not None:
            await self._remove(name)
        if uid in self._burstable:
            self._weigh({each: milli for each, milli in self._burstable.items() if each != uid})

    async def remove_orphans(self, known: Iterable[str]) -> None:
        """Remove the cgroups of unknown pods; those that cannot be removed stay for the next time."""
        keep = set(known)
        for uid in self.pods().keys() - keep:
            try:
                await self.remove(uid)
            except CgroupError as error:
                log.info("cgroup of pod %s stays for now: %s", uid, error)

    async def remove_all(self) -> None:
        """Remove `/kubepods` with all that is in it, as a node does that is taken out of service."""
        await self._remove(self.kubepods)

    async def _remove(self, name: str) -> None:
        self._kill(name)
        for tried in range(_REMOVE_TRIES):
            try:
                return self.hierarchy.remove(name)
            except CgroupError:  # processes that were killed are there until they are reaped
                if tried == _REMOVE_TRIES - 1:
                    raise
                await asyncio.sleep(_REMOVE_SECONDS * 2**tried)

    def _kill(self, name: str) -> None:
        for _ in range(_KILL_TRIES):
            # 0 are processes outside our PID namespace, and none of ours.
            pids = self.hierarchy.pids(name) - {0, os.getpid()}
            if not pids:
                return
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                except OSError as error:
                    raise CgroupError(f"failed to kill process {pid} of cgroup {name}: {error.strerror}") from error


def _burstable(pods: Iterable[Pod]) -> dict[str, int]:
    """The CPU requests of the Burstable pods among these, by uid."""
    found = {}
    for pod in pods:
        if qos_class(pod.spec) == "Burstable" and (cpu := pod_requests(pod, use_status=False).get("cpu")):
            assert pod.metadata is not None
            found[pod.metadata.uid or ""] = cpu.milli_value()
    return found
