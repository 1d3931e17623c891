"""PodTopologySpread: how evenly pods like this one would lie over the domains."""

from __future__ import annotations

import math
from typing import NamedTuple

from pybernetes.api import labels
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.core.v1.affinity import TopologySpreadConstraint

from .cluster import UNRESOLVABLE, UNSCHEDULABLE, Cluster, Refusal, labels_of
from .node_rules import has_untolerated_taint, required_affinity_holds

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

NOT_SPREAD = "node(s) didn't match pod topology spread constraints"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway", max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable="ScheduleAnyway", max_skew=5),
)


class Rule(NamedTuple):
    """A constraint with its selector read."""

    key: str
    max_skew: int
    min_domains: int
    selector: labels.Selector
    honor_affinity: bool
    honor_taints: bool

    def counts(self, pod: Pod, node: Node) -> bool:
        """Whether the node belongs to its domain at all, for this pod."""
        if self.honor_affinity and not required_affinity_holds(pod, node):
            return False
        return not (self.honor_taints and has_untolerated_taint(pod, node))


def rules(pod: Pod, cluster: Cluster, action: str) -> list[Rule]:
    """The pod's own constraints with this action, else the system's."""
    own = pod.spec.topology_spread_constraints
    found = []
    for each in own or SYSTEM_DEFAULTS:
        if each.when_unsatisfiable == action:
            selector = labels.from_label_selector(each.label_selector) if own else default_selector(pod, cluster)
            if not own and selector.empty():
                return []
            same = {key: labels_of(pod)[key] for key in each.match_label_keys or [] if key in labels_of(pod)}
            if same and not selector.selects_nothing:
                extra = [labels.Requirement(key, labels.EQUALS, (value,)) for key, value in same.items()]
                selector = labels.Selector([*selector.requirements, *extra])
            found.append(
                Rule(
                    each.topology_key or "",
                    each.max_skew or 0,
                    each.min_domains or 1,
                    selector,
                    each.node_affinity_policy != "Ignore",
                    each.node_taints_policy == "Honor",
                )
            )
    return found


def default_selector(pod: Pod, cluster: Cluster) -> labels.Selector:
    """What the services and the controller of a pod select, together."""
    namespace = pod.metadata.namespace
    wanted: list[labels.Requirement] = []
    for service in cluster.services:
        if service.metadata.namespace == namespace and service.spec.selector is not None:
            chosen = service.spec.selector
            if all(labels_of(pod).get(key) == value for key, value in chosen.items()):
                wanted += labels.from_set(chosen).requirements
    owner = next((each for each in pod.metadata.owner_references or [] if each.controller), None)
    kind = (owner.api_version, owner.kind) if owner else None
    if kind == ("v1", "ReplicationController"):
        for controller in cluster.replication_controllers:
            if (controller.metadata.namespace, controller.metadata.name) == (namespace, owner.name):
                wanted += labels.from_set(controller.spec.selector).requirements
    for owned, sets in (
        (("apps/v1", "ReplicaSet"), cluster.replica_sets),
        (("apps/v1", "StatefulSet"), cluster.stateful_sets),
    ):
        if kind == owned:
            for each in sets:
                if (each.metadata.namespace, each.metadata.name) == (namespace, owner.name):
                    wanted += labels.from_label_selector(each.spec.selector).requirements
    return labels.Selector(wanted)


def matching_on(node: Node, rule: Rule, pod: Pod, cluster: Cluster) -> int:
    """How many pods of the node the rule counts: of this namespace, selected, and not on their way out."""
    if rule.selector.empty():
        return 0
    return sum(
        1
        for other in cluster.on(node)
        if other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and rule.selector.matches(labels_of(other))
    )


def topology_spread(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    wanted = rules(pod, cluster, "DoNotSchedule")
    complete = [each for each in cluster.nodes if all(rule.key in labels_of(each) for rule in wanted)]
    for rule in wanted:
        if rule.key not in labels_of(node):
            return Refusal(UNRESOLVABLE, (f"{NOT_SPREAD} (missing required label)",))
        domains: dict[str, int] = {}
        for each in complete:
            if rule.counts(pod, each):
                domain = labels_of(each)[rule.key]
                domains[domain] = domains.get(domain, 0) + matching_on(each, rule, pod, cluster)
        fewest = min(domains.values(), default=2**31 - 1)
        if len(domains) < rule.min_domains:
            fewest = 0
        here = domains.get(labels_of(node)[rule.key], 0)
        itself = 1 if rule.selector.matches(labels_of(pod)) else 0
        if here + itself - fewest > rule.max_skew:
            return Refusal(UNSCHEDULABLE, (NOT_SPREAD,))
    return None


def topology_spread_scores(pod: Pod, candidates: list[Node], cluster: Cluster) -> dict[str, tuple[int, int]] | None:
    """(raw, normalised) for each candidate; None if the pod has no constraint."""
    wanted = rules(pod, cluster, "ScheduleAnyway")
    if not wanted:
        return None
    all_keys = bool(pod.spec.topology_spread_constraints)

    def scored(node: Node) -> bool:
        return not all_keys or all(rule.key in labels_of(node) for rule in wanted)

    eligible = [node for node in candidates if scored(node)]
    raw: dict[str, int] = {}
    for node in eligible:
        total = 0.0
        for rule in wanted:
            if rule.key not in labels_of(node):
                continue
            if rule.key == HOSTNAME:
                weight = math.log(len(eligible) + 2)
                count = matching_on(node, rule, pod, cluster)
            else:
                # A node without the label is a domain of its own, the nameless one.
                weight = math.log(len({labels_of(each).get(rule.key, "") for each in eligible}) + 2)
                here = labels_of(node)[rule.key]
                count = sum(
                    matching_on(each, rule, pod, cluster)
                    for each in cluster.nodes
                    if scored(each) and rule.counts(pod, each) and labels_of(each).get(rule.key, "") == here
                )
            total += count * weight + (rule.max_skew - 1)
        raw[node.metadata.name] = math.floor(total + 0.5)
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    result = {}
    for node in candidates:
        name = node.metadata.name
        if name not in raw:
            result[name] = (0, 0)
        else:
            result[name] = (raw[name], 100 if high == 0 else 100 * (high + low - raw[name]) // high)
    return result
