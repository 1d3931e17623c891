"""Why a Deployment, ReplicaSet, Job or another maker of pods has not made all of them, or not all of them run."""

from __future__ import annotations

from collections.abc import Iterable

from .facts import Answer, Object, condition, is_ready, message_of, recent

PODS_FAULTS = (
    *("ProgressDeadlineExceeded:", "BackoffLimitExceeded:", "PodFailurePolicy:"),
    *("FailedIndexes:", "MaxFailedIndexesExceeded:"),
)
"""Messages of conditions of makers that were given up because of their pods, which know more."""


def explain_maker(kind: str, maker: Object, events: Iterable[Object], owned: Iterable[Object]) -> Answer | None:
    """The reason why it makes no pods; None if there is none, so that its pods have to be asked."""
    events = list(events)
    refused = [each for each in events if each.get("reason") == "FailedCreate"]
    conditions = [
        each
        for thing in (maker, *owned)
        for each in (thing.get("status") or {}).get("conditions") or ()
        if each.get("type") == "ReplicaFailure" and each.get("status") == "True"
    ]
    message = conditions[-1].get("message") if conditions else message_of(refused[-1]) if refused else ""
    if message and not _complete(kind, maker):
        return Answer(f"its pods are refused: {message}", recent(events))
    if maker["metadata"].get("deletionTimestamp"):
        left = ", ".join(maker["metadata"].get("finalizers") or ()) or "none"
        return Answer(f"it is being deleted; finalizers left: {left}")
    if maker["spec"].get("suspend") is True:
        return Answer(f"the {kind} is suspended")
    for type_, wanted in (("Failed", "True"), ("Progressing", "False")):
        found = condition(maker, type_)
        if found.get("status") == wanted:
            return Answer(f"{found.get('reason')}: {found.get('message')}")
    if maker["spec"].get("paused") is True and not _complete(kind, maker):
        return Answer(f"the {kind} is paused")
    if kind == "Job" and condition(maker, "Complete").get("status") == "True":
        return Answer("the Job is complete", healthy=True)
    status = maker.get("status") or {}
    if kind == "DaemonSet" and status.get("observedGeneration") and not status.get("desiredNumberScheduled"):
        return Answer("no node is for it: none has the labels that it asks for and taints that it tolerates")
    if kind != "Job" and not status.get("observedGeneration"):
        return Answer(f"the controller manager has not looked at the {kind} yet")
    return None


def wanted_pods(kind: str, maker: Object) -> int:
    """How many pods it wants to be ready."""
    if kind == "DaemonSet":
        return int((maker.get("status") or {}).get("desiredNumberScheduled") or 0)
    if kind == "Job":
        return int((maker.get("status") or {}).get("active") or 0)
    replicas = maker["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def _complete(kind: str, maker: Object) -> bool:
    status = maker.get("status") or {}
    ready = status.get("numberReady" if kind == "DaemonSet" else "ready" if kind == "Job" else "readyReplicas") or 0
    updated = status.get("updatedReplicas", ready) if kind == "Deployment" else ready
    return int(ready) >= wanted_pods(kind, maker) and int(updated or 0) >= wanted_pods(kind, maker)


def worst(pods: Iterable[Object]) -> Object | None:
    """The pod to explain: the oldest that is not ready, those that are being deleted last; None if all are ready."""
    unready = [each for each in pods if not is_ready(each) and (each.get("status") or {}).get("phase") != "Succeeded"]
    unready.sort(key=lambda each: (bool(each["metadata"].get("deletionTimestamp")), _age(each)))
    return unready[0] if unready else None


def _age(pod: Object) -> tuple[str, str]:
    return str(pod["metadata"].get("creationTimestamp") or ""), str(pod["metadata"].get("name"))


def summary(kind: str, maker: Object, pods: list[Object]) -> str:
    """How many of its pods there are and are ready."""
    ready = sum(map(is_ready, pods))
    wanted = wanted_pods(kind, maker)
    if not pods:
        return f"it has none of its {wanted} pods" if wanted else "it wants no pods"
    return f"{ready} of its {max(wanted, len(pods))} pods {'is' if ready == 1 else 'are'} ready"
