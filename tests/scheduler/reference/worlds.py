"""Random clusters, small and crowded: few labels, few values, little room, so that every rule has something to say.

Written against `random.Random`: hypothesis' own (`st.randoms(use_true_random=False)`) shrinks what it finds, a seeded
one is quicker for long runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from pybernetes.api.apps.v1 import ReplicaSet, ReplicaSetSpec, StatefulSet, StatefulSetSpec
from pybernetes.api.core.v1 import (
    Container,
    ContainerImage,
    ContainerPort,
    Namespace,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
)
from pybernetes.api.core.v1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from pybernetes.api.core.v1.compute import ResourceRequirements
from pybernetes.api.meta.v1 import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference

from .cluster import Cluster
from .spread import HOSTNAME, ZONE

T = TypeVar("T")

NAMESPACES = ("red", "blue", "green")
POD_LABELS = {"app": ("web", "db", "cache"), "tier": ("a", "b"), "rev": ("1", "2")}
NAMESPACE_LABELS: dict[str, tuple[str, ...]] = {"team": ("one", "two")}
NODE_LABELS = {ZONE: ("z1", "z2", "z3"), "disk": ("ssd", "hdd"), "rank": ("1", "5", "x"), "rack": ("r1", "r2")}
TOPOLOGY_KEYS = (HOSTNAME, ZONE, ZONE, "rack")
IMAGES = {"web:1": 50, "docker.io/library/db:latest": 400, "cache:2": 3000}
"""Sizes in mebibytes. (Upstream takes the size of an image from the first node that has it.)"""
GPU = "example.com/gpu"


def some(random: Random, values: Sequence[T], most: int) -> list[T]:
    """Up to `most` of the values, in any order, none twice."""
    return random.sample(list(values), random.randint(0, min(most, len(values))))


def maybe(random: Random, chance: float) -> bool:
    return random.random() < chance


def labels(random: Random, choices: dict[str, tuple[str, ...]], chance: float = 0.7) -> dict[str, str]:
    return {key: random.choice(values) for key, values in choices.items() if maybe(random, chance)}


def label_selector(random: Random) -> LabelSelector | None:
    kind = random.randint(0, 9)
    if kind == 0:
        return None
    if kind == 1:
        return LabelSelector()
    if kind <= 6:
        return LabelSelector(
            match_labels={key: random.choice(POD_LABELS[key]) for key in some(random, list(POD_LABELS), 2)}
        )
    return LabelSelector(match_expressions=[requirement(random, POD_LABELS)])


def requirement(random: Random, choices: dict[str, tuple[str, ...]]) -> LabelSelectorRequirement:
    key = random.choice(list(choices))
    operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    values = some(random, choices[key], 2) or [choices[key][0]] if operator in ("In", "NotIn") else None
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


# --- nodes


def node(random: Random, name: str) -> Node:
    found = labels(random, NODE_LABELS)
    if maybe(random, 0.9):
        found[HOSTNAME] = name
    allocatable = {"cpu": random.choice(("1", "2", "500m")), "memory": random.choice(("1Gi", "2Gi")), "pods": "8"}
    if maybe(random, 0.3):
        allocatable[GPU] = random.choice(("1", "2"))
    if maybe(random, 0.3):
        allocatable["ephemeral-storage"] = "1Gi"
    if maybe(random, 0.1):
        allocatable["pods"] = "1"
    if maybe(random, 0.05):
        del allocatable["memory"]
    taints = [
        Taint(
            key=key,
            value=random.choice(("", "x")),
            effect=random.choice(("NoSchedule", "PreferNoSchedule", "NoExecute")),
        )
        for key in some(random, ("t1", "t2", "t3"), 2)
        if maybe(random, 0.6)
    ]
    images = [
        ContainerImage(names=[image, f"{image}@sha256:00"], size_bytes=IMAGES[image] * 1024 * 1024)
        for image in some(random, list(IMAGES), 3)
    ]
    return Node(
        metadata=ObjectMeta(name=name, labels=found, uid=f"uid-{name}"),
        spec=NodeSpec(unschedulable=maybe(random, 0.1) or None, taints=taints or None),
        status=NodeStatus(allocatable=allocatable, capacity=dict(allocatable), images=images or None),
    )


# --- pods


def resources(random: Random) -> ResourceRequirements | None:
    if maybe(random, 0.2):
        return None
    requests = {}
    if maybe(random, 0.7):
        requests["cpu"] = random.choice(("0", "50m", "100m", "300m", "1", "1500m"))
    if maybe(random, 0.7):
        requests["memory"] = random.choice(("0", "64Mi", "200Mi", "700Mi"))
    if maybe(random, 0.1):
        requests[GPU] = "1"
    if maybe(random, 0.1):
        requests["ephemeral-storage"] = "600Mi"
    return ResourceRequirements(requests=requests or None, limits={"cpu": "2"} if maybe(random, 0.2) else None)


def container(random: Random, name: str) -> Container:
    ports = None
    if maybe(random, 0.15):
        ports = [
            ContainerPort(
                container_port=80,
                host_port=random.choice((80, 81)),
                host_ip=random.choice((None, "0.0.0.0", "10.0.0.1", "10.0.0.2")),
                protocol=random.choice(("TCP", "UDP")),
            )
        ]
    image = random.choice((*IMAGES, "docker.io/library/db", "other"))
    return Container(name=name, image=image, resources=resources(random), ports=ports)


def toleration(random: Random) -> Toleration:
    operator = random.choice((None, "Equal", "Exists"))
    return Toleration(
        key=random.choice(("t1", "t2", "node.kubernetes.io/unschedulable", None if operator == "Exists" else "t3")),
        operator=operator,
        value=random.choice((None, "x")) if operator != "Exists" else None,
        effect=random.choice((None, "NoSchedule", "PreferNoSchedule", "NoExecute")),
    )


def node_requirement(random: Random) -> NodeSelectorRequirement:
    if maybe(random, 0.15):
        return NodeSelectorRequirement(key="rank", operator=random.choice(("Gt", "Lt")), values=["3"])
    found = requirement(random, NODE_LABELS)
    return NodeSelectorRequirement(key=found.key, operator=found.operator, values=found.values)


def node_term(random: Random, names: Sequence[str]) -> NodeSelectorTerm:
    expressions = [node_requirement(random) for _ in range(random.randint(0, 2))]
    fields = None
    if names and maybe(random, 0.15):
        fields = [
            NodeSelectorRequirement(
                key="metadata.name", operator=random.choice(("In", "NotIn")), values=[random.choice(names)]
            )
        ]
    return NodeSelectorTerm(match_expressions=expressions or None, match_fields=fields)


def node_affinity(random: Random, names: Sequence[str]) -> NodeAffinity:
    required = preferred = None
    if maybe(random, 0.5):
        required = NodeSelector(node_selector_terms=[node_term(random, names) for _ in range(random.randint(1, 2))])
    if maybe(random, 0.7):
        preferred = [
            PreferredSchedulingTerm(weight=random.choice((1, 30, 100)), preference=node_term(random, names))
            for _ in range(random.randint(1, 2))
        ]
    return NodeAffinity(
        required_during_scheduling_ignored_during_execution=required,
        preferred_during_scheduling_ignored_during_execution=preferred,
    )


def pod_term(random: Random) -> PodAffinityTerm:
    namespaces, selector = None, None
    if maybe(random, 0.3):
        namespaces = some(random, NAMESPACES, 2) or None
    if maybe(random, 0.3):
        selector = LabelSelector()
        if maybe(random, 0.7):
            selector = LabelSelector(match_expressions=[requirement(random, NAMESPACE_LABELS)])
    return PodAffinityTerm(
        label_selector=label_selector(random),
        namespaces=namespaces,
        namespace_selector=selector,
        topology_key=random.choice(TOPOLOGY_KEYS),
    )


def pod_terms(random: Random) -> tuple[list[PodAffinityTerm] | None, list[WeightedPodAffinityTerm] | None]:
    required = [pod_term(random) for _ in range(random.randint(1, 2))] if maybe(random, 0.5) else None
    preferred = None
    if maybe(random, 0.5):
        preferred = [
            WeightedPodAffinityTerm(weight=random.choice((1, 10, 100)), pod_affinity_term=pod_term(random))
            for _ in range(random.randint(1, 2))
        ]
    return required, preferred


def affinity(random: Random, names: Sequence[str], chance: float) -> Affinity | None:
    result = Affinity()
    if maybe(random, chance):
        result.node_affinity = node_affinity(random, names)
    if maybe(random, chance):
        required, preferred = pod_terms(random)
        result.pod_affinity = PodAffinity(
            required_during_scheduling_ignored_during_execution=required,
            preferred_during_scheduling_ignored_during_execution=preferred,
        )
    if maybe(random, chance):
        required, preferred = pod_terms(random)
        result.pod_anti_affinity = PodAntiAffinity(
            required_during_scheduling_ignored_during_execution=required,
            preferred_during_scheduling_ignored_during_execution=preferred,
        )
    if result.node_affinity or result.pod_affinity or result.pod_anti_affinity or maybe(random, 0.1):
        return result
    return None


def spread_constraint(random: Random) -> TopologySpreadConstraint:
    hard = maybe(random, 0.5)
    return TopologySpreadConstraint(
        max_skew=random.choice((1, 1, 2, 3)),
        topology_key=random.choice(TOPOLOGY_KEYS),
        when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
        label_selector=label_selector(random),
        min_domains=random.choice((None, None, 1, 3)) if hard else None,
        node_affinity_policy=random.choice((None, "Honor", "Ignore")),
        node_taints_policy=random.choice((None, "Honor", "Ignore")),
        match_label_keys=["rev"] if maybe(random, 0.2) else None,
    )


def pod(random: Random, name: str, node_names: Sequence[str], *, chance: float = 0.3) -> Pod:
    """A pod without a node; `chance` of each kind of affinity."""
    inits = [container(random, f"i{index}") for index in range(random.randint(0, 2))] if maybe(random, 0.2) else []
    for each in inits:
        each.restart_policy = "Always" if maybe(random, 0.4) else None
    spec = PodSpec(
        containers=[container(random, f"c{index}") for index in range(random.randint(1, 2))],
        init_containers=inits or None,
        overhead={"cpu": "10m", "memory": "8Mi"} if maybe(random, 0.1) else None,
        priority=random.choice((0, 0, 10)),
        tolerations=[toleration(random) for _ in range(random.randint(0, 2))] or None,
        node_selector={"disk": "ssd"} if maybe(random, 0.1) else None,
        affinity=affinity(random, node_names, chance),
        topology_spread_constraints=(
            [spread_constraint(random) for _ in range(random.randint(1, 2))] if maybe(random, chance) else None
        ),
    )
    if maybe(random, 0.05):
        spec.resources = ResourceRequirements(requests={"cpu": "400m"})
    metadata = ObjectMeta(
        name=name,
        namespace=random.choice(("red", *NAMESPACES)),
        uid=f"uid-{name}",
        labels=labels(random, POD_LABELS) or None,
    )
    if maybe(random, 0.5):
        kind = random.choice((("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController")))
        metadata.owner_references = [
            OwnerReference(api_version=kind[0], kind=kind[1], name="owner", uid="uid-owner", controller=True)
        ]
    return Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


# --- the rest of the world


def namespaces(random: Random) -> list[Namespace]:
    return [
        Namespace(metadata=ObjectMeta(name=name, labels=labels(random, NAMESPACE_LABELS) or None))
        for name in NAMESPACES
    ]


def surroundings(random: Random, cluster: Cluster) -> None:
    """Services and owners, which give pods the system's spreading."""
    cluster.namespaces = namespaces(random)
    for namespace in NAMESPACES:
        metadata = ObjectMeta(name="owner", namespace=namespace)
        chosen = {key: random.choice(POD_LABELS[key]) for key in some(random, list(POD_LABELS), 1)}
        if maybe(random, 0.5):
            cluster.services.append(Service(metadata=metadata, spec=ServiceSpec(selector=chosen or None)))
        if maybe(random, 0.5):
            spec = ReplicaSetSpec(selector=label_selector(random))
            cluster.replica_sets.append(ReplicaSet(metadata=metadata, spec=spec))
        if maybe(random, 0.5):
            spec = StatefulSetSpec(selector=label_selector(random))
            cluster.stateful_sets.append(StatefulSet(metadata=metadata, spec=spec))
        if maybe(random, 0.5):
            controller = ReplicationControllerSpec(selector=chosen or None)
            cluster.replication_controllers.append(ReplicationController(metadata=metadata, spec=controller))


def cluster(random: Random, nodes: int, pods: int) -> Cluster:
    """A cluster with so many nodes and pods, the pods anywhere, whether they fit or not."""
    world = Cluster()
    surroundings(random, world)
    world.nodes = [node(random, f"n{index}") for index in range(nodes)]
    names = [each.metadata.name for each in world.nodes]
    for index in range(pods):
        each = pod(random, f"p{index}", names)
        each.spec.node_name = random.choice(names)
        world.pods.append(each)
    return world
