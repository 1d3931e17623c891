"""Which container runs on which CPUs.

Policy `none`: any. Policy `static`: a container of a Guaranteed pod that requests a whole number of CPUs gets them
alone, from its admission until its pod has ended; all others share the rest, which never gets smaller than what is
reserved for the system. The runtime updates containers in the shared pool when that pool changes (`reconcile`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from pybernetes.api.core.podrequests import has_pod_level_resources
from pybernetes.api.core.podresources import is_sidecar, parsed, qos_class
from pybernetes.api.core.v1 import Container, Pod, PodSpec
from pybernetes.client.keys import uid_of

from ..pod.refusal import PodRefused
from .assignment import take_cpus
from .cpuset import CPUs, format_cpus, parse_cpus
from .state import CPUState
from .topology import Topology, read_topology

RECONCILE_SECONDS: Final = 10.0
OPTIONS: Final = ("full-pcpus-only", "strict-cpu-reservation", "distribute-cpus-across-cores")
UNSUPPORTED_OPTIONS: Final = (
    "distribute-cpus-across-numa",
    "align-by-socket",
    "prefer-align-cpus-by-uncorecache",
)
log = logging.getLogger(__name__)

SetCpuset = Callable[[str, str], Awaitable[None]]
"""`await set_cpuset(container id, "0-3,7")`: UpdateContainerResources of the runtime."""


class CPUManager:
    """Gives CPUs to containers and takes them back."""

    def __init__(
        self,
        policy: str,
        root: Path,
        *,
        topology: Topology | None = None,
        reserved_cpus: str = "",
        reserved_milli: int = 0,
        options: Mapping[str, str] | None = None,
        set_cpuset: SetCpuset | None = None,
    ) -> None:
        """`root` is the kubelet's folder (the state is `cpu_manager_state` in it); `reserved_cpus` a list, or
        `reserved_milli` what is reserved of CPU for kube and system together. `ValueError` if it cannot be so,
        `CorruptCheckpoint` if the state on disk does not fit."""
        if policy not in ("none", "static"):
            raise ValueError(f'unknown policy: "{policy}"')
        self.policy = policy
        self._options = _options(policy, options or {})
        self._set_cpuset = set_cpuset
        self._told: dict[str, str] = {}
        """The CPUs last set in the runtime, by container id."""
        self.pinning_requests = self.pinning_errors = 0
        """Containers that should have CPUs of their own, and those of them that could not get any."""
        self._state = CPUState(root, policy)
        self._topology = topology or (read_topology() if policy == "static" else Topology({}))
        self._reserved: CPUs = frozenset()
        if policy == "static":
            self._reserved = self._choose_reserved(reserved_cpus, reserved_milli)
            self._check_state()

    def admit(self, pod: Pod) -> None:
        """Give CPUs to each container of the pod that should have its own; `PodRefused` if there are not enough.

        Init containers that end lend their CPUs to those after them.
        """
        spec = pod.spec or PodSpec()
        if self.policy != "static" or qos_class(spec) != "Guaranteed" or has_pod_level_resources(spec):
            return
        uid = uid_of(pod)
        reusable: CPUs = frozenset()
        try:
            for container in (*(spec.init_containers or ()), *(spec.containers or ())):
                reusable = self._allocate(uid, container, reusable, init=container in (spec.init_containers or ()))
        except PodRefused:
            self._state.release(uid)
            raise

    def cpuset(self, uid: str, container: str) -> str:
        """For the container's config: its CPUs or those that are shared; empty: any."""
        own = self._state.assignments.get(uid, {}).get(container)
        return format_cpus(own if own is not None else self._state.shared)

    def exclusive(self, uid: str, container: str = "") -> bool:
        """Whether a container (or any of the pod) has CPUs of its own."""
        assigned = self._state.assignments.get(uid, {})
        return container in assigned if container else bool(assigned)

    def exclusive_cpus(self, uid: str, container: str) -> CPUs:
        """The CPUs that a container has alone."""
        return self._state.assignments.get(uid, {}).get(container, frozenset())

    def exclusive_count(self) -> int:
        """How many CPUs containers have alone."""
        return sum(len(cpus) for held in self._state.assignments.values() for cpus in held.values())

    def exclusive_by_node(self) -> dict[int, int]:
        """The same by NUMA node."""
        counts = dict.fromkeys((each.numa for each in self._topology.cpus.values()), 0)
        for held in self._state.assignments.values():
            for cpu in (each for cpus in held.values() for each in cpus if each in self._topology.cpus):
                counts[self._topology.cpus[cpu].numa] += 1
        return counts

    def shared_count(self) -> int:
        """How many CPUs all others share."""
        return len(self._state.shared)

    def allocatable(self) -> CPUs:
        """The CPUs that containers may have alone, whether or not they are taken."""
        return self._topology.all - self._reserved

    def holders(self) -> set[str]:
        """The uids of pods that have CPUs of their own."""
        return set(self._state.assignments)

    def remove(self, uid: str) -> None:
        """Take back the CPUs of a pod that has ended."""
        if uid in self._state.assignments:
            self._state.release(uid)

    def remove_orphans(self, known: Iterable[str]) -> None:
        """Take back the CPUs of all pods but these."""
        for uid in set(self._state.assignments) - set(known):
            self._state.release(uid)

    async def reconcile(self, running: Iterable[tuple[str, str, str]]) -> None:
        """Every 10 s, and after CPUs were given or taken, with (pod uid, container name, container id) of what runs:
        tell the runtime what changed."""
        if self.policy != "static" or self._set_cpuset is None:
            return
        there = set()
        for uid, name, id in list(running):
            there.add(id)
            wanted = self.cpuset(uid, name)
            if wanted and self._told.get(id) != wanted:
                try:
                    await self._set_cpuset(id, wanted)
                except Exception as error:
                    log.error("cpu manager: failed to update container %s of pod %s: %s", name, uid, error)
                else:
                    self._told[id] = wanted
        self._told = {id: told for id, told in self._told.items() if id in there}

    def _allocate(self, uid: str, container: Container, reusable: CPUs, *, init: bool) -> CPUs:
        """CPUs for one container; returns what those after it may use again."""
        count = _whole_cpus(container)
        if not count:
            return reusable
        self.pinning_requests += 1
        try:
            own = self._take(uid, container.name or "", count, reusable)
        except PodRefused:
            self.pinning_errors += 1
            raise
        return reusable | own if init and not is_sidecar(container) else reusable - own

    def _take(self, uid: str, container: str, count: int, reusable: CPUs) -> CPUs:
        self._check_alignment(count)
        own = self._state.assignments.get(uid, {}).get(container)
        if own is None:
            free = (self._state.shared - self._reserved) | reusable
            try:
                own = take_cpus(self._topology, free, count, spread="distribute-cpus-across-cores" in self._options)
            except ValueError as error:
                raise PodRefused(
                    "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected"
                ) from error
            self._state.assign(uid, container, own)
        return own

    def _check_alignment(self, count: int) -> None:
        if "full-pcpus-only" not in self._options:
            return
        threads = self._topology.cpus_per_core
        if count % threads:
            message = f"SMT Alignment Error: requested {count} cpus not multiple cpus per core = {threads}"
            raise PodRefused("SMTAlignmentError", message)
        free = len(self._state.shared - self._topology.in_cores_of(self._reserved))
        if count > free:
            raise PodRefused(
                "SMTAlignmentError",
                "SMT Alignment Error: not enough free physical CPUs: "
                f"available physical CPUs = {free}, requested CPUs = {count}, CPUs per core = {threads}",
            )

    def _choose_reserved(self, cpus: str, milli: int) -> CPUs:
        if cpus:
            return parse_cpus(cpus)
        if milli <= 0:
            message = "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"
            raise ValueError(f"[cpumanager] {message}")
        count = math.ceil(milli / 1000)
        try:
            return take_cpus(self._topology, self._topology.all, count)
        except ValueError:
            message = f"unable to reserve the required amount of CPUs (size of  did not equal {count})"
            raise ValueError(f"[cpumanager] {message}") from None

    def _check_state(self) -> None:
        """The state on disk must fit the machine and the configuration; an empty one begins with all CPUs."""
        state, strict = self._state, "strict-cpu-reservation" in self._options
        everything = self._topology.all - (self._reserved if strict else frozenset())
        if not state.shared:
            if state.assignments:
                raise ValueError("default cpuset cannot be empty")
            state.shared = everything
            state.save()
            return
        shared, reserved = format_cpus(state.shared), format_cpus(self._reserved)
        if strict and self._reserved & state.shared:
            both = format_cpus(self._reserved & state.shared)
            raise ValueError(f'some of strictly reserved cpus: "{both}" are present in defaultCpuSet: "{shared}"')
        if not strict and not self._reserved <= state.shared:
            raise ValueError(f'not all reserved cpus: "{reserved}" are present in defaultCpuSet: "{shared}"')
        known = state.shared
        for uid, containers in state.assignments.items():
            for name, cpus in containers.items():
                if cpus & state.shared:
                    raise ValueError(
                        f'pod: {uid}, container: {name} cpuset: "{format_cpus(cpus)}" '
                        f'overlaps with default cpuset "{shared}"'
                    )
                known |= cpus
        if known != everything:
            raise ValueError(
                f'current set of available CPUs "{format_cpus(everything)}" '
                f'doesn\'t match with CPUs in state "{format_cpus(known)}"'
            )


def _options(policy: str, options: Mapping[str, str]) -> set[str]:
    if policy == "none" and options:
        raise ValueError("None policy: received unsupported options=" + str(dict(options)))
    chosen = set()
    for name, value in options.items():
        if name in UNSUPPORTED_OPTIONS:
            raise ValueError(f'CPU Manager policy option "{name}" is not supported by this kubelet')
        if name not in OPTIONS:
            raise ValueError(f'unknown CPU Manager Policy option: "{name}"')
        if value not in ("true", "false"):
            raise ValueError(f'bad value for option "{name}": strconv.ParseBool: parsing "{value}": invalid syntax')
        if value == "true":
            chosen.add(name)
    if {"full-pcpus-only", "distribute-cpus-across-cores"} <= chosen:
        raise ValueError(
            "static policy options full-pcpus-only and distribute-cpus-across-cores can not be used at the same time"
        )
    return chosen


def _whole_cpus(container: Container) -> int:
    """How many CPUs of its own a container should have; 0 if it asks for a part of one."""
    cpu = parsed(container.resources.requests if container.resources else None).get("cpu")
    if cpu is None or cpu.milli_value() % 1000:
        return 0
    return cpu.value()
