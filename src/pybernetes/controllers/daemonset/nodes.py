"""Which nodes a DaemonSet wants, and what makes one of its pods land there."""

from __future__ import annotations

from typing import NamedTuple

from pybernetes.api.apps.v1 import DaemonSet
from pybernetes.api.core.nodeaffinity import required_affinity_matches
from pybernetes.api.core.tolerations import untolerated_taint
from pybernetes.api.core.v1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from pybernetes.api.core.v1.node import Node
from pybernetes.api.core.v1.pod import Pod, PodSpec, PodTemplateSpec
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.client.keys import copy

from ..common.meta import annotations_of, name_of

REVISION_HASH = "controller-revision-hash"
TEMPLATE_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
TEMPLATE_GENERATION_LABEL = "pod-template-generation"

# A daemon serves its node and stays whatever ails it.
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_HOST_NETWORK_TOLERATED = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class Fit(NamedTuple):
    """Whether a pod should be put on a node, and whether one that is there may stay."""

    run: bool
    keep: bool


def fits(daemonset: DaemonSet, node: Node) -> Fit:
    """Whether the node should run a pod of the set. A NoSchedule taint keeps new pods away but lets the present one
    stay."""
    spec = template_of(daemonset).spec or PodSpec()
    if spec.node_name and spec.node_name != name_of(node):
        return Fit(False, False)
    if not required_affinity_matches(spec, node):
        return Fit(False, False)
    taints = node.spec.taints if node.spec else None
    tolerations = daemon_tolerations(spec)
    if untolerated_taint(taints, tolerations, ("NoSchedule", "NoExecute")) is None:
        return Fit(True, True)
    return Fit(False, untolerated_taint(taints, tolerations, ("NoExecute",)) is None)


def template_of(daemonset: DaemonSet) -> PodTemplateSpec:
    """The pod template."""
    return (daemonset.spec.template if daemonset.spec else None) or PodTemplateSpec()


def daemon_tolerations(spec: PodSpec) -> list[Toleration]:
    """The tolerations of the template, and those that every daemon has."""
    wanted = (*_TOLERATED, _HOST_NETWORK_TOLERATED) if spec.host_network else _TOLERATED
    tolerations = list(spec.tolerations or ())
    for key, effect in wanted:
        added = Toleration(key=key, operator="Exists", effect=effect)
        for index, each in enumerate(tolerations):
            if (each.key, each.effect, each.operator, each.value or "") == (key, effect, "Exists", ""):
                tolerations[index] = added  # without a time limit
                break
        else:
            tolerations.append(added)
    return tolerations


def template_generation(daemonset: DaemonSet) -> str | None:
    """The counter of templates that old clients look at; None if there is none."""
    text = annotations_of(daemonset).get(TEMPLATE_GENERATION_ANNOTATION, "")
    digits = text[1:] if text[:1] in "+-" else text
    return str(int(text)) if digits.isascii() and digits.isdigit() else None


def template_for_node(daemonset: DaemonSet, node: str, revision_hash: str) -> PodTemplateSpec:
    """The template of the pod for one node: labelled, tolerant, and asking the scheduler for this node and no other."""
    made = copy(Pod(metadata=template_of(daemonset).metadata, spec=template_of(daemonset).spec))
    metadata, spec = made.metadata or ObjectMeta(), made.spec or PodSpec()
    metadata.labels = dict(metadata.labels or {})
    generation = template_generation(daemonset)
    if generation is not None:
        metadata.labels[TEMPLATE_GENERATION_LABEL] = generation
    if revision_hash:
        metadata.labels[REVISION_HASH] = revision_hash
    spec.tolerations = daemon_tolerations(spec)
    spec.affinity = spec.affinity or Affinity()
    spec.affinity.node_affinity = spec.affinity.node_affinity or NodeAffinity()
    # The template's own requirements have been checked against the node already.
    spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution = NodeSelector(
        node_selector_terms=[
            NodeSelectorTerm(match_fields=[NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])])
        ]
    )
    return PodTemplateSpec(metadata=metadata, spec=spec)


def target_node(pod: Pod) -> str | None:
    """The node a pod is on or was made for; None if it says neither."""
    spec = pod.spec or PodSpec()
    if spec.node_name:
        return spec.node_name
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in (required.node_selector_terms if required else None) or ():
        for each in term.match_fields or ():
            if each.key == "metadata.name" and each.operator == "In":
                return each.values[0] if each.values and len(each.values) == 1 else None
    return None


def is_updated(daemonset: DaemonSet, pod: Pod, revision_hash: str) -> bool:
    """Whether the pod was made from the current template."""
    labels = (pod.metadata.labels if pod.metadata else None) or {}
    generation = template_generation(daemonset)
    return bool(revision_hash and labels.get(REVISION_HASH) == revision_hash) or (
        generation is not None and labels.get(TEMPLATE_GENERATION_LABEL) == generation
    )
