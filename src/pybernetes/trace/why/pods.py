"""Why a pod is not as asked for.

Decided in the order in which a pod goes through its life: deleted, scheduled, volumes and sandbox, init containers,
containers, readiness. An event says why only as long as nothing newer says that the pod got further.
"""

from __future__ import annotations

from .claims import claim_name, missing_device, unbound
from .facts import (
    Answer,
    Facts,
    Object,
    about,
    condition,
    container_of,
    exit_text,
    is_ready,
    last_lines,
    listed,
    message_of,
    recent,
    statuses,
)

IMAGE_REASONS = (
    *("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"),
    *("RegistryUnavailable", "SignatureValidationFailed"),
)
CREATE_REASONS = (
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError"),
    *("PreStartHookError", "PostStartHookError"),
)
BEFORE_ITS_NODE = ("FailedScheduling", "Scheduled", "Preempted", "WaitingForGates", "NotTriggerScaleUp")
"""Events that are about the time before a kubelet knew the pod."""
OBSTACLES = {
    "FailedMount": "a volume cannot be mounted",
    "FailedAttachVolume": "a volume cannot be attached",
    "FailedMapVolume": "a volume cannot be mapped",
    "FailedCreatePodSandBox": "its sandbox cannot be made",
    "NetworkNotReady": "its sandbox cannot be made",
    "FailedPrepareDynamicResources": "the devices of its ResourceClaims cannot be had",
}
PROGRESS = ("Pulled", "Created", "Started", "SuccessfulMountVolume")
KILLED = (137, 143)
"""Exit codes of SIGKILL and SIGTERM."""
_FORCE = ("If that machine is really off: kubectl delete pod NAME --force",)


def explain(facts: Facts) -> Answer:
    """Why the pod is as it is."""
    metadata, status, spec = facts.pod["metadata"], facts.pod.get("status") or {}, facts.pod["spec"]
    if pending := ((metadata.get("initializers") or {}).get("pending")) or ():
        names = [each["name"] for each in pending]
        return Answer(f"it is not visible yet: it waits for the initializer {names[0]}" + _after(names[1:]))
    if metadata.get("deletionTimestamp"):
        return _terminating(facts)
    if status.get("phase") == "Succeeded":
        return Answer("it has completed: all its containers ended with exit code 0", healthy=True)
    if status.get("phase") == "Failed":
        return _failed(facts)
    if not spec.get("nodeName"):
        return _unscheduled(facts)
    for search in (_init_containers, _containers, _not_ready, _debugging):
        if answer := search(facts):
            return answer
    text = f"it is running and ready, on node {spec['nodeName']}"
    return Answer(text, _resize(facts.pod), ask_scheduler=True, healthy=True)


def _after(names: list[str]) -> str:
    return f", then for {', '.join(names)}" if names else ""


def _terminating(facts: Facts) -> Answer:
    metadata, node = facts.pod["metadata"], facts.pod["spec"].get("nodeName")
    if node and facts.node is None:
        return Answer(
            f"it is being deleted, but its node {node} is gone: nothing confirms that its containers have ended", _FORCE
        )
    if node and not is_ready(facts.node):
        return Answer(
            f"it is being deleted, but its node {node} does not answer, so nothing confirms that it has ended", _FORCE
        )
    running = [each["name"] for each in statuses(facts.pod) if "running" in (each.get("state") or {})]
    grace, until = metadata.get("deletionGracePeriodSeconds"), metadata["deletionTimestamp"]
    if running and facts.now <= until:
        return Answer(
            f"it is being deleted; {listed(running)} may take up to {grace} s to end (its grace period), until {until}"
        )
    if running:
        text = f"it is being deleted, but {listed(running)} has not ended, though its grace period was over at {until}"
        return Answer(text, recent(facts.events))
    if finalizers := metadata.get("finalizers"):
        text = f"it is being deleted and waits until its finalizers are removed: {', '.join(finalizers)}"
        return Answer(text, ("Each finalizer belongs to a controller, which removes it when its work is done.",))
    return Answer("it is being deleted; its containers have ended and its node is cleaning up", recent(facts.events))


