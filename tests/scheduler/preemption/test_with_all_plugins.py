"""Victims with every default filter at work, compared with trying it out on plain lists of objects.

The clusters are crowded with affinity, spreading, ports and volumes, so that who has to go is often not a matter of
resources, and rows are looked at both together and one by one.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest
from scheduler.reference import decisions, storage, worlds
from scheduler.reference.cluster import UNSCHEDULABLE, Cluster
from scheduler.reference.harness import World, framework_of

from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from pybernetes.scheduler.algorithm import Algorithm
from pybernetes.scheduler.framework import CycleState, PodInfo
from pybernetes.scheduler.framework.status import Code
from pybernetes.scheduler.preemption.search import search
from pybernetes.scheduler.preemption.table import VictimTable
from pybernetes.scheduler.preemption.victims import Budgets

Budget = tuple[str, str, int]
"""Namespace, the value of the label `app`, how many may go."""


def importance(pod: Pod) -> tuple[int, str]:
    return -(pod.spec.priority or 0), pod.metadata.uid


def victims_on(cluster: Cluster, node: Node, pod: Pod, budgets: list[Budget]) -> tuple[list[str], int] | None:
    """The rules, one pod after the other."""
    lower = [each for each in cluster.on(node) if (each.spec.priority or 0) < (pod.spec.priority or 0)]
    lower.sort(key=importance)
    staying = [each for each in cluster.pods if each not in lower]
    if not lower or decisions.refusal(pod, node, replace(cluster, pods=staying)) is not None:
        return None
    left = [allowed for _, _, allowed in budgets]
    breaking, harmless = [], []
    for each in lower:
        broken = False
        for index, (namespace, app, _) in enumerate(budgets):
            if each.metadata.namespace == namespace and (each.metadata.labels or {}).get("app") == app:
                left[index] -= 1
                broken = broken or left[index] < 0
        (breaking if broken else harmless).append(each)
    victims, violations = [], 0
    for each in breaking + harmless:
        if decisions.refusal(pod, node, replace(cluster, pods=[*staying, each])) is None:
            staying.append(each)
        else:
            victims.append(each)
            violations += each in breaking
    return [each.metadata.uid for each in sorted(victims, key=importance)], violations


def as_budgets(budgets: list[Budget]) -> Budgets:
    return Budgets(
        [
            PodDisruptionBudget(
                metadata=ObjectMeta(name=f"b{index}", namespace=namespace),
                spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app})),
                status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
            )
            for index, (namespace, app, allowed) in enumerate(budgets)
        ]
    )


def compare(random: Random, *, with_storage: bool) -> int:
    """How many candidates were compared."""
    nodes = random.randint(2, 5)
    cluster = worlds.cluster(random, nodes, nodes * random.randint(2, 4))
    for pod in cluster.pods:
        pod.spec.priority = random.choice((-5, 0, 0, 3))
        if with_storage:
            storage.use(random, pod)
    if with_storage:
        storage.furnish(random, cluster)
    world = World(cluster)
    framework = framework_of(world)
    budgets = [
        (random.choice(worlds.NAMESPACES), random.choice(worlds.POD_LABELS["app"]), random.randint(0, 1))
        for _ in range(random.choice((0, 2)))
    ]
    compared = 0
    names = [each.metadata.name for each in cluster.nodes]
    for index in range(6):
        pod = worlds.pod(random, f"new{index}", names)
        pod.spec.priority = random.choice((1, 10))
        if with_storage:
            storage.use(random, pod)
        state, info = CycleState(), PodInfo(pod)
        result = asyncio.run(Algorithm().schedule(framework, state, info))
        if result.diagnosis is None or result.diagnosis.pre_filter_message:
            continue
        rows = result.diagnosis.rows_with(Code.UNSCHEDULABLE)
        expected = {
            node.metadata.name: found
            for node in cluster.nodes
            if world.snapshot.row_of[node.metadata.name] in rows
            and decisions.refusal(pod, node, cluster).code == UNSCHEDULABLE  # type: ignore[union-attr]
            and (found := victims_on(cluster, node, pod, budgets)) is not None
            and found[0]
        }
        before = world.snapshot.num_pods
        found = search(
            framework, VictimTable(world.snapshot), lambda: as_budgets(budgets), state, info, rows, len(rows) or 1
        )
        assert {
            name: ([each.uid for each in victims.pods], victims.num_pdb_violations)
            for name, victims in found.all().items()
        } == expected
        assert world.snapshot.num_pods == before
        compared += len(expected)
    return compared


@pytest.mark.parametrize("with_storage", [False, True])
def test_the_same_victims_as_by_trying(with_storage: bool) -> None:
    compared = sum(compare(Random(seed), with_storage=with_storage) for seed in (*range(60), *range(1040, 1060)))
    assert compared > 30, "the clusters must leave something to preempt"


@pytest.mark.soak
@pytest.mark.parametrize("with_storage", [False, True])
def test_the_same_victims_as_by_trying_very_often(with_storage: bool) -> None:
    for seed in range(2000, 6000):
        compare(Random(seed), with_storage=with_storage)
