"""What controllers look at grows with what there is to do, and long walks leave the event loop to others."""

from __future__ import annotations

import asyncio
import random

import pytest
from controllers.cluster_nodes import node, nodes_of
from controllers.conftest import MakeHarness

from pybernetes.api import labels
from pybernetes.api.core.v1 import Pod
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key
from pybernetes.controllers.common.pods import matching
from pybernetes.controllers.common.time_slices import in_slices
from pybernetes.controllers.horizontalpodautoscaler.selectors import TargetSelectors
from pybernetes.controllers.nodelifecycle import controller as nodelifecycle


async def test_a_long_walk_lets_others_run_in_between() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    assert [each async for each in in_slices(range(100), seconds=0.0)] == list(range(100))
    task.cancel()
    assert turns > 50


def test_pods_are_matched_by_all_labels_of_a_selector_and_an_empty_one_takes_all() -> None:
    pods = [Pod(metadata=ObjectMeta(name=str(n), labels={"app": str(n % 2), "n": str(n)})) for n in range(4)]
    assert [each.metadata.name for each in matching(pods, {"app": "1"}) if each.metadata] == ["1", "3"]
    assert matching(pods, {"app": "1", "n": "2"}) == []
    assert matching(pods, {}) == pods
    assert matching([Pod(metadata=ObjectMeta(name="bare"))], {"app": "1"}) == []


def test_autoscalers_that_want_the_same_pods_are_found_without_asking_all() -> None:
    draw = random.Random(3)
    selectors, all_of_them = TargetSelectors(), dict[Key, labels.Selector]()
    texts = ["a=1", "a=2", "a in (1,2)", "b", "!c", "a=1,b=2", "a!=1", "b=2,a in (1)"]
    for step in range(400):
        key = Key(f"ns{draw.randrange(2)}", f"h{draw.randrange(12)}")
        if draw.random() < 0.3:
            selectors.drop(key)
            all_of_them.pop(key, None)
        else:
            all_of_them[key] = labels.parse(draw.choice(texts))
            selectors.set(key, all_of_them[key])
        pods = [{name: str(draw.randrange(3)) for name in "abc" if draw.random() < 0.6} for _ in range(step % 4)]
        found = selectors.matching("ns0", pods)
        expected = {
            key
            for key, each in all_of_them.items()
            if key.namespace == "ns0" and any(each.matches(pod) for pod in pods)
        }
        assert len(found) == len(set(found))
        assert set(found) == expected


def test_an_autoscaler_asks_only_selectors_that_may_speak_of_its_pods() -> None:
    selectors = TargetSelectors()
    asked: list[Key] = []

    class Counted:
        def __init__(self, key: Key, selector: labels.Selector) -> None:
            self.key, self.selector = key, selector

        def matches(self, of: labels.Labels) -> bool:
            asked.append(self.key)
            return self.selector.matches(of)

    for number in range(500):
        key, selector = Key("ns", f"h{number}"), labels.parse(f"app={number}")
        selectors.set(key, selector)
        selectors._selectors[key] = Counted(key, selector)  # type: ignore[assignment]
    for number in range(500):
        assert selectors.matching("ns", [{"app": str(number)}] * 3) == [Key("ns", f"h{number}")]
    assert len(asked) == 500


async def test_the_pod_garbage_collector_does_not_walk_over_all_pods(
    harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with harness("pod-garbage-collector-controller") as h:
        collector = h.controller("pod-garbage-collector-controller")
        assert h.kubelet is not None

        def all_of_them(self: Informer[Pod]) -> list[Pod]:
            raise AssertionError("all pods are asked for")

        with monkeypatch.context() as patched:
            patched.setattr(Informer, "items", all_of_them)
            await collector.collect()  # type: ignore[attr-defined]


async def test_one_node_that_cannot_be_judged_does_not_keep_the_others_from_it(
    harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe = nodelifecycle.observe

    def broken(known: object, seen: object, *more: object) -> object:
        if seen.metadata.name.startswith("bad-"):  # type: ignore[attr-defined]
            raise RuntimeError("a mistake")
        return observe(known, seen, *more)  # type: ignore[arg-type]

    async with (
        harness("node-lifecycle-controller", kubelet=False, tolerate=(RuntimeError,)) as h,
        nodes_of(h) as nodes,
    ):
        monkeypatch.setattr(nodelifecycle, "observe", broken)
        bad = f"bad-{h.namespace}"
        nodes.names.append(bad)
        await h.client.create(node(bad))
        good = await nodes.add()
        await nodes.report(good)
        lifecycle = h.controller("node-lifecycle-controller")

        def judged() -> bool:
            h.clock.advance(5)
            return good in lifecycle.health and bool(lifecycle.states)  # type: ignore[attr-defined]

        await h.until(judged, "the zone is judged by the other node")
        assert bad not in lifecycle.health  # type: ignore[attr-defined]
