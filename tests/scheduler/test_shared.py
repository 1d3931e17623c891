"""Kept answers are the answers: a profile that has seen a thousand pods decides as one that has seen none."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import numpy as np
import pytest
from scheduler.pods import info, node
from scheduler.reference import changes, worlds
from scheduler.reference.harness import World, framework_of

from pybernetes.scheduler.algorithm import Algorithm, Result
from pybernetes.scheduler.config.load import default
from pybernetes.scheduler.config.spec import build
from pybernetes.scheduler.framework import (
    CycleState,
    FilterPlugin,
    Mask,
    Normalize,
    PodInfo,
    Rows,
    Scope,
    ScorePlugin,
    Scores,
)
from pybernetes.scheduler.framework.runtime import Framework
from pybernetes.scheduler.plugins import registry
from pybernetes.scheduler.profiles import ProfileSpec

NAMES = {
    *("SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity"),
    *("NodePorts", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation"),
    *("ImageLocality", "DefaultBinder", "NodeDeclaredFeatures"),
}
"""Without those that look at other kinds than the random clusters here have."""


def profile(*more: str) -> ProfileSpec:
    config = default()
    plugins = config.profiles[0].plugins
    plugins.multi_point.enabled = [each for each in plugins.multi_point.enabled if each.name in NAMES]
    spec = build(config).profiles[0]
    for name in more:
        for point, kind in (("filter", FilterPlugin), ("score", ScorePlugin)):
            if issubclass(registry.load(name), kind):
                spec.points[point].append(name)
    return spec


def decide(made: Framework, pod: PodInfo) -> tuple[Result, CycleState]:
    state = CycleState()
    return asyncio.run(Algorithm().schedule(made, state, pod)), state


def outcome(made: Framework, pod: PodInfo) -> dict[str, Any]:
    """Which nodes, why not the others, and what each is worth."""
    result, _ = decide(made, pod)
    snapshot = made.snapshot
    found: dict[str, Any] = {"status": result.status}
    if result.diagnosis is not None:
        found["message"] = result.diagnosis.message()
        found["plugins"] = result.diagnosis.unschedulable_plugins
        found["why"] = {
            snapshot.names[row]: result.diagnosis.status(row) for row in np.flatnonzero(snapshot.alive[: snapshot.size])
        }
    if result.feasible is not None and result.total is not None:
        names = [snapshot.names[row] for row in result.feasible.tolist()]
        found["scores"] = dict(zip(names, result.total.tolist(), strict=True))
        found["is best"] = found["scores"].get(result.node_name) == max(found["scores"].values())
    elif result.num_feasible == 1:
        found["the only one"] = result.node_name
    return found


@pytest.mark.parametrize("seed", range(40))
def test_kept_answers_are_those_of_a_fresh_start(seed: int) -> None:
    random = Random(seed)
    world = World(worlds.cluster(random, 12, 20))
    kept = framework_of(world, profile())
    names = [each.metadata.name for each in world.cluster.nodes]
    pods = [worlds.pod(random, f"new{index}", names, chance=0.25) for index in range(6)]
    for step in range(30):
        for number in range(random.randrange(3)):
            changes.change(random, world, step * 10 + number)
        pod = PodInfo(random.choice(pods))
        assert outcome(kept, pod) == outcome(framework_of(world, profile()), pod)


def test_a_row_that_is_full_changes_what_the_others_scores_are_scaled_by() -> None:
    world = World(worlds.cluster(Random(1), 0, 0))
    liked = node("liked", labels={"a": "b"}, pods="1")
    for each in (liked, node("n1", labels={"c": "d"}), node("n2")):
        world.set_node(each)
    kept = framework_of(world, profile())
    from pybernetes.api.core.v1 import Affinity, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm
    from pybernetes.api.core.v1.affinity import PreferredSchedulingTerm

    def term(key: str, value: str, weight: int) -> PreferredSchedulingTerm:
        wanted = NodeSelectorRequirement(key=key, operator="In", values=[value])
        return PreferredSchedulingTerm(weight=weight, preference=NodeSelectorTerm(match_expressions=[wanted]))

    terms = [term("a", "b", 100), term("c", "d", 10)]
    affinity = Affinity(node_affinity=NodeAffinity(preferred_during_scheduling_ignored_during_execution=terms))
    pod = info("p", affinity=affinity)
    before = outcome(kept, pod)["scores"]
    world.bind(info("other").pod, "liked")
    after = outcome(kept, pod)
    assert after == outcome(framework_of(world, profile()), pod)
    # Node affinity counts twice: 10 of 100, then 10 of 10.
    assert after["scores"]["n1"] - before["n1"] == 2 * 90


class Odd(FilterPlugin, ScorePlugin):
    """Returns configured results, and counts its calls."""

    name = "Odd"
    scope = Scope.ROW
    normalize = Normalize.NONE
    asked: list[int] = []
    answer = 7

    def sign(self, pod: PodInfo) -> Any:
        return pod.labels.get("sign", "")

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        number = self.handle.snapshot.count(rows)
        type(self).asked.append(number)
        if pod.labels.get("raise"):
            raise RuntimeError("no idea")
        return np.ones(number, dtype=np.bool_)

    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        return np.full(self.handle.snapshot.count(rows), type(self).answer, dtype=np.int64)


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> type[Odd]:
    load = registry.load
    monkeypatch.setattr(registry, "load", lambda name: Odd if name == "Odd" else load(name))
    Odd.asked, Odd.answer = [], 7
    return Odd


def test_pods_that_are_alike_are_asked_about_once_and_then_only_for_rows_that_changed(odd: type[Odd]) -> None:
    world = World(worlds.cluster(Random(1), 0, 0))
    for number in range(50):
        world.set_node(node(f"n{number}"))
    made = framework_of(world, profile("Odd"))
    decide(made, info("p1"))
    assert odd.asked == [50]
    decide(made, info("p2"))
    assert odd.asked == [50]
    world.bind(info("p2").pod, "n7")
    decide(made, info("p3"))
    assert odd.asked == [50, 1]
    decide(made, info("p4", labels={"sign": "other"}))
    assert odd.asked == [50, 1, 50]


def test_a_plugin_that_raises_fails_that_pod_and_no_other(odd: type[Odd]) -> None:
    world = World(worlds.cluster(Random(1), 0, 0))
    for number in range(3):
        world.set_node(node(f"n{number}"))
    made = framework_of(world, profile("Odd"))
    assert decide(made, info("good"))[0].node_name
    world.bind(info("good").pod, "n1")
    bad = decide(made, info("bad", labels={"raise": "yes"}))[0]
    assert bad.status is not None
    assert (bad.status.code.name, bad.status.message) == ("ERROR", 'running filter plugin "Odd": no idea')
    assert bad.status.plugin == "Odd"
    assert decide(made, info("good2"))[0].node_name


def test_a_score_out_of_range_is_an_error_in_upstreams_words(odd: type[Odd]) -> None:
    world = World(worlds.cluster(Random(1), 0, 0))
    for number in range(3):
        world.set_node(node(f"n{number}"))
    odd.answer = 101
    status = decide(framework_of(world, profile("Odd")), info("p"))[0].status
    assert status is not None
    assert status.message == (
        'applying score defaultWeights on Score plugins: plugin "Odd" returns an invalid score 101, '
        "it should in the range of [0, 100] after normalizing"
    )


def test_ties_are_broken_at_random() -> None:
    world = World(worlds.cluster(Random(1), 0, 0))
    for number in range(4):
        world.set_node(node(f"n{number}"))
    made = framework_of(world, profile())
    assert {decide(made, info("p"))[0].node_name for _ in range(60)} == {"n0", "n1", "n2", "n3"}


def test_a_percentage_of_nodes_is_honoured_and_all_get_their_turn() -> None:
    world = World(worlds.cluster(Random(1), 0, 0))
    for number in range(400):
        world.set_node(node(f"n{number}"))
    spec = profile()
    spec.percentage_of_nodes_to_score = 30
    made = framework_of(world, spec)
    algorithm = Algorithm()
    seen: set[int] = set()
    for number in range(4):
        result = asyncio.run(algorithm.schedule(made, CycleState(), info(f"p{number}")))
        assert result.feasible is not None
        assert len(result.feasible) == 120
        seen.update(result.feasible.tolist())
    assert len(seen) == 400
