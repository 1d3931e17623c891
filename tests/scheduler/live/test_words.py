"""Why a pod fits nowhere, word for word as kube-scheduler v1.36.4 has said it about the same pods and nodes."""

from __future__ import annotations

from typing import Any

from scheduler.live.conftest import Live, MakeLive

from pybernetes.api.core.podconditions import find_pod_condition
from pybernetes.api.core.v1 import ContainerPort, PersistentVolumeClaimVolumeSource, Volume
from pybernetes.api.core.v1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Taint,
    TopologySpreadConstraint,
)
from pybernetes.api.core.v1.container import Container
from pybernetes.api.meta.v1 import LabelSelector

HOST = "kubernetes.io/hostname"
NO_HELP = (
    "no new claims to deallocate, preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."
)
NO_VICTIMS = (
    "no new claims to deallocate, preemption: 0/6 nodes are available: "
    "1 No preemption victims found for incoming pod, 5 Preemption is not helpful for scheduling."
)
TAINTED = "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable"
FULL = f"1 Too many pods, {TAINTED}"
ELSEWHERE = "node(s) didn't match Pod's node affinity/selector"
BOUND = ("", "")


def _named(*names: str) -> Affinity:
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=list(names))
    terms = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=terms))


def _terms(labels: dict[str, str], key: str) -> list[PodAffinityTerm]:
    return [PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=key)]


def _spread(key: str) -> list[TopologySpreadConstraint]:
    return [
        TopologySpreadConstraint(
            max_skew=1,
            topology_key=key,
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector(match_labels={"s": "t"}),
        )
    ]


_ANTI = Affinity(
    pod_anti_affinity=PodAntiAffinity(required_during_scheduling_ignored_during_execution=_terms({"x": "y"}, HOST))
)
_NEAR = Affinity(
    pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=_terms({"no": "body"}, "zone"))
)
_PORT = [Container(name="c", image="x", ports=[ContainerPort(container_port=80, host_port=80)])]
_CLAIM = PersistentVolumeClaimVolumeSource(claim_name="missing")

# In this order: some are bound, and are in the way of those that follow.
PODS: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    ("fit", {"node_selector": {"zone": "c"}}, BOUND),
    ("toomany", {"node_selector": {"zone": "c"}}, (f"{FULL}, 3 {ELSEWHERE}.", NO_VICTIMS)),
    ("bigcpu", {"cpu": "3"}, (f"{FULL}, 4 Insufficient cpu.", NO_HELP)),
    ("gpu2", {"example.com/gpu": "2"}, (f"{FULL}, 4 Insufficient example.com/gpu.", NO_HELP)),
    ("gpu1", {"example.com/gpu": "1"}, BOUND),
    ("gpu1b", {"example.com/gpu": "1"}, (f"{FULL}, 4 Insufficient example.com/gpu.", NO_VICTIMS)),
    ("nowhere", {"node_selector": {"zone": "no"}}, (f"{TAINTED}, 4 {ELSEWHERE}.", NO_HELP)),
    ("named", {"affinity": _named("n9")}, ("6 node(s) didn't satisfy plugin(s) [NodeAffinity].", NO_HELP)),
    (
        "named2",
        {"cpu": "1500m", "affinity": _named("n2")},
        ("1 Insufficient cpu, 5 node(s) didn't satisfy plugin(s) [NodeAffinity].", NO_HELP),
    ),
    ("port1", {"containers": _PORT, "node_selector": {HOST: "n1"}}, BOUND),
    (
        "port2",
        {"containers": _PORT, "node_selector": {HOST: "n1"}},
        (
            f"1 node(s) didn't have free ports for the requested pod ports, {TAINTED}, 3 {ELSEWHERE}.",
            NO_VICTIMS,
        ),
    ),
    ("near", {"affinity": _NEAR}, (f"{FULL}, 3 node(s) didn't match pod affinity rules.", NO_VICTIMS)),
    ("anti1", {"labels": {"x": "y"}, "affinity": _ANTI, "node_selector": {HOST: "n1"}}, BOUND),
    (
        "anti2",
        {"labels": {"x": "y"}, "affinity": _ANTI, "node_selector": {HOST: "n1"}},
        (f"1 node(s) didn't match pod anti-affinity rules, {TAINTED}, 3 {ELSEWHERE}.", NO_VICTIMS),
    ),
    (
        "anti3",
        {"labels": {"x": "y"}, "node_selector": {HOST: "n1"}},
        (f"1 node(s) didn't satisfy existing pods anti-affinity rules, {TAINTED}, 3 {ELSEWHERE}.", NO_VICTIMS),
    ),
    (
        "spread",
        {"labels": {"s": "t"}, "topology_spread_constraints": _spread("nolabel")},
        (
            f"{FULL}, 3 node(s) didn't match pod topology spread constraints (missing required label).",
            NO_VICTIMS,
        ),
    ),
    (
        "claim",
        {"volumes": [Volume(name="v", persistent_volume_claim=_CLAIM)]},
        ('persistentvolumeclaim "missing" not found.', "not found"),
    ),
    ("memory", {"memory": "100Gi"}, (f"{FULL}, 4 Insufficient memory.", NO_HELP)),
    ("ephemeral", {"ephemeral-storage": "1Gi"}, (f"{FULL}, 4 Insufficient ephemeral-storage.", NO_HELP)),
]


async def test_every_reason_in_upstreams_words(live: MakeLive) -> None:
    async with live() as s:
        small = {"cpu": "2", "memory": "4Gi", "pods": "10"}
        await s.node("n1", labels={HOST: "n1", "zone": "a"}, **small)
        await s.node("n2", labels={HOST: "n2", "zone": "b"}, **{**small, "cpu": "1"})
        hard, soft = Taint(key="k", value="v", effect="NoSchedule"), Taint(key="soft", effect="PreferNoSchedule")
        await s.node("n3", labels={HOST: "n3", "zone": "a"}, taints=[hard], **small)
        await s.node("n4", labels={HOST: "n4", "zone": "b"}, unschedulable=True, **small)
        await s.node("n5", labels={HOST: "n5", "zone": "c"}, taints=[soft], **{**small, "pods": "1"})
        await s.node("n6", labels={HOST: "n6", "zone": "a"}, **{**small, "example.com/gpu": "1"})
        said = {}
        for name, settings, _ in PODS:
            await s.pod(name, **({"cpu": "100m", **settings} if "containers" not in settings else settings))
            said[name] = await s.until(lambda name=name: _verdict(s, name), f"something is said of {name}")
        assert said == {
            name: "" if expected == BOUND else f"0/6 nodes are available: {' '.join(expected)}"
            for name, _, expected in PODS
        }


async def _verdict(s: Live, name: str) -> str | None:
    pod = await s.get(name)
    condition = find_pod_condition(pod.status, "PodScheduled") if pod else None
    if condition is None:
        return None
    return _Said(condition.message or "")


class _Said(str):
    """A text that is true although it is empty."""

    def __bool__(self) -> bool:
        return True
