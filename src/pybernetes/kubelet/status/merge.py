"""How a new status of a pod is joined with what the API server has, and the patch from the one to the other. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pybernetes.api.core.podconditions import find_pod_condition, update_pod_condition
from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import ContainerState, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus
from pybernetes.client.keys import copy

from ..container.termination_message import POD_LENGTH
from ..pod.restarts import could_restart_all, should_restart
from . import conditions
from .phase import is_terminal

_NOT_OURS: Final = (
    "resource_claim_statuses",
    "extended_resource_claim_status",
    "node_allocatable_resource_claim_statuses",
)
_REPLACED: Final = ("podIPs", "hostIPs")
"""Lists that a strategic merge would only add to."""


def stamp(status: PodStatus, old: PodStatus, now: str) -> None:
    """Put in the times: a condition's is that of its last turn, the start is the first that was reported."""
    for condition in status.conditions or ():
        before = find_pod_condition(old, condition.type or "")
        if before is not None and before.status == condition.status and before.last_transition_time:
            condition.last_transition_time = before.last_transition_time
        elif condition.type in conditions.BY_KUBELET or condition.type == conditions.DISRUPTION_TARGET:
            condition.last_transition_time = now
    status.start_time = old.start_time or status.start_time or now
    status.observed_generation = max(status.observed_generation or 0, old.observed_generation or 0) or None


def shorten(status: PodStatus, spec: PodSpec) -> None:
    """Give each container its share of what may be said about ends."""
    count = sum(len(each or ()) for each in (spec.containers, spec.init_containers, spec.ephemeral_containers))
    share = POD_LENGTH // max(1, count)
    for each in all_statuses(status):
        for state in (each.state, each.last_state):
            if state and state.terminated and len(state.terminated.message or "") > share:
                state.terminated.message = (state.terminated.message or "")[:share]


def illegal_transition(old: PodStatus, new: PodStatus, spec: PodSpec) -> str:
    """Why the new status cannot be true: a container that ended for good does not live again. Empty if it can."""
    if spec.restart_policy == "Always" or could_restart_all(spec):
        return ""
    for before, now, containers, kind in (
        (old.container_statuses, new.container_statuses, spec.containers, ""),
        (old.init_container_statuses, new.init_container_statuses, spec.init_containers, "init "),
    ):
        by_name = {each.name: each for each in containers or ()}
        ended = {
            each.name
            for each in before or ()
            if each.state
            and each.state.terminated
            and each.name in by_name
            and not should_restart(by_name[each.name], spec, each.state.terminated.exit_code or 0)
        }
        for each in now or ():
            if each.name in ended and not (each.state and each.state.terminated):
                return f"terminated {kind}container {each.name} attempted illegal transition to non-terminated state"
    return ""


def merge(pod: Pod, reported: PodStatus, new: PodStatus, now: str, *, may_be_running: bool) -> PodStatus:
    """The status to send: others' conditions stay, and a pod that may still run is not called ended."""
    status = copy(new)
    ending = not is_terminal(reported.phase) and is_terminal(new.phase)
    kept = [each for each in reported.conditions or () if each.type not in conditions.BY_KUBELET]
    for condition in status.conditions or ():
        if condition.type in conditions.BY_KUBELET:
            kept.append(condition)
        elif condition.type == conditions.DISRUPTION_TARGET and ending and not may_be_running:
            before = find_pod_condition(reported, condition.type)
            if before is None or before.status != condition.status:
                condition.last_transition_time = now
            kept = [each for each in kept if each.type != condition.type] + [condition]
    status.conditions = kept
    for name in _NOT_OURS:
        setattr(status, name, getattr(reported, name))
    if ending and may_be_running:
        status.phase, status.reason, status.message = reported.phase, reported.reason, reported.message
    if is_terminal(status.phase):
        for type in (conditions.READY, conditions.CONTAINERS_READY):
            found = find_pod_condition(status, type)
            if found is not None and found.status == "True":
                ended = conditions.terminal(type, status.phase or "")
                ended.observed_generation = found.observed_generation
                update_pod_condition(status, ended, now)
    return status


def patch(old: PodStatus, new: PodStatus) -> dict[str, Any]:
    """A strategic merge patch from the one status to the other; empty if they are the same."""
    before, after = _builtins(old), _builtins(new)
    result: dict[str, Any] = {}
    for key in before.keys() | after.keys():
        if key == "conditions":
            changed = _condition_patch(old.conditions or [], new.conditions or [])
            if changed:
                result[key] = changed
        elif before.get(key) != after.get(key):
            value = after.get(key)
            result[key] = [{"$patch": "replace"}, *value] if key in _REPLACED and value else value
    return result


def all_statuses(status: PodStatus) -> list[ContainerStatus]:
    """The statuses of all containers."""
    return [
        *(status.init_container_statuses or ()),
        *(status.container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    ]


def has_initialized(pod: Pod, status: PodStatus) -> bool:
    """Whether there is any sign that the pod's init containers were once done."""
    inits = (pod.spec.init_containers if pod.spec else None) or []
    if not inits:
        return True
    for each in status.container_statuses or ():
        if (each.last_state and each.last_state.terminated) or not (each.state and each.state.waiting):
            return True
    last = next((each for each in status.init_container_statuses or () if each.name == inits[-1].name), None)
    if last is None:
        return False
    if is_sidecar(inits[-1]):
        return bool(last.state and last.state.running and last.started)
    return any(_succeeded(state) for state in (last.state, last.last_state))


def _succeeded(state: ContainerState | None) -> bool:
    return bool(state and state.terminated and not state.terminated.exit_code)


def _condition_patch(old: list[PodCondition], new: list[PodCondition]) -> list[dict[str, Any]]:
    before = {each.type: each for each in old}
    result = []
    for each in new:
        known = before.get(each.type)
        if known != each:
            # What the new one does not say any more must be taken away by name.
            gone = dict.fromkeys(_builtins(known).keys() - _builtins(each).keys()) if known else {}
            result.append({**gone, **_builtins(each)})
    missing = before.keys() - {each.type for each in new}
    return result + [{"type": type, "$patch": "delete"} for type in missing if type]


def _builtins(value: Any) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(value)
    return {key: each for key, each in built.items() if each is not None}
