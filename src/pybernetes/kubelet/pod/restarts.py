"""Whether a container that has ended starts again: the policy of the pod or its own, and rules by exit code."""

from __future__ import annotations

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.v1 import Container, ContainerRestartRule, Pod, PodSpec, PodStatus

from ..runtime.types import ContainerState, ObservedPod

RESTART_ALL = "RestartAllContainers"
ALL_CONTAINERS_RESTARTING = "AllContainersRestarting"


def matching_rule(container: AnyContainer, exit_code: int) -> ContainerRestartRule | None:
    """The first of the container's rules that is about this exit code."""
    for rule in container.restart_policy_rules or ():
        codes = rule.exit_codes
        if codes is None or codes.operator not in ("In", "NotIn"):
            continue
        if (exit_code in (codes.values or ())) == (codes.operator == "In"):
            return rule
    return None


def should_restart(container: AnyContainer, spec: PodSpec, exit_code: int) -> bool:
    """Whether a container that ended with this code starts again."""
    policy = spec.restart_policy
    if container.restart_policy is not None:
        rule = matching_rule(container, exit_code)
        if rule is not None and rule.action in ("Restart", RESTART_ALL):
            return True
        if container.restart_policy in ("Always", "OnFailure", "Never"):
            policy = container.restart_policy
    if policy == "Never":
        return False
    return exit_code != 0 if policy == "OnFailure" else True


def restarts_on_failure(container: AnyContainer, spec: PodSpec) -> bool:
    """Whether the policies, without the rules by exit code, want a failed container again."""
    return (container.restart_policy or spec.restart_policy) != "Never"


def should_be_restarted(container: AnyContainer, pod: Pod, observed: ObservedPod) -> bool:
    """Whether a container is to be started: it never was, is in an unclear state, or ended and shall run again."""
    assert pod.spec is not None
    if pod.metadata and pod.metadata.deletion_timestamp:
        return False
    found = observed.container(container.name or "")
    if found is None:
        return True
    if found.state is not ContainerState.EXITED:
        return found.state is not ContainerState.RUNNING
    return should_restart(container, pod.spec, found.exit_code)


def is_restartable(container: Container, spec: PodSpec) -> bool:
    """Whether there is any end after which the container starts again."""
    if container.restart_policy is not None and any(
        rule.action == "Restart" for rule in container.restart_policy_rules or ()
    ):
        return True
    return restarts_on_failure(container, spec)


def could_restart_all(spec: PodSpec) -> bool:
    """Whether some container's end may mean that all start over."""
    return any(rule.action == RESTART_ALL for each in _regular(spec) for rule in each.restart_policy_rules or ())


def should_restart_all(pod: Pod, observed: ObservedPod, status: PodStatus | None) -> bool:
    """Whether all containers are to be removed and started over: it was begun, or a rule says so."""
    assert pod.spec is not None
    if not could_restart_all(pod.spec):
        return False
    conditions = (status.conditions if status else None) or ()
    if any(each.type == ALL_CONTAINERS_RESTARTING and each.status == "True" for each in conditions):
        return True
    for container in _regular(pod.spec):
        found = observed.container(container.name or "")
        if found is not None and found.exited and _restarts_all(container, found.exit_code):
            return True
    return False


def all_removed(pod: Pod, observed: ObservedPod) -> bool:
    """Whether the runtime has no container left of those that start over."""
    assert pod.spec is not None
    return all(observed.container(each.name or "") is None for each in _regular(pod.spec))


def _restarts_all(container: Container, exit_code: int) -> bool:
    rule = matching_rule(container, exit_code)
    return rule is not None and rule.action == RESTART_ALL


def _regular(spec: PodSpec) -> list[Container]:
    return [*(spec.init_containers or ()), *(spec.containers or ())]
