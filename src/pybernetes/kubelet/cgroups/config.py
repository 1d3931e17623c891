"""Computes the settings of a cgroup from a pod or a node: pure arithmetic.

The numbers are the kernel's: shares between 2 and 262144 with 1024 for one CPU, a quota of at least 1 ms in a period
of (usually) 100 ms. A limit that a Burstable pod has for some of its containers only is no limit of the pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pybernetes.api.core.podrequests import pod_limits, pod_requests
from pybernetes.api.core.podresources import Quantities, parsed, qos_class, quantity
from pybernetes.api.core.resourcenames import HUGEPAGES_PREFIX, is_hugepages
from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.api.quantity import Quantity

MIN_SHARES: Final = 2
MAX_SHARES: Final = 262144
SHARES_PER_CPU: Final = 1024
QUOTA_PERIOD: Final = 100_000
"""Microseconds."""
MIN_QUOTA: Final = 1000
"""Microseconds; the kernel takes no less."""
UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True)
class CgroupConfig:
    """Values for a cgroup; None leaves what is there. Memory and pids: -1 is no limit."""

    cpu_shares: int | None = None
    cpu_quota: int | None = None
    """Microseconds in a period; -1 is no limit."""
    cpu_period: int | None = None
    memory: int | None = None
    pids: int | None = None
    cpuset: str | None = None
    hugepages: Mapping[int, int] | None = None
    """Page size to limit, both in bytes; sizes that are not named get none."""


def milli_cpu_to_shares(milli: int) -> int:
    """The weight of so many thousandths of a CPU, in cgroup v1's scale."""
    return max(MIN_SHARES, min(MAX_SHARES, milli * SHARES_PER_CPU // 1000))


def shares_to_milli_cpu(shares: int) -> int:
    """The way back, rounded up."""
    return -(-shares * 1000 // SHARES_PER_CPU) if shares >= MIN_SHARES else 0


def milli_cpu_to_quota(milli: int, period: int = QUOTA_PERIOD) -> int:
    """Microseconds of CPU in a period; 0 if there is no limit."""
    return max(MIN_QUOTA, milli * period // 1000) if milli else 0


def quota_to_milli_cpu(quota: int, period: int) -> int:
    """The way back; 0 if there is no limit."""
    return 0 if quota == UNLIMITED or not period else quota * 1000 // period


def pod_config(
    pod: Pod, *, cpu_cfs_quota: bool = True, period: int = QUOTA_PERIOD, pids: int = UNLIMITED
) -> CgroupConfig:
    """The cgroup of a pod, from what its spec says (which is what the node has allocated to it)."""
    spec = pod.spec or PodSpec()
    qos = qos_class(spec)
    requests = pod_requests(pod, use_status=False)
    limits = pod_limits(pod, use_status=False)
    pids_limit = pids if pids > 0 else None
    hugepages = hugepage_limits(requests)
    if qos == "BestEffort":
        return CgroupConfig(cpu_shares=MIN_SHARES, pids=pids_limit, hugepages=hugepages)
    quota = milli_cpu_to_quota(_milli(limits.get("cpu")), period) if cpu_cfs_quota else UNLIMITED
    memory = _value(limits.get("memory"))
    limited_cpu = qos == "Guaranteed" or _is_limited(spec, "cpu")
    limited_memory = qos == "Guaranteed" or _is_limited(spec, "memory")
    return CgroupConfig(
        cpu_shares=milli_cpu_to_shares(_milli(requests.get("cpu"))),
        cpu_quota=(quota or UNLIMITED) if limited_cpu else None,
        cpu_period=period if limited_cpu else None,
        memory=memory if limited_memory and memory else None,
        pids=pids_limit,
        hugepages=hugepages,
    )


def node_config(resources: Quantities, *, pids: int | None = None) -> CgroupConfig:
    """The cgroup above all pods (or of reserved resources): CPU as a weight, memory and pids as limits."""
    return CgroupConfig(
        cpu_shares=milli_cpu_to_shares(resources["cpu"].milli_value()) if "cpu" in resources else None,
        memory=resources["memory"].value() if "memory" in resources else None,
        pids=pids,
        hugepages=hugepage_limits(resources),
    )


def hugepage_limits(resources: Quantities) -> dict[int, int]:
    """Page size to limit, both in bytes, of the resources named `hugepages-SIZE`."""
    return {
        quantity(name.removeprefix(HUGEPAGES_PREFIX)).value(): value.value()
        for name, value in resources.items()
        if is_hugepages(name)
    }


def _is_limited(spec: PodSpec, resource: str) -> bool:
    """Whether the pod itself, or each of its containers, has a limit."""
    if spec.resources is not None and parsed(spec.resources.limits).get(resource):
        return True
    return all(
        each.resources is not None and parsed(each.resources.limits).get(resource)
        for each in (*(spec.containers or ()), *(spec.init_containers or ()))
    )


def _milli(value: Quantity | None) -> int:
    return value.milli_value() if value else 0


def _value(value: Quantity | None) -> int:
    return value.value() if value else 0
