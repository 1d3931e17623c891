"""Shared by the controllers of workloads: questions about pods, and pods from a template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pybernetes.api import names
from pybernetes.api.core.podconditions import find_pod_condition
from pybernetes.api.core.v1.pod import Pod, PodCondition, PodTemplateSpec
from pybernetes.api.meta.v1.objectmeta import ObjectMeta, OwnerReference
from pybernetes.client.keys import copy

from .meta import is_deleting, labels_of, seconds


def phase_of(pod: Pod) -> str:
    """The phase; empty before the server has given one."""
    return (pod.status.phase if pod.status else None) or ""


def node_of(pod: Pod) -> str:
    """The node the pod is bound to; empty if none."""
    return (pod.spec.node_name if pod.spec else None) or ""


def ready_condition(pod: Pod) -> PodCondition | None:
    """The condition that says whether the pod serves."""
    return find_pod_condition(pod.status, "Ready")


def is_ready(pod: Pod) -> bool:
    """Whether the pod serves."""
    condition = ready_condition(pod)
    return condition is not None and condition.status == "True"


def ready_since(pod: Pod) -> float:
    """When the pod became ready; 0 if it is not, or if the time is missing."""
    condition = ready_condition(pod)
    return seconds(condition.last_transition_time) if condition is not None and condition.status == "True" else 0.0


def is_available(pod: Pod, min_ready_seconds: int, now: float) -> bool:
    """Whether the pod has been ready for long enough."""
    if not is_ready(pod):
        return False
    if not min_ready_seconds:
        return True
    since = ready_since(pod)
    return bool(since) and since + min_ready_seconds <= now


def next_availability_check(pods: Iterable[Pod], min_ready_seconds: int, now: float) -> float | None:
    """In how many seconds the next of the ready pods becomes available; None if none will by waiting."""
    if min_ready_seconds <= 0:
        return None
    waits = (ready_since(pod) + min_ready_seconds - now for pod in pods if ready_since(pod))
    return min((wait for wait in waits if wait > 0), default=None)


def is_terminal(pod: Pod) -> bool:
    """Whether all containers have ended for good."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Whether the pod counts: it has not ended and is not being deleted."""
    return not is_terminal(pod) and not is_deleting(pod)


def is_terminating(pod: Pod) -> bool:
    """Whether the pod is being deleted and has not ended."""
    return not is_terminal(pod) and is_deleting(pod)


def pod_name_prefix(owner: str) -> str:
    """The `generateName` of an owner's pods: with a dash if the name stays valid."""
    prefix = f"{owner}-"
    return owner if names.name_is_dns_subdomain(prefix, True) else prefix


def pod_from_template(
    template: PodTemplateSpec, namespace: str, owner: str, reference: OwnerReference | None, name: str = ""
) -> Pod:
    """A pod as the template says, controlled by its owner; its name is generated unless given."""
    made = copy(Pod(metadata=template.metadata, spec=template.spec))  # the template is shared
    source = made.metadata or ObjectMeta()
    made.metadata = ObjectMeta(
        name=name or None,
        generate_name=None if name else pod_name_prefix(owner),
        namespace=namespace,
        labels=source.labels,
        annotations=source.annotations,
        finalizers=source.finalizers,
        owner_references=[reference] if reference else None,
    )
    return made


def matching(pods: Iterable[Pod], selector: Mapping[str, str]) -> list[Pod]:
    """The pods that have all of these labels."""
    wanted = selector.items()
    return [pod for pod in pods if wanted <= labels_of(pod).items()]
