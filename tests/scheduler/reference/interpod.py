"""InterPodAffinity: pods that want, or cannot bear, to be near each other."""

from __future__ import annotations

from typing import NamedTuple

from pybernetes.api import labels
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.core.v1.affinity import PodAffinity, PodAffinityTerm, PodAntiAffinity

from .cluster import UNRESOLVABLE, UNSCHEDULABLE, Cluster, Refusal, labels_of


class Term(NamedTuple):
    """One affinity or anti-affinity term of one pod."""

    key: str
    weight: int
    term: PodAffinityTerm
    owner: Pod

    def speaks_of(self, pod: Pod, cluster: Cluster) -> bool:
        namespace = pod.metadata.namespace or ""
        if not self.term.namespaces and self.term.namespace_selector is None:
            near = namespace == self.owner.metadata.namespace
        else:
            chosen = labels.from_label_selector(self.term.namespace_selector)
            near = namespace in (self.term.namespaces or []) or chosen.matches(cluster.labels_of_namespace(namespace))
        return near and labels.from_label_selector(self.term.label_selector).matches(labels_of(pod))


def _affinity(pod: Pod, which: str) -> PodAffinity | PodAntiAffinity | None:
    return getattr(pod.spec.affinity, which) if pod.spec.affinity else None


def required(pod: Pod, which: str) -> list[Term]:
    affinity = _affinity(pod, which)
    terms = (affinity.required_during_scheduling_ignored_during_execution if affinity else None) or []
    return [Term(each.topology_key or "", 0, each, pod) for each in terms]


def preferred(pod: Pod, which: str) -> list[Term]:
    affinity = _affinity(pod, which)
    terms = (affinity.preferred_during_scheduling_ignored_during_execution if affinity else None) or []
    return [
        Term(each.pod_affinity_term.topology_key or "", each.weight or 0, each.pod_affinity_term, pod)
        for each in terms
        if each.pod_affinity_term
    ]


def together(one: Node, other: Node, key: str) -> bool:
    """Whether two nodes are in the same domain."""
    return key in labels_of(one) and key in labels_of(other) and labels_of(one)[key] == labels_of(other)[key]


def inter_pod_affinity(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    if not _likes(pod, node, cluster):
        return Refusal(UNRESOLVABLE, ("node(s) didn't match pod affinity rules",))
    for term in required(pod, "pod_anti_affinity"):
        for other in cluster.pods:
            if term.speaks_of(other, cluster) and together(node, cluster.node_of(other), term.key):
                return Refusal(UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",))
    for other in cluster.pods:
        for term in required(other, "pod_anti_affinity"):
            if term.speaks_of(pod, cluster) and together(node, cluster.node_of(other), term.key):
                return Refusal(UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",))
    return None


def _likes(pod: Pod, node: Node, cluster: Cluster) -> bool:
    terms = required(pod, "pod_affinity")
    if not all(term.key in labels_of(node) for term in terms):
        return False
    # A pod counts only if all the terms speak of it; where it is must agree term by term.
    friends = [other for other in cluster.pods if all(term.speaks_of(other, cluster) for term in terms)]
    if all(any(together(node, cluster.node_of(other), term.key) for other in friends) for term in terms):
        return True
    known = any(term.key in labels_of(cluster.node_of(other)) for other in friends for term in terms)
    return not known and all(term.speaks_of(pod, cluster) for term in terms)


def inter_pod_affinity_scores(
    pod: Pod, candidates: list[Node], cluster: Cluster, *, hard_weight: int = 1, ignore_others: bool = False
) -> dict[str, tuple[int, int]] | None:
    """(raw, normalised) for each candidate; None if no term matches a pod."""
    own = [*preferred(pod, "pod_affinity"), *preferred(pod, "pod_anti_affinity")]
    if ignore_others and not own:
        return None
    votes: list[tuple[Node, str, int]] = []  # where, by which key, how much

    def vote(other: Pod, terms: list[Term], about: Pod, sign: int) -> None:
        where = cluster.node_of(other)
        votes.extend(
            (where, term.key, sign * term.weight)
            for term in terms
            if term.key in labels_of(where) and term.speaks_of(about, cluster)
        )

    for other in cluster.pods:
        vote(other, preferred(pod, "pod_affinity"), other, 1)
        vote(other, preferred(pod, "pod_anti_affinity"), other, -1)
        if hard_weight:
            hard = [term._replace(weight=hard_weight) for term in required(other, "pod_affinity")]
            vote(other, hard, pod, 1)
        vote(other, preferred(other, "pod_affinity"), pod, 1)
        vote(other, preferred(other, "pod_anti_affinity"), pod, -1)
    if not votes:
        return None
    raw = {
        node.metadata.name: sum(weight for where, key, weight in votes if together(node, where, key))
        for node in candidates
    }
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    return {
        name: (value, int(100 * ((value - low) / (high - low))) if high > low else 0) for name, value in raw.items()
    }
