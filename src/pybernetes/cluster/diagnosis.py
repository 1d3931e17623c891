"""Why a pod, or what makes pods, is not as asked for: one sentence, then what shows it.

Pure: `Facts` are what the API server says, and what follows from them is decided here, in the order in which a pod goes
through its life: deleted, scheduled, volumes and sandbox, init containers, containers, readiness.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
LOG_LINES = 10
IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError")
CREATE_REASONS = (
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError"),
    *("PreStartHookError", "PostStartHookError"),
)
VOLUME_EVENTS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a pod: None stands for an object that is not there."""

    pod: Object
    events: list[Object] = field(default_factory=list)
    """Of the pod, the oldest first."""
    claims: dict[str, Object | None] = field(default_factory=dict)
    claim_events: dict[str, list[Object]] = field(default_factory=dict)
    classes: dict[str, Object] = field(default_factory=dict)
    node: Object | None = None
    logs: dict[str, str] = field(default_factory=dict)
    """The end of the last log of containers that ended."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The sentence, and the lines below it; `ask_scheduler` if it has more to say."""

    sentence: str
    details: tuple[str, ...] = ()
    ask_scheduler: bool = False


def explain(facts: Facts) -> Answer:
    """Why the pod is as it is."""
    metadata, status, spec = facts.pod["metadata"], facts.pod.get("status") or {}, facts.pod["spec"]
    if metadata.get("deletionTimestamp"):
        return _terminating(facts)
    if status.get("phase") == "Succeeded":
        return Answer("it has completed: all its containers ended with exit code 0")
    if status.get("phase") == "Failed":
        return _failed(facts)
    if not spec.get("nodeName"):
        return _unscheduled(facts)
    for search in (_init_containers, _containers):
        if answer := search(facts):
            return answer
    return _not_ready(facts) or Answer(f"it is running and ready, on node {spec['nodeName']}", ask_scheduler=True)


def _terminating(facts: Facts) -> Answer:
    metadata, node = facts.pod["metadata"], facts.pod["spec"].get("nodeName")
    since = f"it is being deleted since {metadata['deletionTimestamp']}"
    if node and facts.node is None:
        return Answer(f"{since}, but its node {node} is gone: nothing confirms that its containers have ended", _FORCE)
    if node and not _is_ready(facts.node):
        return Answer(f"{since}, but its node {node} does not answer, so nothing confirms that it has ended", _FORCE)
    running = [each["name"] for each in statuses(facts.pod) if "running" in (each.get("state") or {})]
    grace = metadata.get("deletionGracePeriodSeconds")
    if running:
        return Answer(f"it is being deleted; {_listed(running)} may take up to {grace} s to end (its grace period)")
    if finalizers := metadata.get("finalizers"):
        text = f"it is being deleted and waits until its finalizers are removed: {', '.join(finalizers)}"
        return Answer(text, ("Each finalizer belongs to a controller, which removes it when its work is done.",))
    return Answer(f"{since}; its node is cleaning up", tuple(_recent(facts.events)))


_FORCE = ("If that machine is really off: kubectl delete pod NAME --force",)


