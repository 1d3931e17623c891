"""A pod's status for the API, from what the runtime has and what was reported before. Pure, as all it is made of."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pybernetes.api.core.podconditions import find_pod_condition
from pybernetes.api.core.podresources import qos_class
from pybernetes.api.core.v1 import ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus

from ..pod.restarts import could_restart_all, should_restart_all
from ..runtime.types import ObservedPod
from . import conditions
from .container_status import Reporting, Resources, StartFailure, container_statuses
from .phase import FAILED, is_terminal, phase


@dataclass(frozen=True, slots=True)
class Eviction:
    """Why a pod must end that would go on by itself: its deadline, the node's needs."""

    reason: str
    message: str


@dataclass(slots=True)
class StatusFacts:
    """The inputs for a status beside the pod and the runtime."""

    runtime: str = "containerd"
    host_ips: Sequence[str] = ()
    failures: Mapping[str, StartFailure] = field(default_factory=dict)
    """By container name."""
    eviction: Eviction | None = None
    judge: Callable[[Pod, PodStatus], None] | None = None
    """Fills in `started` and `ready` from the probes."""
    resources: Resources | None = None
    resize: Sequence[PodCondition] = ()
    """The conditions of a resize in place."""
    extend: Callable[[Pod, PodStatus], None] | None = None
    """Fills in what else is known: resources of the pod, health of devices."""
    recursive_read_only: bool = False


def generate_status(
    pod: Pod, observed: ObservedPod, old: PodStatus, facts: StatusFacts, *, terminal: bool = False
) -> PodStatus:
    """The status to report. `terminal`: nothing of the pod will be started again."""
    spec, metadata = pod.spec, pod.metadata
    assert spec is not None
    assert metadata is not None
    reported = pod.status or PodStatus()
    reporting = Reporting(
        pod,
        observed,
        facts.runtime,
        facts.failures,
        restarting_all=should_restart_all(pod, observed, old),
        resources=facts.resources,
        recursive_read_only=facts.recursive_read_only,
    )
    status = PodStatus(
        qos_class=reported.qos_class or qos_class(spec),
        observed_generation=metadata.generation,
        nominated_node_name=reported.nominated_node_name,
        start_time=old.start_time or reported.start_time,
    )
    status.container_statuses = container_statuses(reporting, spec.containers or [], old.container_statuses or [])
    status.init_container_statuses = (
        container_statuses(reporting, spec.init_containers or [], old.init_container_statuses or [], init=True) or None
    )
    status.ephemeral_container_statuses = (
        container_statuses(reporting, spec.ephemeral_containers or [], old.ephemeral_container_statuses or []) or None
    )
    statuses = [*(status.init_container_statuses or ()), *status.container_statuses]
    _set_phase(status, pod, observed, old, statuses, facts, terminal)
    if facts.judge is not None:
        facts.judge(pod, status)
    if facts.extend is not None:
        facts.extend(pod, status)
    _set_conditions(status, pod, observed, old, statuses, facts)
    _set_addresses(status, spec.host_network or False, observed, old, facts.host_ips)
    return status


def _set_phase(
    status: PodStatus,
    pod: Pod,
    observed: ObservedPod,
    old: PodStatus,
    statuses: Sequence[ContainerStatus],
    facts: StatusFacts,
    terminal: bool,
) -> None:
    reported = pod.status or PodStatus()
    status.phase = phase(pod, statuses, terminal=terminal, initialized=_is_active(pod, observed))
    if not is_terminal(status.phase):
        # What has ended never comes back, whatever the runtime shows.
        status.phase = next((each for each in (old.phase, reported.phase) if is_terminal(each)), status.phase)
    if status.phase == old.phase:
        status.reason = old.reason or reported.reason
        status.message = old.message or reported.message
    if facts.eviction is not None:
        status.phase = FAILED
        status.reason, status.message = facts.eviction.reason, facts.eviction.message
    if is_terminal(reported.phase):
        status.phase = reported.phase


def _is_active(pod: Pod, observed: ObservedPod) -> bool:
    """Whether the present sandbox has a container proper."""
    assert pod.spec is not None
    sandbox = observed.sandbox
    names = {each.name for each in pod.spec.containers or ()}
    return (
        sandbox is not None
        and sandbox.ready
        and any(each.name in names and each.sandbox_id == sandbox.id for each in observed.containers)
    )


def _set_conditions(
    status: PodStatus,
    pod: Pod,
    observed: ObservedPod,
    old: PodStatus,
    statuses: Sequence[ContainerStatus],
    facts: StatusFacts,
) -> None:
    assert pod.spec is not None
    reported = pod.status or PodStatus()
    current = status.phase or ""
    others = [each for each in reported.conditions or () if each.type not in conditions.BY_KUBELET]
    disruption = find_pod_condition(old, conditions.DISRUPTION_TARGET)
    if disruption is not None:
        others = [each for each in others if each.type != conditions.DISRUPTION_TARGET] + [disruption]
    own = [
        *facts.resize,
        conditions.ready_to_start_containers(pod, observed),
        conditions.initialized(pod, old, statuses, current),
        conditions.ready(pod, others, statuses, current),
        conditions.containers_ready(pod, statuses, current),
        PodCondition(type=conditions.SCHEDULED, status="True"),
    ]
    if could_restart_all(pod.spec):
        own.append(conditions.all_containers_restarting(pod, observed, old, current))
    for each in own:
        if each.type not in (conditions.RESIZE_PENDING, conditions.RESIZE_IN_PROGRESS):
            each.observed_generation = pod.metadata.generation if pod.metadata else None
    status.conditions = others + own


def _set_addresses(
    status: PodStatus, host_network: bool, observed: ObservedPod, old: PodStatus, host_ips: Sequence[str]
) -> None:
    ips = sort_ips(observed.ips, host_ips)
    if not ips and not any(each.ready for each in observed.sandboxes):
        ips = [each.ip or "" for each in old.pod_ips or ()]  # a pod that has ended is known by the address it had
    if host_network and host_ips:
        # Once set they stay, but a second family may come later.
        ips = [each.ip or "" for each in old.pod_ips or ()] or list(host_ips[:1])
        if len(host_ips) > 1 and len(ips) == 1 and _is_v4(ips[0]) != _is_v4(host_ips[1]):
            ips.append(host_ips[1])
    if ips:
        status.pod_ip = ips[0]
        status.pod_ips = [PodIP(ip=each) for each in ips]
    if host_ips:
        status.host_ip = host_ips[0]
        status.host_ips = [HostIP(ip=each) for each in host_ips[:2]]


def sort_ips(ips: Sequence[str], host_ips: Sequence[str]) -> list[str]:
    """The first address of each family, the family of the node's first address in front."""
    v4_first = not host_ips or _is_v4(host_ips[0])
    families: dict[bool, str] = {}
    for each in ips:
        address = ipaddress.ip_address(each)
        families.setdefault(address.version == 4, str(address))
    return [families[family] for family in (v4_first, not v4_first) if family in families]


def _is_v4(ip: str) -> bool:
    return ":" not in ip
