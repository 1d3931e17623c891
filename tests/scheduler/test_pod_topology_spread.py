"""PodTopologySpread decides as upstream does, on a cluster that changes under it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.reference import changes, worlds
from scheduler.reference.harness import World, scores, verdicts
from scheduler.reference.spread import topology_spread, topology_spread_scores

from pybernetes.api.core.v1 import Pod, PodSpec, TopologySpreadConstraint
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.scheduler.config.v1.args import PodTopologySpreadArgs
from pybernetes.scheduler.framework.plugin import CycleState, PodInfo
from pybernetes.scheduler.plugins.pod_topology_spread import PodTopologySpread
from pybernetes.scheduler.plugins.pod_topology_spread.plugin import MAX_CONSTRAINTS, TOO_MANY


def compare(random: Random, nodes: int, steps: int) -> None:
    world = World(worlds.cluster(random, nodes, nodes * 2))
    plugin = PodTopologySpread(PodTopologySpreadArgs(defaulting_type="System"), world.handle)
    # The same pods again and again: what was worked out for them before is brought up to date, not made anew.
    pods = [worlds.pod(random, f"new{index}", [], chance=0.6) for index in range(5)]
    for step in range(steps):
        changes.change(random, world, step)
        cluster = world.cluster
        for pod in pods:
            assert verdicts(world, plugin, pod) == {
                node.metadata.name: topology_spread(pod, node, cluster) for node in cluster.nodes
            }
            candidates = worlds.some(random, cluster.nodes, len(cluster.nodes))
            if candidates:
                assert scores(world, plugin, pod, candidates) == topology_spread_scores(pod, candidates, cluster)


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 6))
def test_the_same_nodes_reasons_and_scores_as_the_reference(random: Random, nodes: int, steps: int) -> None:
    compare(random, nodes, steps)


@pytest.mark.parametrize("seed", range(30))
def test_the_same_in_larger_clusters(seed: int) -> None:
    compare(Random(seed), 8, 40)


@pytest.mark.parametrize("action", ["DoNotSchedule", "ScheduleAnyway"])
def test_a_pod_with_more_constraints_than_can_be_compared_is_refused(action: str) -> None:
    """One pod with 3,000 constraints held up all others for 92 s."""
    constraints = [
        TopologySpreadConstraint(max_skew=1, topology_key=f"t{number}", when_unsatisfiable=action)
        for number in range(MAX_CONSTRAINTS + 1)
    ]
    spec = PodSpec(topology_spread_constraints=constraints)
    pod = PodInfo(Pod(metadata=ObjectMeta(name="many", namespace="default", uid="u"), spec=spec))
    world = World(worlds.cluster(Random(1), 3, 6))
    plugin = PodTopologySpread(PodTopologySpreadArgs(defaulting_type="System"), world.handle)
    assert plugin.pre_filter(CycleState(), pod) is TOO_MANY
    constraints.pop()
    assert plugin.pre_filter(CycleState(), PodInfo(Pod(metadata=pod.pod.metadata, spec=spec))) is not TOO_MANY
