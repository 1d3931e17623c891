"""Why a node is not ready, and why a namespace does not end."""

from __future__ import annotations

from .facts import Answer, Object, condition, is_ready, message_of, recent


def explain_node(node: Object, lease: Object | None, events: list[Object]) -> Answer:
    """Why a node takes no pods, or is not ready."""
    spec, ready = node["spec"], condition(node, "Ready")
    if not ready:
        return Answer("no kubelet has reported it yet", recent(events))
    if ready.get("status") == "Unknown":
        last = str(((lease or {}).get("spec") or {}).get("renewTime") or ready.get("lastHeartbeatTime") or "")
        return Answer(f"its kubelet has been silent since {last}: {ready.get('message')}", recent(events))
    if not is_ready(node):
        return Answer(f"it is not ready: {ready.get('message')}", recent(events))
    pressed = [
        each["type"]
        for each in (node.get("status") or {}).get("conditions") or ()
        if each["type"] != "Ready" and each.get("status") == "True"
    ]
    if pressed:
        texts = (f"{each}: {condition(node, each).get('message')}" for each in pressed)
        return Answer(f"it is ready, but {'; '.join(texts)}", recent(events))
    if spec.get("unschedulable"):
        return Answer("it is ready, but takes no new pods: it is cordoned (kubectl uncordon ends that)")
    taints = [f"{each['key']}:{each['effect']}" for each in spec.get("taints") or ()]
    tolerated = f", for pods that tolerate {', '.join(taints)}" if taints else ""
    return Answer(f"it is ready{tolerated}", healthy=True)


def explain_namespace(namespace: Object) -> Answer:
    """Why a namespace does not end."""
    if not namespace["metadata"].get("deletionTimestamp"):
        return Answer("it is active", healthy=True)
    found = [
        each
        for each in (namespace.get("status") or {}).get("conditions") or ()
        if each.get("status") == "True" and each.get("message")
    ]
    if found:
        # What cannot be discovered or deleted is the cause of what remains, and comes first.
        found.sort(key=lambda each: each["type"] in ("NamespaceContentRemaining", "NamespaceFinalizersRemaining"))
        first, *more = (f"{each['type']}: {message_of(each)}" for each in found)
        return Answer(f"it is being deleted, and goes on existing: {first}", tuple(more))
    left = [*(namespace["spec"].get("finalizers") or ()), *(namespace["metadata"].get("finalizers") or ())]
    return Answer(f"it is being deleted; finalizers left: {', '.join(left) or 'none'}")
