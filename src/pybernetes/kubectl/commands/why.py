"""`kubectl why TYPE/NAME`: why an object is not as it should be, in one sentence, then what shows it.

Pods and what makes them are judged as `pyb why` does; any other object by its deletion, conditions, phase and events.
"""

from __future__ import annotations

from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.cluster.diagnosis import Answer
    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context

_MAKERS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")
_NEGATIVE = ("Pressure", "Unavailable", "Failure", "Failed", "Degraded", "Stalled", "Denied", "Corruption", "Dangling")
"""Ends of the names of conditions that are bad when they are True; others are bad when they are False."""
_GOOD_PHASES = ("", "Active", "Bound", "Available", "Running", "Succeeded", "Released")


def run(context: Context, arguments: list[str]) -> int | None:
    """`why TYPE/NAME`."""
    if not arguments:
        raise CLIError("why takes one object: TYPE/NAME, or the NAME of a pod")
    words = ["pods", *arguments] if len(arguments) == 1 and "/" not in arguments[0] else arguments
    infos = Builder(context).arguments(words, allow_empty=False).checked()
    for info in infos:
        answer = _answer(context, info)
        where = f"{info.namespace}/{info.name}" if info.namespace else info.name
        context.out(f"{info.mapping.kind} {where}: {answer.sentence}.\n")
        for line in answer.details:
            context.out(f"{line}\n")
    return None


def _answer(context: Context, info: Info) -> Answer:
    from pybernetes.cluster import diagnosis

    group, kind = info.mapping.group, info.mapping.kind
    if kind == "Pod" and not group:
        return diagnosis.explain(_pod_facts(context, info))
    if kind in _MAKERS and group in ("", "apps", "batch"):
        owned = _replica_sets(context, info) if kind == "Deployment" else []
        events = _events(context, info.namespace, kind, info.name)
        for each in owned:
            events += _events(context, info.namespace, "ReplicaSet", each["metadata"]["name"])
        return diagnosis.explain_maker(kind, info.object, events, owned)
    return explain_any(info.object, _events(context, info.namespace, kind, info.name))


def explain_any(obj: dict[str, Any], events: list[dict[str, Any]]) -> Answer:
    """What the metadata, status and events of any object say."""
    from pybernetes.cluster.diagnosis import Answer

    metadata, status = obj.get("metadata") or {}, obj.get("status") or {}
    warnings = [each for each in events if each.get("type") == "Warning"][-5:]
    told = tuple(f"  {each.get('reason', '')}: {str(each.get('message', '')).strip()}" for each in warnings)
    details = ("Its last warnings:", *told) if told else ()
    if metadata.get("deletionTimestamp"):
        since = f"it is being deleted since {metadata['deletionTimestamp']}"
        finalizers = [*(metadata.get("finalizers") or ()), *(dig(obj, "spec", "finalizers", default=[]))]
        if finalizers:
            return Answer(f"{since} and waits until its finalizers are removed: {', '.join(finalizers)}", details)
        return Answer(since, details)
    bad = [each for each in status.get("conditions") or () if _is_bad(each)]
    if bad:
        lines = [f"  {each.get('type')}={each.get('status')} {_reason(each)}" for each in bad[1:]]
        also = ("Also:", *lines) if lines else ()
        return Answer(f"its condition {bad[0].get('type')} is {bad[0].get('status')}{_because(bad[0])}", also + details)
    observed = status.get("observedGeneration")
    if isinstance(observed, int) and observed < metadata.get("generation", 0):
        return Answer("its controller has not seen its last change yet", details)
    if str(status.get("phase", "")) not in _GOOD_PHASES:
        why = f": {warnings[-1].get('message', '').strip()}" if warnings else ""
        return Answer(f"its phase is {status['phase']}{why}", details)
    if warnings:
        return Answer(
            f"its status shows no fault, but it was warned of: {warnings[-1].get('message', '').strip()}", details
        )
    return Answer("nothing in its status or events says that something is wrong")


def _is_bad(condition: dict[str, Any]) -> bool:
    negative = str(condition.get("type", "")).endswith(_NEGATIVE)
    return condition.get("status") == ("True" if negative else "False") or condition.get("status") == "Unknown"


def _reason(condition: dict[str, Any]) -> str:
    return " ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))


def _because(condition: dict[str, Any]) -> str:
    reason = _reason(condition)
    return f" ({reason.rstrip('.')})" if reason else ""


def _events(context: Context, namespace: str, kind: str, name: str) -> list[dict[str, Any]]:
    """The events of an object, the oldest first; none where they cannot be read."""
    path = f"/api/v1/namespaces/{namespace or 'default'}/events"
    fields = f"involvedObject.kind={kind},involvedObject.name={name}"
    try:
        found = context.client.list(path, {"fieldSelector": fields}).get("items") or []
    except CLIError:
        return []
    return sorted(found, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))


def _maybe(context: Context, path: str) -> Any:
    try:
        return context.client.get(path)
    except CLIError as error:
        if not_found(error):
            return None
        raise


def _replica_sets(context: Context, info: Info) -> list[dict[str, Any]]:
    uid = dig(info.object, "metadata", "uid", default="")
    listed = context.client.list(f"/apis/apps/v1/namespaces/{info.namespace}/replicasets", {})
    return [
        each
        for each in listed.get("items") or ()
        if any(owner.get("uid") == uid for owner in each["metadata"].get("ownerReferences") or ())
    ]


def _pod_facts(context: Context, info: Info) -> Any:
    from dataclasses import replace

    from pybernetes.cluster import diagnosis

    pod, base = info.object, f"/api/v1/namespaces/{info.namespace}"
    facts = diagnosis.Facts(pod, _events(context, info.namespace, "Pod", info.name))
    for volume in pod["spec"].get("volumes") or ():
        claim = diagnosis.claim_name(pod, volume)
        if claim:
            facts.claims[claim] = _maybe(context, f"{base}/persistentvolumeclaims/{claim}")
            facts.claim_events[claim] = _events(context, info.namespace, "PersistentVolumeClaim", claim)
    if facts.claims:
        listed = _maybe(context, "/apis/storage.k8s.io/v1/storageclasses") or {}
        facts.classes.update({each["metadata"]["name"]: each for each in listed.get("items") or ()})
    for status in diagnosis.statuses(pod):
        ended = "terminated" in (status.get("state") or {})
        if ended or "terminated" in (status.get("lastState") or {}):
            asked = {"container": status["name"], "tailLines": diagnosis.LOG_LINES, "previous": not ended}
            try:
                response = context.client.open("GET", f"{info.path()}/log", asked, accept="*/*")
                facts.logs[status["name"]] = context.client.content(response).decode("utf-8", "replace")
            except CLIError:
                continue  # its node is away, or the container is gone
    if pod["spec"].get("nodeName"):
        return replace(facts, node=_maybe(context, f"/api/v1/nodes/{pod['spec']['nodeName']}"))
    return facts


COMMAND = Command("why (NAME | TYPE/NAME)", "Explain why an object is not as it should be", run)
