"""Computes the actions for a pod from its spec and its containers: a pure function, so every case is a test.

The order in which the actions are carried out (`runtime.manager`): kill the pod or single containers, make the
sandbox, start ephemeral containers, then init containers, then containers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Container, EphemeralContainer, Pod, PodSpec

from ..container.hash import hash_container
from ..runtime.types import ContainerState, ObservedContainer, ObservedPod
from .restarts import RESTART_ALL, matching_rule, restarts_on_failure, should_be_restarted

# why a container is killed; the grace period may depend on it
UNKNOWN = "Unknown"
LIVENESS_PROBE = "LivenessProbe"
STARTUP_PROBE = "StartupProbe"
FAILED_POST_START = "FailedPostStartHook"
RESTARTING_ALL = "RestartAllContainers"
RESIZE = "Resize"

Verdict = Callable[[str], bool | None]
"""The result of a probe by container id: True, False, or None = not known yet."""


def _no_verdict(_: str) -> bool | None:
    return None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The results of the probes, by container id."""

    liveness: Verdict = _no_verdict
    startup: Verdict = _no_verdict


@dataclass(frozen=True, slots=True)
class Kill:
    """A container that must not go on, with the words for its event."""

    container: ObservedContainer
    message: str
    reason: str = ""


@dataclass(slots=True)
class PodActions:
    """The actions for one sync of a pod."""

    kill_pod: bool = False
    """All containers and all sandboxes are to be stopped, first of all."""
    create_sandbox: bool = False
    sandbox_id: str = ""
    """The sandbox to start containers in, or the one that is replaced."""
    attempt: int = 0
    init_to_start: list[Container] = field(default_factory=list)
    to_start: list[Container] = field(default_factory=list)
    ephemeral_to_start: list[EphemeralContainer] = field(default_factory=list)
    to_kill: dict[str, Kill] = field(default_factory=dict)
    """By container id."""
    to_reset: list[ObservedContainer] = field(default_factory=list)
    """Containers to remove (killed without grace if they run), because all start over."""

    @property
    def nothing(self) -> bool:
        """Whether all is as it should be."""
        return not (
            self.kill_pod
            or self.create_sandbox
            or self.init_to_start
            or self.to_start
            or self.ephemeral_to_start
            or self.to_kill
            or self.to_reset
        )


KeepAsItIs = Callable[[AnyContainer, ObservedContainer], bool]
"""Whether a running container may go on with the resources that the pod asks for, perhaps after they were changed in
place; False = it must be restarted for them."""


def sandbox_changed(pod: Pod, observed: ObservedPod) -> tuple[bool, int, str]:
    """Whether the pod needs a new sandbox; the attempt that it (or the present one) has; the id of the present one."""
    assert pod.spec is not None
    newest = observed.sandbox
    if newest is None:
        return True, 0, ""
    if not newest.ready or sum(each.ready for each in observed.sandboxes) > 1:
        return True, newest.attempt + 1, newest.id
    host_network = bool(pod.spec.host_network)
    if newest.host_network != host_network:
        return True, newest.attempt + 1, ""
    if not host_network and not newest.ips:
        return True, newest.attempt + 1, newest.id
    return False, newest.attempt, newest.id


def any_container_created(spec: PodSpec, observed: ObservedPod) -> bool:
    """Whether a container proper was ever made, so that the pod has been initialized once."""
    found = (observed.container(each.name or "") for each in spec.containers or ())
    return any(each is not None and each.state is not ContainerState.UNKNOWN for each in found)