def _failed(facts: Facts) -> Answer:
    status = facts.pod["status"]
    if reason := status.get("reason"):
        return Answer(f"it failed: {reason}: {status.get('message', 'no message')}")
    for each in statuses(facts.pod):
        ended = (each.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            return Answer(f"it failed: container {each['name']} ended with {_exit(ended)}", _log(facts, each["name"]))
    return Answer("it failed", tuple(_recent(facts.events)))


def _unscheduled(facts: Facts) -> Answer:
    if gates := facts.pod["spec"].get("schedulingGates"):
        names = ", ".join(each["name"] for each in gates)
        return Answer(f"it has scheduling gates ({names}), and is scheduled when they are removed")
    for volume in facts.pod["spec"].get("volumes") or ():
        name = claim_name(facts.pod, volume)
        if name and (why := _claim(facts, name)):
            return Answer(why, ask_scheduler=True)
    condition = _condition(facts.pod, "PodScheduled")
    if condition.get("message"):
        return Answer(f"no node fits: {condition['message']}", ask_scheduler=True)
    scheduler = facts.pod["spec"].get("schedulerName") or "default-scheduler"
    return Answer(f"{scheduler} has not looked at it yet", ask_scheduler=True)


def claim_name(pod: Object, volume: Object) -> str:
    """The claim of a volume, empty if it has none."""
    if "ephemeral" in volume:
        return f"{pod['metadata']['name']}-{volume['name']}"
    return str((volume.get("persistentVolumeClaim") or {}).get("claimName") or "")


def _claim(facts: Facts, name: str) -> str:
    claim = facts.claims.get(name)
    if claim is None:
        return f"the claim {name} does not exist"
    phase = (claim.get("status") or {}).get("phase")
    if phase == "Lost":
        return f"the claim {name} has lost its volume {claim['spec'].get('volumeName')}"
    if phase == "Bound":
        return ""
    wanted = claim["spec"].get("storageClassName")
    if not wanted:
        none = "names no StorageClass" if wanted is None else 'names the StorageClass ""'
        return f"the claim {name} {none}, so only a PersistentVolume that fits can be bound to it, and there is none"
    if wanted not in facts.classes:
        return f"the claim {name} names the StorageClass {wanted}, which does not exist"
    failed = [each for each in facts.claim_events.get(name, ()) if each.get("type") == "Warning"]
    if failed:
        return f"no volume could be made for the claim {name}: {failed[-1].get('message', '')}"
    if facts.classes[wanted].get("volumeBindingMode") == "WaitForFirstConsumer":
        return ""
    return f"the claim {name} waits for the provisioner {facts.classes[wanted].get('provisioner')} to make a volume"


def _init_containers(facts: Facts) -> Answer | None:
    for each in (facts.pod.get("status") or {}).get("initContainerStatuses") or ():
        state = each.get("state") or {}
        sidecar = _spec_of(facts.pod, each["name"]).get("restartPolicy") == "Always"
        if answer := _stuck(facts, each, f"init container {each['name']}"):
            return answer
        if "running" in state and not sidecar:
            return Answer(f"init container {each['name']} has not ended yet; the others start after it")
        if "running" in state and not each.get("started", True):
            return Answer(f"the sidecar {each['name']} has not started: {_probe(facts, each['name'], 'startupProbe')}")
        ended = state.get("terminated")
        if ended and ended.get("exitCode"):
            text = f"init container {each['name']} ended with {_exit(ended)}"
            return Answer(text, _log(facts, each["name"]))
        if "waiting" in state:
            return _creating(facts)
    return None


def _containers(facts: Facts) -> Answer | None:
    statuses = (facts.pod.get("status") or {}).get("containerStatuses") or []
    for each in statuses:
        if answer := _stuck(facts, each, f"container {each['name']}"):
            return answer
    if not statuses or any("waiting" in (each.get("state") or {}) for each in statuses):
        return _creating(facts)
    return None


def _stuck(facts: Facts, status: Object, what: str) -> Answer | None:
    """A container that cannot be started, or that does not stay."""
    waiting = (status.get("state") or {}).get("waiting") or {}
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in IMAGE_REASONS:
        if reason == "ImagePullBackOff":  # which only says that it waits; the event says why
            failed = [each for each in facts.events if each.get("reason") == "Failed" and "pull" in each["message"]]
            message = failed[-1]["message"] if failed else message
        return Answer(f"the image {status.get('image')} of {what} cannot be had: {message or reason}")
    if reason in CREATE_REASONS:
        return Answer(f"{what} cannot be started: {message or reason}")
    last = (status.get("lastState") or {}).get("terminated")
    if reason == "CrashLoopBackOff":
        count = status.get("restartCount", 0)
        how = f": {_exit(last)}" if last else ""
        return Answer(f"{what} keeps ending{how}; it was started again {count} times", _log(facts, status["name"]))
    return None


def _creating(facts: Facts) -> Answer:
    node = facts.pod["spec"]["nodeName"]
    if facts.node is None:
        return Answer(f"it is assigned to node {node}, which does not exist")
    if not _is_ready(facts.node):
        message = _condition(facts.node, "Ready").get("message", "")
        return Answer(f"its node {node} is not ready: {message}")
    problems = [each for each in facts.events if each.get("type") == "Warning"]
    for each in reversed(problems):
        if each.get("reason") in VOLUME_EVENTS:
            return Answer(f"a volume cannot be mounted: {each['message']}", tuple(_recent(facts.events)))
        if each.get("reason") == "FailedCreatePodSandBox":
            return Answer(f"its sandbox cannot be made: {each['message']}", tuple(_recent(facts.events)))
        if each.get("reason") == "FailedPrepareDynamicResources":
            reason = str(each["message"]).removeprefix("Failed to prepare dynamic resources: ")
            return Answer(f"the devices of its ResourceClaims cannot be had: {reason}", tuple(_recent(facts.events)))
    if problems:
        return Answer(f"its containers cannot be made: {problems[-1]['message']}", tuple(_recent(facts.events)))
    return Answer(f"node {node} is making its containers", tuple(_recent(facts.events)))


def _not_ready(facts: Facts) -> Answer | None:
    for each in (facts.pod.get("status") or {}).get("containerStatuses") or ():
        state = each.get("state") or {}
        ended = state.get("terminated")
        if ended:
            return Answer(f"container {each['name']} has ended with {_exit(ended)}", _log(facts, each["name"]))
        if each.get("started") is False:
            return Answer(f"container {each['name']} has not started: {_probe(facts, each['name'], 'startupProbe')}")
        if not each.get("ready"):
            return Answer(f"container {each['name']} is not ready: {_probe(facts, each['name'], 'readinessProbe')}")
    for gate in facts.pod["spec"].get("readinessGates") or ():
        if _condition(facts.pod, gate["conditionType"]).get("status") != "True":
            return Answer(f"its readiness gate {gate['conditionType']} is not True; a controller sets that condition")
    if not _is_ready(facts.pod):
        if facts.node is not None and not _is_ready(facts.node):
            return Answer(f"its node {facts.pod['spec']['nodeName']} is not ready")
        return Answer(f"it is not ready: {_condition(facts.pod, 'Ready').get('message', 'no message')}")
    return None


def _probe(facts: Facts, container: str, kind: str) -> str:
    failed = [each["message"] for each in facts.events if each.get("reason") == "Unhealthy"]
    if failed:
        return str(failed[-1])
    given = kind in _spec_of(facts.pod, container)
    return "its probe has not succeeded yet" if given else "its node has not reported it yet"


def explain_maker(kind: str, maker: Object, events: Iterable[Object], owned: Iterable[Object]) -> Answer:
    """Why a Deployment, ReplicaSet, Job or other maker of pods has not made all of them."""
    refused = [each for each in events if each.get("reason") == "FailedCreate"]
    conditions = [
        each
        for thing in (maker, *owned)
        for each in (thing.get("status") or {}).get("conditions") or ()
        if each.get("type") == "ReplicaFailure" and each.get("status") == "True"
    ]
    message = conditions[-1].get("message") if conditions else refused[-1]["message"] if refused else ""
    if message:
        return Answer(f"its pods are refused: {message}")
    if (maker["spec"].get("paused") or maker["spec"].get("suspend")) is True:
        return Answer(f"the {kind} is paused")
    failed = [
        each
        for each in (maker.get("status") or {}).get("conditions") or ()
        if each.get("type") in ("Failed", "Progressing") and each.get("reason") not in ("NewReplicaSetAvailable", None)
    ]
    if failed and (failed[-1]["type"] == "Failed" or failed[-1].get("status") == "False"):
        return Answer(f"{failed[-1].get('reason')}: {failed[-1].get('message')}")
    return Answer("no pod was refused; `why pod/NAME` explains one of its pods", tuple(_recent(list(events))))


def _exit(ended: Object) -> str:
    code = ended.get("exitCode", 0)
    reason = ended.get("reason")
    text = f"exit code {code}"
    number = ended.get("signal") or (code - 128 if 128 < code < 193 else 0)
    if number:
        try:
            text += f" ({signal.Signals(number).name})"
        except ValueError:
            text += f" (signal {number})"
    if reason == "OOMKilled":
        text += ", killed because it exceeded its memory limit"
    if ended.get("message"):
        text += f", saying: {ended['message'].strip()}"
    return text


def _log(facts: Facts, container: str) -> tuple[str, ...]:
    lines = facts.logs.get(container, "").splitlines()[-LOG_LINES:]
    return (f"The last lines of {container}:", *(f"  {line}" for line in lines)) if lines else ()


def statuses(pod: Object) -> Iterator[Object]:
    """Of all containers, init containers first."""
    status = pod.get("status") or {}
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _spec_of(pod: Object, container: str) -> Object:
    spec = pod["spec"]
    every = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return next((each for each in every if each["name"] == container), {})


def _condition(thing: Object, kind: str) -> Object:
    conditions = (thing.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), {})


def _is_ready(thing: Object | None) -> bool:
    return thing is not None and _condition(thing, "Ready").get("status") == "True"


def _recent(events: list[Object], count: int = 5) -> Iterator[str]:
    if events:
        yield "Its last events:"
    for each in events[-count:]:
        yield f"  {each.get('type', '')} {each.get('reason', '')}: {str(each.get('message', '')).strip()}"


def _listed(names: list[str]) -> str:
    return f"container{'s' if len(names) > 1 else ''} {', '.join(names)}"