def _failed(facts: Facts) -> Answer:
    status = facts.pod["status"]
    if reason := status.get("reason"):
        return Answer(f"it failed: {reason}: {status.get('message', 'no message')}")
    for each in statuses(facts.pod):
        ended = (each.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            name = each["name"]
            return Answer(f"it failed: container {name} ended with {exit_text(ended)}", last_lines(facts, name))
    return Answer("it failed", recent(facts.events))


def _unscheduled(facts: Facts) -> Answer:
    spec = facts.pod["spec"]
    if gates := spec.get("schedulingGates"):
        names = ", ".join(each["name"] for each in gates)
        return Answer(f"it has scheduling gates ({names}), and is scheduled when they are removed")
    for volume in spec.get("volumes") or ():
        name = claim_name(facts.pod, volume)
        if name and (why := unbound(facts, name)):
            return Answer(why, ask_scheduler=True)
    if why := missing_device(facts):
        return Answer(why, ask_scheduler=True)
    found = condition(facts.pod, "PodScheduled")
    message = found.get("message")
    if nominated := (facts.pod.get("status") or {}).get("nominatedNodeName"):
        text = f"it waits for room on node {nominated}, where pods of lower priority have to end first"
        return Answer(text + (f"; before that: {message}" if message else ""), ask_scheduler=True)
    if message and found.get("reason") == "Unschedulable":
        return Answer(f"no node fits: {message}", ask_scheduler=True)
    if message:
        return Answer(f"it could not be scheduled: {message}", ask_scheduler=True)
    scheduler = spec.get("schedulerName") or "default-scheduler"
    if scheduler != "default-scheduler":
        return Answer(f"no scheduler of the name {scheduler}, which it asks for, has looked at it yet")
    return Answer(f"{scheduler} has not looked at it yet", ask_scheduler=True)


def _init_containers(facts: Facts) -> Answer | None:
    for each in (facts.pod.get("status") or {}).get("initContainerStatuses") or ():
        state, name = each.get("state") or {}, each["name"]
        sidecar = container_of(facts.pod, name).get("restartPolicy") == "Always"
        if answer := _stuck(facts, each, f"init container {name}"):
            return answer
        if "running" in state and not sidecar:
            return Answer(
                f"init container {name} has not ended yet; the others start after it", last_lines(facts, name)
            )
        if "running" in state and not each.get("started", True):
            return Answer(f"the sidecar {name} has not started: {_not_started(facts, name)}")
        ended = state.get("terminated")
        if ended and ended.get("exitCode"):
            return Answer(f"init container {name} ended with {exit_text(ended)}", last_lines(facts, name))
        if "waiting" in state:
            return _creating(facts)
    return None


def _containers(facts: Facts) -> Answer | None:
    found = (facts.pod.get("status") or {}).get("containerStatuses") or []
    for each in found:
        if answer := _stuck(facts, each, f"container {each['name']}"):
            return answer
    if not found or any("waiting" in (each.get("state") or {}) for each in found):
        return _creating(facts)
    return None


def _stuck(facts: Facts, status: Object, what: str) -> Answer | None:
    """A container that cannot be started, or that does not stay."""
    waiting, name = (status.get("state") or {}).get("waiting") or {}, status["name"]
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in IMAGE_REASONS:
        if reason == "ImagePullBackOff":  # which only says that it waits; the event says why
            failed = [each for each in about(facts.events, name) if each.get("reason") == "Failed"]
            failed = [each for each in failed if "pull" in message_of(each)]
            message = message_of(failed[-1]) if failed else message
        return Answer(f"the image {status.get('image')} of {what} cannot be had: {message or reason}")
    if reason in CREATE_REASONS:
        return Answer(f"{what} cannot be started: {message or reason}")
    if reason == "CrashLoopBackOff":
        return _keeps_ending(facts, status, what)
    return None


def _keeps_ending(facts: Facts, status: Object, what: str) -> Answer:
    last, name = (status.get("lastState") or {}).get("terminated") or {}, status["name"]
    count = f"it was started again {status.get('restartCount', 0)} times"
    events = about(facts.events, name)
    for kind in ("liveness", "startup"):
        killed = [each for each in events if f"{name} failed {kind} probe" in message_of(each)]
        # Events that come often are counted no more after a while; a kill by us is recognized by the exit code.
        fresh = killed and _time_of(killed[-1]) >= str(last.get("startedAt") or "")
        ended_by_us = last.get("exitCode") in KILLED and last.get("reason") != "OOMKilled"
        if killed and (fresh or ended_by_us):
            failed = [each for each in events if message_of(each).lower().startswith(f"{kind} probe")]
            why = (message_of(failed[-1]) if failed else message_of(killed[-1])).rstrip(": ")
            return Answer(f"{what} is killed because its {kind} probe fails: {why}; {count}", last_lines(facts, name))
    details = last_lines(facts, name)
    if last and last.get("exitCode") == 0:
        details = (
            "Exit code 0: its program ends by itself. A container that is always restarted has to go on.",
            *details,
        )
    how = f": {exit_text(last)}" if last else ""
    return Answer(f"{what} keeps ending{how}; {count}", details)


def _creating(facts: Facts) -> Answer:
    node = facts.pod["spec"]["nodeName"]
    if facts.node is None:
        return Answer(f"it is assigned to node {node}, which does not exist")
    if not is_ready(facts.node):
        message = condition(facts.node, "Ready").get("message", "")
        return Answer(f"its node {node} is not ready: {message}")
    of_node = [each for each in facts.events if each.get("reason") not in BEFORE_ITS_NODE]
    shown = recent(facts.events)
    for each in reversed(of_node):
        reason, message = each.get("reason"), message_of(each)
        if reason in OBSTACLES:
            message = message.removeprefix("Failed to prepare dynamic resources: ")
            return Answer(f"{OBSTACLES[reason]}: {message}", shown)
        if reason == "Pulling":
            return Answer(f"node {node} is pulling an image ({message}), since {_time_of(each)}", shown)
        if reason in PROGRESS:
            name = str((each.get("involvedObject") or {}).get("fieldPath") or "").partition("{")[2].rstrip("}")
            if reason == "Started" and _has_hook(facts.pod, name):
                return Answer(f"container {name} runs, and its postStart hook has not ended yet", shown)
            break
        if each.get("type") == "Warning":
            return Answer(f"its containers cannot be made: {message}", shown)
    if not of_node and not (facts.pod.get("status") or {}).get("containerStatuses"):
        return Answer(f"it is assigned to node {node}, whose kubelet has reported nothing about it yet", shown)
    return Answer(f"node {node} is making its containers", shown)


def _time_of(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "an unknown time")


def _not_ready(facts: Facts) -> Answer | None:
    for each in (facts.pod.get("status") or {}).get("containerStatuses") or ():
        state, name = each.get("state") or {}, each["name"]
        ended = state.get("terminated")
        if ended:
            return Answer(f"container {name} has ended with {exit_text(ended)}", last_lines(facts, name))
        if each.get("started") is False:
            return Answer(f"container {name} has not started: {_not_started(facts, name)}")
        if not each.get("ready"):
            return Answer(f"container {name} is not ready: {_probe(facts, name, 'readiness')}")
    for gate in facts.pod["spec"].get("readinessGates") or ():
        if condition(facts.pod, gate["conditionType"]).get("status") != "True":
            return Answer(f"its readiness gate {gate['conditionType']} is not True; a controller sets that condition")
    if not is_ready(facts.pod):
        if facts.node is not None and not is_ready(facts.node):
            return Answer(f"its node {facts.pod['spec']['nodeName']} is not ready")
        return Answer(f"it is not ready: {condition(facts.pod, 'Ready').get('message', 'no message')}")
    return None


def _not_started(facts: Facts, name: str) -> str:
    """Why a container that runs does not count as started."""
    container = container_of(facts.pod, name)
    if _has_hook(facts.pod, name) and "startupProbe" not in container:
        return "its postStart hook has not ended yet"
    return _probe(facts, name, "startup")


def _has_hook(pod: Object, container: str) -> bool:
    return bool((container_of(pod, container).get("lifecycle") or {}).get("postStart"))


def _probe(facts: Facts, name: str, kind: str) -> str:
    said = [message_of(each) for each in about(facts.events, name) if each.get("reason") == "Unhealthy"]
    failed = [each for each in said if each.lower().startswith(f"{kind} probe")]
    if failed:
        return failed[-1].rstrip(": ")
    given = f"{kind}Probe" in container_of(facts.pod, name)
    return f"its {kind} probe has not succeeded yet" if given else "its node has not reported it yet"


def _debugging(facts: Facts) -> Answer | None:
    """An ephemeral container (`kubectl debug`) that cannot be started in a pod that is well."""
    for each in (facts.pod.get("status") or {}).get("ephemeralContainerStatuses") or ():
        if answer := _stuck(facts, each, f"ephemeral container {each['name']}"):
            return Answer(f"it is running and ready, but {answer.sentence}", answer.details)
    return None


def _resize(pod: Object) -> tuple[str, ...]:
    """The reason why a resize is not in force."""
    pending, going_on = condition(pod, "PodResizePending"), condition(pod, "PodResizeInProgress")
    if pending.get("status") == "True":
        return (f"Its resize is pending: {pending.get('reason')}: {pending.get('message', 'no message')}",)
    if going_on.get("status") == "True":
        said = going_on.get("message")
        return (f"Its resize is in progress{f': {said}' if said else ''}",)
    return ()