def compute_pod_actions(
    pod: Pod,
    observed: ObservedPod,
    verdicts: Verdicts | None = None,
    *,
    restart_all: bool = False,
    keep_as_it_is: KeepAsItIs | None = None,
) -> PodActions:
    """Compute the actions for a pod that should run."""
    spec = pod.spec
    assert spec is not None
    new_sandbox, attempt, sandbox_id = sandbox_changed(pod, observed)
    actions = PodActions(kill_pod=new_sandbox, create_sandbox=new_sandbox, sandbox_id=sandbox_id, attempt=attempt)
    if restart_all:
        actions.kill_pod = actions.create_sandbox = False
        actions.to_reset = _to_reset(spec, observed)
    elif new_sandbox:
        _start_over(actions, spec, observed)
    else:
        _go_on(actions, pod, observed, verdicts or Verdicts(), keep_as_it_is)
    return actions


def _to_reset(spec: PodSpec, observed: ObservedPod) -> list[ObservedContainer]:
    """All containers in the order of removal: who caused it last, so that the cause is not forgotten half-way."""
    causes: list[ObservedContainer] = []
    others: list[ObservedContainer] = []
    for container in [*(spec.containers or ()), *(spec.init_containers or ())]:
        for found in observed.containers:
            if found.name == container.name:
                rule = matching_rule(container, found.exit_code) if found.exited else None
                (causes if rule is not None and rule.action == RESTART_ALL else others).append(found)
    return others + causes


def _start_over(actions: PodActions, spec: PodSpec, observed: ObservedPod) -> None:
    """There is no sandbox that could be used: a new one, and everything again from the first init container on."""
    if spec.restart_policy == "Never" and actions.attempt != 0 and observed.containers:
        actions.create_sandbox = False
        return
    to_start = []
    for container in spec.containers or ():
        found = observed.container(container.name or "")
        succeeded = found is not None and found.exited and found.exit_code == 0
        if not (succeeded and (container.restart_policy or spec.restart_policy) == "OnFailure"):
            to_start.append(container)
    if not to_start and any_container_created(spec, observed):
        actions.create_sandbox = False
    elif spec.init_containers:
        actions.init_to_start = [spec.init_containers[0]]
    else:
        actions.to_start = to_start


def _go_on(
    actions: PodActions, pod: Pod, observed: ObservedPod, verdicts: Verdicts, keep_as_it_is: KeepAsItIs | None
) -> None:
    spec = pod.spec
    assert spec is not None
    # A debugger may be wanted precisely because an init container hangs, so ephemeral containers wait for nothing.
    actions.ephemeral_to_start = [
        each for each in spec.ephemeral_containers or () if observed.container(each.name or "") is None
    ]
    initialized = not spec.init_containers or _init_actions(actions, pod, observed, verdicts, keep_as_it_is)
    if actions.kill_pod or not initialized:
        return
    kept = 0
    for container in spec.containers or ():
        kept += _container_actions(actions, container, pod, observed, verdicts, keep_as_it_is)
    if kept == 0 and not actions.to_start:
        # Sidecars must not keep a pod alive whose work is done.
        actions.kill_pod = True
        actions.init_to_start = []


def _container_actions(
    actions: PodActions,
    container: Container,
    pod: Pod,
    observed: ObservedPod,
    verdicts: Verdicts,
    keep_as_it_is: KeepAsItIs | None,
) -> bool:
    """Add the actions for one container; whether it runs and goes on."""
    assert pod.spec is not None
    found = observed.container(container.name or "")
    if found is None or not found.running:
        if should_be_restarted(container, pod, observed):
            actions.to_start.append(container)
            if found is not None and found.state is ContainerState.UNKNOWN:
                # It may be running: never two of one container.
                message = f'Container is in "{found.state}" state, try killing it before restart'
                actions.to_kill[found.id] = Kill(found, message, UNKNOWN)
        return False
    restart = restarts_on_failure(container, pod.spec)
    reason = ""
    if found.hash and found.hash != hash_container(container):
        message, restart = f"Container {container.name} definition changed", True
    elif verdicts.liveness(found.id) is False:
        message, reason = f"Container {container.name} failed liveness probe", LIVENESS_PROBE
    elif verdicts.startup(found.id) is False:
        message, reason = f"Container {container.name} failed startup probe", STARTUP_PROBE
    elif keep_as_it_is is not None and not keep_as_it_is(container, found):
        message = f"Container {container.name} resize requires restart"
        actions.to_kill[found.id] = Kill(found, message, RESIZE)
        actions.to_start.append(container)
        return True
    else:
        return True
    if restart:
        message += ", will be restarted"
        actions.to_start.append(container)
    actions.to_kill[found.id] = Kill(found, message, reason)
    return False


