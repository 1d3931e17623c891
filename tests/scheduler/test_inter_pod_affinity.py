"""InterPodAffinity decides as upstream does, on a cluster that changes under it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.reference import changes, worlds
from scheduler.reference.harness import World, scores, verdicts
from scheduler.reference.interpod import inter_pod_affinity, inter_pod_affinity_scores

from pybernetes.api.core.v1 import (
    Affinity,
    Pod,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    WeightedPodAffinityTerm,
)
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.scheduler.config.v1.args import InterPodAffinityArgs
from pybernetes.scheduler.framework.plugin import CycleState, PodInfo, Status
from pybernetes.scheduler.framework.podinfo import MAX_TERMS
from pybernetes.scheduler.plugins.inter_pod_affinity import InterPodAffinity


def compare(random: Random, nodes: int, steps: int) -> None:
    world = World(worlds.cluster(random, nodes, nodes * 2))
    weight, ignore = random.choice((None, 0, 7)), worlds.maybe(random, 0.2)
    args = InterPodAffinityArgs(hard_pod_affinity_weight=weight, ignore_preferred_terms_of_existing_pods=ignore)
    plugin = InterPodAffinity(args, world.handle)
    # The same pods again and again: what was worked out for them before is brought up to date, not made anew.
    pods = [worlds.pod(random, f"new{index}", [], chance=0.6) for index in range(5)]
    for step in range(steps):
        changes.change(random, world, step)
        cluster = world.cluster
        for pod in pods:
            assert verdicts(world, plugin, pod) == {
                node.metadata.name: inter_pod_affinity(pod, node, cluster) for node in cluster.nodes
            }
            candidates = worlds.some(random, cluster.nodes, len(cluster.nodes))
            if candidates:
                assert scores(world, plugin, pod, candidates) == inter_pod_affinity_scores(
                    pod, candidates, cluster, hard_weight=1 if weight is None else weight, ignore_others=ignore
                )


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 6))
def test_the_same_nodes_reasons_and_scores_as_the_reference(random: Random, nodes: int, steps: int) -> None:
    compare(random, nodes, steps)


@pytest.mark.parametrize("seed", range(30))
def test_the_same_in_larger_clusters(seed: int) -> None:
    compare(Random(seed), 8, 40)


def test_the_same_when_a_term_is_in_many_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybernetes.scheduler.plugins.inter_pod_affinity.others._MANY", 2)
    for seed in range(8):
        compare(Random(1000 + seed), 8, 30)


@pytest.mark.parametrize("kind", ["required", "preferred"])
def test_a_pod_with_too_many_terms_is_rejected_and_matched_by_none(kind: str) -> None:
    """One pod with 6,000 terms held up all others for 18 s."""
    term = PodAffinityTerm(topology_key="zone", label_selector=LabelSelector(match_labels={"a": "b"}))
    terms: Any = [term] * (MAX_TERMS + 1)
    if kind == "required":
        affinity = PodAntiAffinity(required_during_scheduling_ignored_during_execution=terms)
    else:
        weighted = [WeightedPodAffinityTerm(weight=1, pod_affinity_term=each) for each in terms]
        affinity = PodAntiAffinity(preferred_during_scheduling_ignored_during_execution=weighted)
    spec = PodSpec(affinity=Affinity(pod_anti_affinity=affinity))
    pod = PodInfo(Pod(metadata=ObjectMeta(name="many", namespace="default", uid="u"), spec=spec))
    world = World(worlds.cluster(Random(1), 3, 6))
    plugin = InterPodAffinity(InterPodAffinityArgs(), world.handle)
    found = plugin.pre_filter(CycleState(), pod)
    assert isinstance(found, Status)
    assert found.reasons == (f"parsing pod: it has {MAX_TERMS + 1} pod affinity terms, more than {MAX_TERMS}",)
    assert not pod.required_anti_affinity
    assert not pod.preferred_anti_affinity
