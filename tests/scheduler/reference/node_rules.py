"""What a pod and a node settle between themselves: name, taints, affinity, ports, images, `unschedulable`."""

from __future__ import annotations

from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.core.v1.affinity import NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration

from .cluster import UNRESOLVABLE, UNSCHEDULABLE, Cluster, Refusal, labels_of

MEBIBYTE = 1024 * 1024


# --- NodeName


def node_name(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    if pod.spec.node_name and pod.spec.node_name != node.metadata.name:
        return Refusal(UNRESOLVABLE, ("node(s) didn't match the requested node name",))
    return None


# --- NodeUnschedulable


def node_unschedulable(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    if not node.spec.unschedulable:
        return None
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    if any(tolerates(each, taint) for each in pod.spec.tolerations or []):
        return None
    return Refusal(UNRESOLVABLE, ("node(s) were unschedulable",))


# --- TaintToleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in (None, "", "Equal"):
        return (toleration.value or "") == (taint.value or "")
    return False  # Lt and Gt belong to a feature that is off


def has_untolerated_taint(pod: Pod, node: Node) -> bool:
    for taint in node.spec.taints or []:
        if taint.effect in ("NoSchedule", "NoExecute") and not any(
            tolerates(each, taint) for each in pod.spec.tolerations or []
        ):
            return True
    return False


def taint_toleration(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    if has_untolerated_taint(pod, node):
        return Refusal(UNRESOLVABLE, ("node(s) had untolerated taint(s)",))
    return None


def taint_toleration_score(pod: Pod, node: Node, cluster: Cluster) -> int:
    counted = [each for each in pod.spec.tolerations or [] if each.effect in (None, "", "PreferNoSchedule")]
    return sum(
        1
        for taint in node.spec.taints or []
        if taint.effect == "PreferNoSchedule" and not any(tolerates(each, taint) for each in counted)
    )


# --- NodeAffinity


def integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def requirement_holds(requirement: NodeSelectorRequirement, found: dict[str, str]) -> bool:
    key, values = requirement.key or "", requirement.values or []
    match requirement.operator:
        case "In":
            return key in found and found[key] in values
        case "NotIn":
            return key not in found or found[key] not in values
        case "Exists":
            return key in found
        case "DoesNotExist":
            return key not in found
        case "Gt" | "Lt":
            value, limit = integer(found.get(key)), integer(values[0])
            if value is None or limit is None:
                return False
            return value > limit if requirement.operator == "Gt" else value < limit
    return False


def term_holds(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name or ""}
    return all(requirement_holds(each, labels_of(node)) for each in term.match_expressions or []) and all(
        requirement_holds(each, fields) for each in term.match_fields or []
    )


def required_affinity_holds(pod: Pod, node: Node) -> bool:
    for key, value in (pod.spec.node_selector or {}).items():
        if labels_of(node).get(key) != value:
            return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return True
    return any(term_holds(term, node) for term in required.node_selector_terms or [])


def node_affinity(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    if not required_affinity_holds(pod, node):
        return Refusal(UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",))
    return None


def node_affinity_score(pod: Pod, node: Node, cluster: Cluster) -> int | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity else None
    if preferred is None:
        return None
    return sum(each.weight or 0 for each in preferred if each.preference and term_holds(each.preference, node))


# --- NodePorts


def host_ports(pod: Pod) -> list[tuple[str, str, int]]:
    containers = [each for each in pod.spec.init_containers or [] if each.restart_policy == "Always"]
    return [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in [*containers, *(pod.spec.containers or [])]
        for port in container.ports or []
        if port.host_port
    ]


def node_ports(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    taken = [port for other in cluster.on(node) for port in host_ports(other)]
    for address, protocol, port in host_ports(pod):
        for other_address, other_protocol, other_port in taken:
            if (protocol, port) == (other_protocol, other_port) and (
                address == other_address or "0.0.0.0" in (address, other_address)
            ):
                return Refusal(UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",))
    return None


# --- ImageLocality


def with_tag(image: str) -> str:
    return image if ":" in image.rsplit("/", 1)[-1] else f"{image}:latest"


def image_locality_score(pod: Pod, node: Node, cluster: Cluster) -> int:
    containers = [*(pod.spec.init_containers or []), *(pod.spec.containers or [])]
    wanted = [container.image or "" for container in containers]
    wanted += [volume.image.reference or "" for volume in pod.spec.volumes or [] if volume.image]
    total = 0
    for image in wanted:
        for held in node.status.images or [] if node.status else []:
            if with_tag(image) in (held.names or []):
                having = sum(1 for each in cluster.nodes if with_tag(image) in image_names(each))
                total += int(float(held.size_bytes or 0) * (having / len(cluster.nodes)))
                break
    low, high = 23 * MEBIBYTE, 1000 * MEBIBYTE * len(containers)
    return 100 * (min(max(total, low), high) - low) // (high - low)


def image_names(node: Node) -> set[str]:
    return {name for image in (node.status.images if node.status else None) or [] for name in image.names or []}
