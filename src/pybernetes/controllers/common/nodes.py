"""Shared by the controllers of nodes: conditions, zones, taints, the pods of a node, and references for events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node, NodeCondition, ObjectReference, Pod, Taint
from pybernetes.client.client import Client
from pybernetes.client.events import NORMAL, EventRecorder
from pybernetes.client.informer import Informer
from pybernetes.client.keys import uid_of
from pybernetes.client.retry import retry_on_conflict

from .meta import labels_of, meta, name_of
from .pods import node_of

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
_PODS_BY_NODE = "spec.nodeName"


def node_condition(node: Node, kind: str) -> NodeCondition | None:
    """The condition of a type."""
    return next((each for each in (node.status.conditions if node.status else None) or () if each.type == kind), None)


def taints_of(node: Node) -> list[Taint]:
    """The taints; not to be changed."""
    return (node.spec.taints if node.spec else None) or []


def zone_of(node: Node) -> str:
    """Region and zone in one text, from the old labels or the new; empty if the node tells neither."""
    labels = labels_of(node)
    zone = labels.get("failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", ""))
    region = labels.get("failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", ""))
    # Upstream's form, seen in metrics: the null character keeps a colon in a name apart from the separator.
    return f"{region}:\x00:{zone}" if region or zone else ""


def index_by_node(pods: Informer[Pod]) -> None:
    """Make `pods_on` possible."""
    pods.add_index(_PODS_BY_NODE, lambda pod: [node_of(pod)] if node_of(pod) else [])


def pods_on(pods: Informer[Pod], node: str) -> list[Pod]:
    """The pods that are bound to a node."""
    return pods.by_index(_PODS_BY_NODE, node)


def nodes_with_pods(pods: Informer[Pod]) -> list[str]:
    """The names of the nodes that pods are bound to, whether or not they exist."""
    return pods.index_values(_PODS_BY_NODE)


def same_taint(one: Taint, other: Taint) -> bool:
    """Whether they are the same taint: its value and time may change, key and effect are what it is."""
    return one.key == other.key and one.effect == other.effect


def has_taint(node: Node, taint: Taint) -> bool:
    """Whether the node has this taint."""
    return any(same_taint(each, taint) for each in taints_of(node))


def with_taints(present: Sequence[Taint], add: Iterable[Taint], remove: Iterable[Taint]) -> list[Taint]:
    """The taints after a change: those present keep their places, new ones come last."""
    gone = list(remove)
    added = list(add)
    kept = [each for each in present if not any(same_taint(each, other) for other in gone)]
    result = [next((new for new in added if same_taint(new, each)), each) for each in kept]
    return result + [new for new in added if not any(same_taint(new, each) for each in kept)]


async def change_taints(client: Client, node: Node, add: Sequence[Taint] = (), remove: Sequence[Taint] = ()) -> None:
    """Put taints on a node and take others off, in one write and only on the taints that it was decided upon.

    The list has no merge key: without the resourceVersion a taint that another client adds now would be lost.
    """
    current: Node | None = node

    async def attempt() -> None:
        nonlocal current
        seen = current or await client.get(Node, name_of(node))
        current = None  # refused: what the cache has is old
        if uid_of(seen) != uid_of(node):
            return
        wanted = with_taints(taints_of(seen), add, remove)
        if wanted == taints_of(seen):
            return
        patch = {"metadata": {"resourceVersion": meta(seen).resource_version}, "spec": {"taints": wanted or None}}
        await client.patch(Node, name_of(node), patch)

    try:
        await retry_on_conflict(attempt)
    except errors.NotFound:
        return


def node_reference(node: Node) -> ObjectReference:
    """How upstream's events name a node."""
    return ObjectReference(api_version="v1", kind="Node", name=name_of(node), uid=uid_of(node))


def tell_status(recorder: EventRecorder, node: Node, status: str) -> None:
    """The event that says what a node's state is now."""
    recorder.event(node_reference(node), NORMAL, status, f"Node {name_of(node)} status is now: {status}")
