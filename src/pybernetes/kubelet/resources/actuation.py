"""Gives containers what their pod has been allocated, while they run.

Memory and CPU one after the other. What grows: the pod's cgroup before its containers; what shrinks: the containers
before the pod. Containers that restart for it have been killed before, and are started afterwards. After an error the
rest is left for the next sync; what was given so far is remembered on disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pybernetes.api.core.v1 import Container, ContainerStatus, Pod, PodSpec, ResourceRequirements
from pybernetes.api.quantity import BINARY_SI, Quantity
from pybernetes.api.types import Quantity as QuantityField
from pybernetes.client.keys import copy, uid_of

from ..cgroups.config import CgroupConfig
from ..cgroups.container import ContainerSettings, linux_resources
from ..cgroups.hierarchy import CgroupError
from ..runtime.types import AnyContainer, ObservedContainer, ObservedPod, PodRef
from .amounts import Amounts, with_resources
from .plan import ResizePlan, Resource, Update, in_progress, plan_resize
from .reporting import container_resources
from .state import PodResources, ResourceState, resources_of

if TYPE_CHECKING:
    from pybernetes.cri.remote import Runtime

    from ..cgroups.manager import CgroupManager
    from ..cpumanager.manager import CPUManager

STATE_FILE: Final = "actuated_pods_state"
SHRINK_TRIES, SHRINK_PAUSE = 25, 0.02
"""How often, and after how many seconds again, a pod is given less: the kernel forgets a cgroup some time later."""
_INFINITE: Final = 1 << 63
log = logging.getLogger(__name__)


class ResizeError(Exception):
    """A resize could not be done (yet)."""


class ResizeActuator:
    """Records the resources that containers have been given, and applies resizes to them."""

    def __init__(
        self,
        root: Path,
        runtime: Runtime,
        cgroups: CgroupManager,
        settings: ContainerSettings,
        cpus: CPUManager | None = None,
    ) -> None:
        self._actuated = ResourceState(root / STATE_FILE)
        self._runtime, self._cgroups, self._settings, self._cpus = runtime, cgroups, settings, cpus

    def pod_started(self, pod: Pod) -> None:
        """Call when the pod's cgroup has been made: `pod` has what it was allocated."""
        uid = uid_of(pod)
        if self._actuated.get(uid) is None:
            self._actuated.set(uid, resources_of(pod))
            self._actuated.save()

    def container_started(self, pod: Pod, container: AnyContainer) -> None:
        """Call when a container has been started with what its spec says."""
        if isinstance(container, Container):
            own = container.resources or ResourceRequirements()
            self._actuated.set_container(uid_of(pod), container.name or "", own)
            self._actuated.save()

    def keep_as_it_is(self, pod: Pod) -> Callable[[AnyContainer, ObservedContainer], bool]:
        """For `compute_pod_actions`: whether a container need not be restarted for a resize."""

        def keep(container: AnyContainer, found: ObservedContainer) -> bool:
            observed = ObservedPod(ref=_ref(pod), containers=(found,))
            return container.name not in plan_resize(pod, self._actuated.get(uid_of(pod)), observed).restarts

        return keep

    def in_progress(self, pod: Pod, observed: ObservedPod) -> bool:
        """Whether something that runs does not have what is allocated: for `AllocationManager.note_progress`."""
        return in_progress(pod, self._actuated.get(uid_of(pod)), observed)

    def given(self, pod: Pod) -> Pod:
        """The pod with what it and its containers were last given."""
        found = self._actuated.get(uid_of(pod))
        return pod if found is None else with_resources(pod, found.containers, found.pod)

    def reported(
        self, pod: Pod
    ) -> Callable[[AnyContainer, ObservedContainer, ContainerStatus | None], ResourceRequirements]:
        """For the statuses of a pod's containers: what each really has."""
        actuated = self._actuated.get(uid_of(pod)) or PodResources()

        def resources(
            container: AnyContainer, found: ObservedContainer, old: ContainerStatus | None
        ) -> ResourceRequirements:
            return container_resources(container, found, old, actuated.containers.get(container.name or ""))

        return resources

    async def resize(self, pod: Pod, observed: ObservedPod) -> bool:
        """Bring all that runs to what is allocated, in each sync before containers are started.

        Whether anything was changed; `ResizeError` tells why not. Containers that must be restarted for it are left.
        """
        plan = plan_resize(pod, self._actuated.get(uid_of(pod)), observed)
        if plan.nothing:
            return False
        try:
            await self._apply(pod, plan)
        except CgroupError as error:
            raise ResizeError(str(error)) from error
        return True

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        self._actuated.remove(uid)

    def remove_orphans(self, known: set[str]) -> None:
        """Forget all pods but these."""
        self._actuated.keep(known)

    async def _apply(self, pod: Pod, plan: ResizePlan) -> None:
        exclusive = self._cpus is not None and self._cpus.exclusive(uid_of(pod))
        wanted, now = self._cgroups.config(pod, exclusive=exclusive), self._cgroups.read(pod)
        await self._check_memory(pod, plan, wanted, now)
        if plan.updates["memory"] or plan.pod:
            old, new = _limit(now.memory), _limit(wanted.memory, now.memory)
            change = CgroupConfig(memory=wanted.memory)
            await self._in_order(pod, "memory", plan, [(change, old, new)])
            self._note_pod(pod, "memory")
        if plan.updates["cpu"] or plan.pod:
            quota = CgroupConfig(cpu_quota=wanted.cpu_quota, cpu_period=wanted.cpu_period)
            shares = CgroupConfig(cpu_shares=wanted.cpu_shares)
            steps = [
                (quota, _limit(now.cpu_quota), _limit(wanted.cpu_quota, now.cpu_quota)),
                (shares, now.cpu_shares or 0, wanted.cpu_shares or 0),
            ]
            await self._in_order(pod, "cpu", plan, steps)
            self._note_pod(pod, "cpu")
        for container in plan.idle:
            self.container_started(pod, container)

    async def _in_order(
        self, pod: Pod, resource: Resource, plan: ResizePlan, steps: list[tuple[CgroupConfig, int, int]]
    ) -> None:
        """Limits grow before requests and shrink after them, so that a request is never above its limit."""
        for change, old, new in steps:
            if new > old:
                self._cgroups.update(pod, change)
        for update in plan.updates[resource]:
            await self._update(pod, resource, update)
        for change, old, new in reversed(steps):
            if new < old:
                await self._shrink(pod, change)

    async def _shrink(self, pod: Pod, change: CgroupConfig) -> None:
        """Cgroup v1 refuses a quota below a container's that was killed a moment ago, though its cgroup is gone."""
        for _ in range(SHRINK_TRIES):
            try:
                return self._cgroups.update(pod, change)
            except CgroupError:
                await asyncio.sleep(SHRINK_PAUSE)
        self._cgroups.update(pod, change)

    async def _update(self, pod: Pod, resource: Resource, update: Update) -> None:
        from pybernetes.cri import v1 as cri
        from pybernetes.cri.errors import CRIError

        now = self._actuated.get(uid_of(pod)) or PodResources()
        current, desired = update.current, update.desired
        if resource == "memory":  # the CPU's turn comes later
            mixed = desired._replace(cpu_limit=current.cpu_limit, cpu_request=current.cpu_request)
        else:
            mixed = desired
        container = copy(update.container)
        container.resources = _requirements(mixed)
        uid, name = uid_of(pod), container.name or ""
        fields = linux_resources(
            pod,
            container,
            self._settings,
            cpuset=self._cpus.cpuset(uid, name) if self._cpus is not None else "",
            exclusive=self._cpus is not None and self._cpus.exclusive(uid, name),
        )
        if not mixed.cpu_limit and current.cpu_limit and self._settings.cpu_cfs_quota:
            fields["cpu_quota"] = -1
        # The score is the kernel's business at start only, and cannot be lowered afterwards.
        fields.pop("oom_score_adj", None)
        try:
            await self._runtime.update_container_resources(
                cri.UpdateContainerResourcesRequest(container_id=update.id, linux=cri.LinuxContainerResources(**fields))
            )
        except CRIError as error:
            raise ResizeError(f"failed to update resources of container {name!r}: {error}") from error
        own = update.container.resources or ResourceRequirements()
        self._actuated.set_container(uid, name, _merged(now.containers.get(name), own, resource))
        self._actuated.save()

    def _note_pod(self, pod: Pod, resource: Resource) -> None:
        """Remember that the pod has what was allocated."""
        uid, spec = uid_of(pod), pod.spec or PodSpec()
        before = self._actuated.get(uid) or PodResources()
        if spec.resources is not None or before.pod is not None:
            self._actuated.set_pod(uid, _merged(before.pod, spec.resources or ResourceRequirements(), resource))
            self._actuated.save()

    async def _check_memory(self, pod: Pod, plan: ResizePlan, wanted: CgroupConfig, now: CgroupConfig) -> None:
        """Refuse to go below what is used: the kernel would kill a process. Best effort, usage may grow meanwhile."""
        if not plan.updates["memory"] and not plan.pod:
            return
        problems = []
        if wanted.memory is not None and wanted.memory < _limit(now.memory):
            used = self._cgroups.memory_usage(pod)
            if used >= wanted.memory:
                problems.append(f"attempting to set pod memory limit ({wanted.memory}) below current usage ({used})")
        for update in plan.updates["memory"]:
            limit = update.desired.memory_limit
            if limit and (not update.current.memory_limit or limit < update.current.memory_limit):
                used = await self._container_memory(update.id)
                if used >= limit:
                    name = update.container.name
                    problems.append(
                        f'attempting to set container "{name}" memory limit ({limit}) below current usage ({used})'
                    )
        if problems:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise ResizeError(f"cannot decrease memory limits: {text}")

    async def _container_memory(self, id: str) -> int:
        from pybernetes.cri import v1 as cri
        from pybernetes.cri.errors import CRIError

        try:
            memory = (await self._runtime.container_stats(cri.ContainerStatsRequest(container_id=id))).stats.memory
        except CRIError as error:
            raise ResizeError(f"unable to read memory usage of container {id}: {error}") from error
        return int(memory.usage_bytes.value or memory.working_set_bytes.value)


