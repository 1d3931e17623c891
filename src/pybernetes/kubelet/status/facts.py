"""Gathers the parts of a pod's status from outside pod and runtime: probes, resources, devices, the node."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.client.keys import uid_of

from ..cgroups.hierarchy import CgroupError
from ..cgroups.manager import CgroupManager
from ..devices.manager import DeviceManager
from ..node.facts import NodeFacts
from ..probes.manager import ProbeManager
from ..resources.actuation import ResizeActuator
from ..resources.allocation import AllocationManager
from ..resources.reporting import allocated_resources, pod_resources
from ..runtime.state import RuntimeState
from .manager import StatusManager
from .phase import RUNNING, is_terminal
from .pod_status import StatusFacts


@dataclass(slots=True)
class PodFacts:
    """Makes the `StatusFacts` of pods."""

    node: NodeFacts
    runtime: RuntimeState
    probes: ProbeManager
    devices: DeviceManager
    allocation: AllocationManager
    actuator: ResizeActuator
    statuses: StatusManager
    cgroups: CgroupManager | None

    def of(self, pod: Pod) -> StatusFacts:
        """For one pod."""
        return StatusFacts(
            runtime=self.runtime.name,
            host_ips=self.node.ips,
            judge=self.probes.update_pod_status,
            resources=self.actuator.reported(pod),
            resize=self.allocation.conditions(uid_of(pod)),
            extend=self._extend,
            recursive_read_only=self.runtime.recursive_read_only,
        )

    def _extend(self, pod: Pod, status: PodStatus) -> None:
        running = pod.status is not None and pod.status.phase == RUNNING and not is_terminal(status.phase)
        cgroup = None
        if running and self.cgroups is not None:
            with contextlib.suppress(CgroupError):  # it has just gone
                cgroup = self.cgroups.read(pod)
        old = self.statuses.get(uid_of(pod)) or pod.status
        status.resources = pod_resources(pod, cgroup, old, self.actuator.given(pod))
        status.allocated_resources = allocated_resources(pod)
        self.devices.status(pod, [*(status.init_container_statuses or ()), *(status.container_statuses or ())])
