"""Victims and the chosen node, compared with the rules spelt out one pod at a time, over random clusters.

Both ways of the search are asked: all rows together, and one by one through the plugins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.reference.harness import FakeHandle

from pybernetes.api.core.v1 import Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from pybernetes.api.times import parse_time
from pybernetes.scheduler.config.defaults import default_args
from pybernetes.scheduler.framework.podinfo import PodInfo
from pybernetes.scheduler.framework.runtime import Framework, Services
from pybernetes.scheduler.framework.state import CycleState
from pybernetes.scheduler.framework.status import Status
from pybernetes.scheduler.preemption import search as searching
from pybernetes.scheduler.preemption.ranking import harm
from pybernetes.scheduler.preemption.table import VictimTable
from pybernetes.scheduler.preemption.victims import Budgets, select_victims
from pybernetes.scheduler.profiles import ProfileSpec
from pybernetes.scheduler.queue.nominator import PodNominator

RESOURCES = ("cpu", "memory")


@dataclass
class World:
    """Nodes with what they have, pods with what they want: numbers and texts only."""

    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    pods: list[dict[str, Any]] = field(default_factory=list)
    nominated: list[dict[str, Any]] = field(default_factory=list)
    budgets: list[dict[str, Any]] = field(default_factory=list)


def random_world(random: Random) -> World:
    world = World()
    for index in range(random.randint(1, 5)):
        world.nodes[f"n{index}"] = {
            "cpu": random.randint(2, 8),
            "memory": random.randint(2, 8),
            "pods": random.randint(1, 6),
        }
        for number in range(random.randint(0, 6)):
            world.pods.append(random_pod(random, f"n{index}-p{number}", node=f"n{index}"))
        if random.random() < 0.3:
            world.nominated.append(random_pod(random, f"nominated-{index}", node=f"n{index}"))
    for index in range(random.choice((0, 0, 1, 3))):
        app = random.choice("ab")
        disrupted = [pod["name"] for pod in world.pods if pod["app"] == app and random.random() < 0.2]
        world.budgets.append({"name": f"b{index}", "app": app, "allowed": random.randint(0, 2), "disrupted": disrupted})
    return world


def random_pod(random: Random, name: str, node: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "node": node,
        "priority": random.choice((-10, 0, 0, 5, 10)),
        "cpu": random.choice((0, 1, 1, 2, 3)),
        "memory": random.choice((0, 0, 1, 2)),
        "start": random.choice((None, *(f"2026-01-01T00:00:0{second}Z" for second in range(4)))),
        "app": random.choice(("a", "b", "")),
    }


# -- the rules, spelt out


def fits(world: World, node: str, there: list[dict[str, Any]], pod: dict[str, Any]) -> bool:
    has = world.nodes[node]
    beside = [each for each in world.nominated if each["node"] == node and each["priority"] >= pod["priority"]]
    beside += there
    if len(beside) + 1 > has["pods"]:
        return False
    return all(pod[name] == 0 or sum(each[name] for each in beside) + pod[name] <= has[name] for name in RESOURCES)


def order(pod: dict[str, Any]) -> tuple[int, float, str]:
    return -pod["priority"], parse_time(pod["start"]) if pod["start"] else float("inf"), pod["name"]


def victims_on(world: World, node: str, pod: dict[str, Any]) -> tuple[list[str], int] | None:
    """Names in order of importance, and broken budgets; None when the pod would not fit all the same."""
    there = [each for each in world.pods if each["node"] == node]
    lower = sorted((each for each in there if each["priority"] < pod["priority"]), key=order)
    staying = [each for each in there if each["priority"] >= pod["priority"]]
    if not lower or not fits(world, node, staying, pod):
        return None
    left = [budget["allowed"] for budget in world.budgets]
    breaking, harmless = [], []
    for each in lower:
        broken = False
        for index, budget in enumerate(world.budgets):
            if each["app"] == budget["app"] and each["name"] not in budget["disrupted"]:
                left[index] -= 1
                broken = broken or left[index] < 0
        (breaking if broken else harmless).append(each)
    victims, violations = [], 0
    for each in breaking + harmless:
        if fits(world, node, [*staying, each], pod):
            staying.append(each)
        else:
            victims.append(each)
            violations += each in breaking
    return [each["name"] for each in sorted(victims, key=order)], violations


# -- the same world for the scheduler


def api_pod(pod: dict[str, Any]) -> Pod:
    requests = {name: str(pod[name]) for name in RESOURCES if pod[name]}
    return Pod(
        metadata=ObjectMeta(
            name=pod["name"], namespace="ns", uid=pod["name"], labels={"app": pod["app"]} if pod["app"] else None
        ),
        spec=PodSpec(
            containers=[Container(name="c", resources=ResourceRequirements(requests=requests))],
            priority=pod["priority"],
            node_name=pod["node"] or None,
        ),
        status=PodStatus(start_time=pod["start"]),
    )


def framework_of(world: World) -> Framework:
    handle = FakeHandle()
    nominator = PodNominator()
    for name, has in world.nodes.items():
        allocatable = {key: str(value) for key, value in has.items()}
        handle.snapshot.set_node(
            Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=allocatable))  # type: ignore[arg-type]
        )
    for pod in world.pods:
        handle.snapshot.add_pod(PodInfo(api_pod(pod)), pod["node"])
    for pod in world.nominated:
        nominator.add(PodInfo(api_pod({**pod, "node": ""})), pod["node"])
    services = Services(
        snapshot=handle.snapshot,
        client=handle.client,
        clock=handle.clock,
        informer=handle.informer,
        recorder=lambda name: None,
        nominator=nominator,
        activate=lambda pods: None,
        random=Random(0),
    )
    filters = ["NodeUnschedulable", "TaintToleration", "NodeResourcesFit"]
    points = {"queueSort": ["PrioritySort"], "bind": ["DefaultBinder"], "preFilter": filters[2:], "filter": filters}
    return Framework(ProfileSpec(points=points, args={name: default_args(name) for name in filters}), services)


def budgets_of(world: World) -> Budgets:
    return Budgets(
        [
            PodDisruptionBudget(
                metadata=ObjectMeta(name=each["name"], namespace="ns"),
                spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": each["app"]})),
                status=PodDisruptionBudgetStatus(
                    disruptions_allowed=each["allowed"],
                    disrupted_pods=dict.fromkeys(each["disrupted"], "2026-01-01T00:00:00Z"),
                ),
            )
            for each in world.budgets
        ]
    )


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_victims_are_those_of_the_rules(random: Random) -> None:
    world = random_world(random)
    wanted = random_pod(random, "preemptor")
    framework, budgets = framework_of(world), budgets_of(world)
    snapshot, pod, state = framework.snapshot, PodInfo(api_pod(wanted)), CycleState()
    for plugin in framework.pre_filters:
        plugin.pre_filter(state, pod)
    rows = [row for row in range(snapshot.size) if framework.run_filters(state, pod, row) is not None]
    expected = {
        name: found
        for name in world.nodes
        if snapshot.row_of[name] in rows and (found := victims_on(world, name, wanted)) is not None and found[0]
    }
    one_by_one = {
        snapshot.names[row]: found
        for row in rows
        if not isinstance(found := select_victims(framework, state, pod, row, budgets), Status)
    }
    assert {
        name: ([each.name for each in found.pods], found.num_pdb_violations) for name, found in one_by_one.items()
    } == expected
    table = VictimTable(snapshot)
    potential = np.array(rows, dtype=np.intp)
    together = searching.search(framework, table, lambda: budgets, state, pod, potential, len(rows) or 1)
    assert {
        name: ([each.name for each in found.pods], found.num_pdb_violations) for name, found in together.all().items()
    } == expected
    if expected:
        name, victims = together.best()
        assert [each.name for each in victims.pods] == expected[name][0]
        assert harm(victims) == min(harm(each) for each in one_by_one.values())
    assert framework.snapshot.num_pods == len(world.pods), "a what-if leaves everything as it was"


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_table_follows_pods_that_come_and_go(random: Random) -> None:
    world = random_world(random)
    framework = framework_of(world)
    snapshot = framework.snapshot
    table = VictimTable(snapshot)
    for step in range(8):
        pods = [(each, info.name) for info in snapshot.infos() for each in info.pods.values()]
        if pods and random.random() < 0.5:
            snapshot.remove_pod(*random.choice(pods))
        else:
            node = random.choice(list(world.nodes))
            snapshot.add_pod(PodInfo(api_pod(random_pod(random, f"new-{step}", node=node))), node)
        if random.random() < 0.5:
            table.refresh()
            rows = np.arange(snapshot.size)
            table.load(rows[table.lowest[rows] < 1 << 31])
            fresh = VictimTable(snapshot)
            fresh.refresh()
            fresh.load(rows)
            for row in rows.tolist():
                assert table.lowest[row] == fresh.lowest[row]
                if table.lowest[row] < 1 << 31:
                    assert [each.uid for each in table.pods[row]] == [each.uid for each in fresh.pods[row]]
                    count = len(table.pods[row])
                    assert (table.requests("cpu")[row, :count] == fresh.requests("cpu")[row, :count]).all()
                    assert (table.priority[row, :count] == fresh.priority[row, :count]).all()


def test_enough_candidates_end_the_search_but_not_before_one_breaks_no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(budgets=[{"name": "b", "app": "a", "allowed": 0, "disrupted": []}])
    for index in range(20):
        world.nodes[f"n{index:02}"] = {"cpu": 2, "memory": 2, "pods": 5}
        world.pods.append(
            {
                "name": f"p{index:02}",
                "node": f"n{index:02}",
                "priority": 0,
                "cpu": 2,
                "memory": 1,
                "start": None,
                "app": "b" if index == 15 else "a",
            }
        )
    framework, budgets = framework_of(world), budgets_of(world)
    framework.random.randrange = lambda count: 3  # type: ignore[method-assign,assignment]
    wanted = {"name": "x", "node": "", "priority": 10, "cpu": 1, "memory": 0, "start": None, "app": ""}
    pod, state = PodInfo(api_pod(wanted)), CycleState()
    for plugin in framework.pre_filters:
        plugin.pre_filter(state, pod)
    for together in (True, False):
        monkeypatch.setattr(searching, "numbers_decide", lambda state, together=together: together)
        table = VictimTable(framework.snapshot)
        found = searching.search(framework, table, lambda: budgets, state, pod, np.arange(20), 5)
        assert list(found.all()) == [f"n{index:02}" for index in range(3, 16)], together
        assert found.best()[0] == "n15"


def test_the_reasons_against_preemption_are_reported() -> None:
    world = World(
        nodes={name: {"cpu": 4, "memory": 4, "pods": 5} for name in ("a", "b", "c")},
        pods=[
            {"name": "big", "node": "a", "priority": 5, "cpu": 3, "memory": 0, "start": None, "app": ""},
            {"name": "small", "node": "a", "priority": 0, "cpu": 1, "memory": 0, "start": None, "app": ""},
            {"name": "peer", "node": "b", "priority": 5, "cpu": 4, "memory": 0, "start": None, "app": ""},
        ],
    )
    framework = framework_of(world)
    wanted = {"name": "x", "node": "", "priority": 5, "cpu": 3, "memory": 0, "start": None, "app": ""}
    pod, state = PodInfo(api_pod(wanted)), CycleState()
    for plugin in framework.pre_filters:
        plugin.pre_filter(state, pod)
    rows = np.array([framework.snapshot.row_of[name] for name in "ab"])
    found = searching.search(framework, VictimTable(framework.snapshot), lambda: Budgets([]), state, pod, rows, 2)
    assert found.number == 0
    assert found.message(3) == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