def _merged(old: ResourceRequirements | None, new: ResourceRequirements, resource: str) -> ResourceRequirements:
    """The old resources with one resource taken from the new."""
    result = copy(old) if old is not None else ResourceRequirements()
    result.requests = _with(result.requests, new.requests, resource)
    result.limits = _with(result.limits, new.limits, resource)
    return result


def _with(
    old: dict[str, QuantityField] | None, new: dict[str, QuantityField] | None, name: str
) -> dict[str, QuantityField] | None:
    result = {key: value for key, value in (old or {}).items() if key != name}
    if new and name in new:
        result[name] = new[name]
    return result or None


def _requirements(amounts: Amounts) -> ResourceRequirements:
    def listed(cpu: int, memory: int) -> dict[str, QuantityField]:
        result: dict[str, QuantityField] = {}
        if cpu:
            result["cpu"] = str(Quantity.milli(cpu))
        if memory:
            result["memory"] = str(Quantity(memory, 0, BINARY_SI))
        return result

    return ResourceRequirements(
        limits=listed(amounts.cpu_limit, amounts.memory_limit),
        requests=listed(amounts.cpu_request, amounts.memory_request),
    )


def _limit(value: int | None, otherwise: int | None = None) -> int:
    """A limit as a number that can be compared; what is not limited is more than everything."""
    found = value if value is not None else otherwise
    return _INFINITE if found is None or found < 0 else found


def _ref(pod: Pod) -> PodRef:
    assert pod.metadata is not None
    return PodRef(pod.metadata.uid or "", pod.metadata.namespace or "", pod.metadata.name or "")