def _init_actions(
    actions: PodActions, pod: Pod, observed: ObservedPod, verdicts: Verdicts, keep_as_it_is: KeepAsItIs | None
) -> bool:
    """Add the actions for the init containers; whether the pod is initialized.

    Read from the last to the first: init containers that are done may have been removed from the runtime, so the last
    one that there is any trace of says how far the pod is. Those before it matter only if they are sidecars.
    """
    spec = pod.spec
    assert spec is not None
    inits = spec.init_containers or []
    # Exited ones do not count: they may be of a sandbox before this one.
    initialized = any(
        found is not None and found.state in (ContainerState.CREATED, ContainerState.RUNNING)
        for found in (observed.container(each.name or "") for each in spec.containers or ())
    )
    passed = initialized
    """Whether some later container was reached, so that this one has once been done."""
    to_start: list[int] = []
    for index in range(len(inits) - 1, -1, -1):
        container = inits[index]
        found = observed.container(container.name or "")
        sidecar = is_sidecar(container)
        if found is None:
            if passed and sidecar:
                to_start.append(index)
            continue
        if passed and not sidecar:
            continue
        last = index == len(inits) - 1
        if found.state is ContainerState.CREATED:
            to_start.append(index)  # the runtime could not start it
        elif found.running:
            if sidecar:
                if _sidecar_started(container, found, verdicts):
                    if last:
                        initialized = True
                    elif not passed:
                        to_start.append(index + 1)
                kill = _sidecar_kill(container, found, verdicts, keep_as_it_is)
                if kill is not None:
                    actions.to_kill[found.id] = kill
                    to_start.append(index)
            elif keep_as_it_is is not None:
                keep_as_it_is(container, found)
        elif found.exited and (sidecar or found.exit_code == 0):
            if sidecar:
                to_start.append(index)
            elif last:
                initialized = True
            else:
                to_start.append(index + 1)
        else:
            again = (
                should_be_restarted(container, pod, observed)
                if found.exited
                else sidecar or restarts_on_failure(container, spec)
            )
            if not again:
                actions.kill_pod = True
                actions.init_to_start = []
                return False
            if not found.exited:
                message = f'Init container is in "{found.state}" state, try killing it before restart'
                actions.to_kill[found.id] = Kill(found, message, UNKNOWN)
            to_start.append(index)
        passed = True
    if not passed:
        to_start.append(0)
    actions.init_to_start = [inits[index] for index in sorted(set(to_start))]
    return initialized


def _sidecar_started(container: Container, found: ObservedContainer, verdicts: Verdicts) -> bool:
    return container.startup_probe is None or verdicts.startup(found.id) is True


def _sidecar_kill(
    container: Container, found: ObservedContainer, verdicts: Verdicts, keep_as_it_is: KeepAsItIs | None
) -> Kill | None:
    """Why a running sidecar must be restarted, if it must."""
    name = container.name
    if container.startup_probe is not None and not verdicts.startup(found.id):
        if verdicts.startup(found.id) is False:
            return Kill(found, f"Init container {name} failed startup probe", STARTUP_PROBE)
        return None
    if found.hash and found.hash != hash_container(container):
        return Kill(found, f"Init container {name} definition changed")
    if container.liveness_probe is not None and verdicts.liveness(found.id) is False:
        return Kill(found, f"Init container {name} failed liveness probe", LIVENESS_PROBE)
    if keep_as_it_is is not None and not keep_as_it_is(container, found):
        return Kill(found, f"Init container {name} resize requires restart", RESIZE)
    return None
