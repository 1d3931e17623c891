"""The scheduler decides as upstream does: the same nodes, the same reasons, the same scores, the best node.

One scheduler sees a cluster change, pod by pod and node by node, places pods itself, and is asked again and again;
what it remembers from before must not show.
"""

from __future__ import annotations

import asyncio
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.reference import changes, decisions, resources, storage, worlds
from scheduler.reference.cluster import Cluster
from scheduler.reference.harness import World, framework_of, scores, verdicts
from scheduler.reference.harness import refusal as as_refusal

from pybernetes.api.core.v1 import Node, Pod
from pybernetes.client.keys import copy
from pybernetes.scheduler.algorithm import Algorithm, Result
from pybernetes.scheduler.config.v1.args import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from pybernetes.scheduler.framework import CycleState, PodInfo
from pybernetes.scheduler.framework.runtime import Framework
from pybernetes.scheduler.plugins.node_resources_fit import NodeResourcesFit


def decide(framework: Framework, pod: Pod) -> Result:
    return asyncio.run(Algorithm().schedule(framework, CycleState(), PodInfo(pod)))


def check(world: World, framework: Framework, pod: Pod) -> str:
    """Compare one decision; the node, or "" if there is none."""
    cluster = world.cluster
    expected = {node.metadata.name: decisions.refusal(pod, node, cluster) for node in cluster.nodes}
    feasible = [node for node in cluster.nodes if expected[node.metadata.name] is None]
    result = decide(framework, pod)
    assert result.status is None, result.status
    if not feasible:
        assert not result.node_name
        assert result.diagnosis is not None
        if not result.diagnosis.pre_filter_message and not _narrowed(pod):
            for name, why in expected.items():
                status = result.diagnosis.status(world.snapshot.row_of[name])
                assert status is not None
                assert as_refusal(status) == why, name
        return ""
    if len(feasible) == 1:
        assert result.node_name == feasible[0].metadata.name
        return result.node_name
    names = [world.snapshot.names[row] for row in result.feasible.tolist()]
    found = result.scores_at(slice(None))
    for name in decisions.WEIGHTS:
        part = decisions.scores(name, pod, feasible, cluster)
        normalised = dict.fromkeys(names, 0) if part is None else {node: score for node, (_, score) in part.items()}
        assert dict(zip(names, found.get(name, np.zeros(len(names))).tolist(), strict=True)) == normalised, name
    totals = decisions.totals(pod, feasible, cluster)
    assert dict(zip(names, result.total.tolist(), strict=True)) == totals
    assert totals[result.node_name] == max(totals.values())
    return result.node_name


def _narrowed(pod: Pod) -> bool:
    """Whether node affinity names nodes: others are not looked at, and told so in other words."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return any(each.match_fields for each in (required.node_selector_terms if required else None) or ())


def compare(random: Random, nodes: int, steps: int, *, with_storage: bool = False) -> None:
    cluster = worlds.cluster(random, nodes, nodes)
    if with_storage:
        for pod in cluster.pods:
            storage.use(random, pod)
        storage.furnish(random, cluster)
    world = World(cluster)
    framework = framework_of(world)
    pods = [worlds.pod(random, f"new{index}", [each.metadata.name for each in cluster.nodes]) for index in range(4)]
    if with_storage:
        for pod in pods:
            storage.use(random, pod)
    for step in range(steps):
        changes.change(random, world, step)
        for index, pod in enumerate(pods):
            node = check(world, framework, pod)
            if node and worlds.maybe(random, 0.3):
                placed = copy(pod)
                placed.metadata.name, placed.metadata.uid = f"placed{step}-{index}", f"uid-placed{step}-{index}"
                world.bind(placed, node)


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 5))
def test_the_same_as_the_reference(random: Random, nodes: int, steps: int) -> None:
    compare(random, nodes, steps)


@pytest.mark.parametrize("seed", range(40))
def test_the_same_in_larger_clusters(seed: int) -> None:
    compare(Random(seed), 8, 25)


@pytest.mark.parametrize("seed", range(20))
def test_the_same_with_volumes(seed: int) -> None:
    compare(Random(1000 + seed), 6, 15, with_storage=True)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(2000, 3000, 100))
def test_the_same_for_a_long_time(first: int) -> None:
    for seed in range(first, first + 100):
        compare(Random(seed), Random(seed).randint(1, 15), 60, with_storage=seed % 2 == 0)


SHAPE = [(0, 0), (30, 7), (70, 3), (100, 10)]
RESOURCES = [("cpu", 3), ("memory", 1), (worlds.GPU, 2), ("ephemeral-storage", 1)]


def reference_score(strategy: str, pod: Pod, node: Node, cluster: Cluster) -> int:
    if strategy == "LeastAllocated":
        return resources.least_allocated(pod, node, cluster, RESOURCES)
    if strategy == "MostAllocated":
        return resources.most_allocated(pod, node, cluster, RESOURCES)
    return resources.requested_to_capacity_ratio(pod, node, cluster, SHAPE, RESOURCES)


@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
@pytest.mark.parametrize("seed", range(8))
def test_the_same_by_each_scoring_strategy(strategy: str, seed: int) -> None:
    random = Random(seed)
    world = World(worlds.cluster(random, 8, 12))
    ratio = RequestedToCapacityRatioParam(shape=[UtilizationShapePoint(utilization=x, score=y) for x, y in SHAPE])
    given_strategy = ScoringStrategy(
        type=strategy,
        resources=[ResourceSpec(name=name, weight=weight) for name, weight in RESOURCES],
        requested_to_capacity_ratio=ratio if strategy == "RequestedToCapacityRatio" else None,
    )
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=given_strategy), world.handle)
    for step in range(20):
        changes.change(random, world, step)
        pod = worlds.pod(random, f"new{step}", [])
        cluster = world.cluster
        assert verdicts(world, plugin, pod) == {
            node.metadata.name: resources.node_resources_fit(pod, node, cluster) for node in cluster.nodes
        }
        found = scores(world, plugin, pod, cluster.nodes)
        assert found is not None
        assert {name: raw for name, (raw, _) in found.items()} == {
            node.metadata.name: reference_score(strategy, pod, node, cluster) for node in cluster.nodes
        }
