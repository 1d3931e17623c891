"""Pods end in the order of their priority before the machine does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from kubelet.pods import container, pod

from pybernetes.api.core.v1 import Pod, PodCondition
from pybernetes.client.clock import FakeClock
from pybernetes.kubelet.node.shutdown import ShutdownManager, group_by_priority, periods
from pybernetes.kubelet.pod.refusal import PodRefused

CRITICAL = 2_000_000_000


def _pod(uid: str, priority: int = 0, grace: int | None = 30) -> Pod:
    return pod(uid, container("c"), priority=priority, termination_grace_period_seconds=grace)


@pytest.mark.parametrize(
    ("grace", "critical", "by_priority", "expected"),
    [
        (0, 0, (), []),
        (30, 10, (), [(0, 20), (CRITICAL, 10)]),
        (30, 0, (), [(0, 30), (CRITICAL, 0)]),
        (10, 30, (), []),
        (30, 10, [(100, 5), (0, 3)], [(0, 3), (100, 5)]),
    ],
)
def test_periods_of_both_forms(grace: float, critical: float, by_priority: Any, expected: Any) -> None:
    assert periods(grace, critical, by_priority) == expected


def test_a_pod_ends_with_the_highest_group_that_it_reaches() -> None:
    pods = [_pod("below", -5), _pod("zero"), _pod("between", 50), _pod("at", 100), _pod("above", CRITICAL)]
    groups = group_by_priority([(0, 1), (100, 2), (1000, 3)], pods)
    assert [[each.metadata.uid for each in group.pods] for group in groups] == [
        ["below", "zero", "between"],
        ["at"],
        ["above"],
    ]


class Node:
    """A node whose pods end when the test says so."""

    def __init__(self, root: Path, pods: list[Pod], given: list[tuple[int, int]]) -> None:
        self.clock = FakeClock(1_700_000_000.0)
        self.ending: dict[str, asyncio.Event] = {}
        self.killed: list[tuple[str, float]] = []
        self.words: set[tuple[str, str, str | None]] = set()
        self.events: list[str] = []
        self.changes = 0
        self.manager = ShutdownManager(
            root,
            periods=given,
            active_pods=lambda: pods,
            kill=self._kill,
            clock=self.clock,
            changed=self._changed,
            event=lambda *words: self.events.append(words[-1]),
        )

    async def _kill(self, pod: Pod, grace: float, reason: str, message: str, condition: PodCondition) -> None:
        self.killed.append((pod.metadata.uid, grace))
        self.words.add((reason, message, condition.reason))
        self.ending[pod.metadata.uid] = asyncio.Event()
        await self.ending[pod.metadata.uid].wait()

    def _changed(self) -> None:
        self.changes += 1


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_groups_end_one_after_the_other_and_no_pod_gets_more_than_its_own_time(tmp_path: Path) -> None:
    node = Node(tmp_path, [_pod("a"), _pod("b", grace=5), _pod("c", CRITICAL)], [(0, 20), (CRITICAL, 10)])
    task = asyncio.create_task(node.manager.shut_down())
    await _settle()
    assert node.killed == [("a", 20), ("b", 5)]
    assert node.words == {
        ("Terminated", "Pod was terminated in response to imminent node shutdown.", "TerminationByKubelet")
    }
    node.ending["a"].set()
    node.ending["b"].set()
    await _settle()
    assert node.killed[2:] == [("c", 10)]
    node.ending["c"].set()
    await task
    assert node.manager.message() == "node is shutting down"
    assert (node.events, node.changes) == (["Shutdown manager detected shutdown event"], 1)
    state = json.loads((tmp_path / "graceful_node_shutdown_state").read_text())
    assert state == {"startTime": "2023-11-14T22:13:20Z", "endTime": "2023-11-14T22:13:20Z"}


async def test_no_pod_is_waited_for_longer_than_its_group_has(tmp_path: Path) -> None:
    node = Node(tmp_path, [_pod("slow"), _pod("c", CRITICAL)], [(0, 20), (CRITICAL, 10)])
    task = asyncio.create_task(node.manager.shut_down())
    await _settle()
    node.clock.advance(20)
    await _settle()
    assert [uid for uid, _ in node.killed] == ["slow", "c"]
    node.clock.advance(10)
    await task


async def test_while_shutting_down_no_pod_is_taken(tmp_path: Path) -> None:
    node = Node(tmp_path, [], [(0, 20)])
    node.manager.admit(_pod("x"))
    await node.manager.shut_down()
    with pytest.raises(PodRefused) as refused:
        node.manager.admit(_pod("x"))
    assert (refused.value.reason, refused.value.message) == (
        "NodeShutdown",
        "Pod was rejected as the node is shutting down.",
    )
    node.manager.cancel()
    node.manager.admit(_pod("x"))
    assert node.events[-1] == "Shutdown manager detected shutdown cancellation"


async def test_without_grace_periods_there_is_no_graceful_shutdown(tmp_path: Path) -> None:
    node = Node(tmp_path, [_pod("a")], [])
    await node.manager.shut_down()
    assert (node.killed, node.manager.enabled, node.manager.message()) == ([], False, "")
