"""What is remembered of attempts stays within its limits, and is what was found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from pybernetes.scheduler.explain.memory import BEST, MOST_FOR_A_POD, WHOLE_A_SECOND, Memory
from pybernetes.scheduler.framework.diagnosis import Diagnosis
from pybernetes.scheduler.framework.status import Code, Status


def attempt(uid: str, nodes: int = 4, *, started: float = 0.0, refused: Any = None, fails: bool = False) -> Any:
    names = [f"n{row}" for row in range(nodes)]
    feasible = np.array([row for row in range(nodes) if row not in (refused or ())])
    points = (feasible * 7) % 101
    diagnosis = None
    if fails:
        diagnosis = Diagnosis(nodes, nodes)
        diagnosis.refuse(Status(Code.UNSCHEDULABLE, "Insufficient cpu", plugin="Fit"), np.arange(nodes))
    mask = np.ones(nodes, dtype=np.bool_)
    mask[list(refused or ())] = False
    return SimpleNamespace(
        pod=SimpleNamespace(uid=uid),
        framework=SimpleNamespace(
            profile_name="p",
            snapshot=SimpleNamespace(num_nodes=nodes, row_of={name: row for row, name in enumerate(names)}),
        ),
        number=1,
        started=started,
        seconds=0.001,
        result="unschedulable" if fails else "scheduled",
        node_name="" if fails else names[int(feasible[0])],
        nominated_node_name="",
        status=None,
        names=names,
        size=nodes,
        alive=np.ones(nodes, dtype=np.bool_),
        masks={"Fit": mask},
        diagnosis=diagnosis,
        feasible=None if fails else feasible,
        scores_at=lambda positions: {"A": points[positions]},
        weights={"A": 2},
        total=None if fails else points * 2,
    )


def test_the_oldest_go_when_there_are_too_many_attempts() -> None:
    memory = Memory(most_attempts=10)
    for number in range(25):
        memory.record(attempt(f"pod-{number}"))
    assert len(memory) == 10
    assert memory.of("pod-14") == []
    assert len(memory.of("pod-15")) == 1


def test_the_oldest_go_when_there_are_too_many_bytes_and_the_sum_is_kept_right() -> None:
    memory = Memory(most_bytes=100_000)
    for number in range(100):
        memory.record(attempt(f"pod-{number}", nodes=200))
    assert memory.bytes <= 100_000
    assert memory.bytes == sum(kept.size for number in range(100) for kept in memory.of(f"pod-{number}"))
    for number in range(100):
        memory.forget(f"pod-{number}")
    assert (len(memory), memory.bytes) == (0, 0)


def test_of_one_pod_only_the_last_attempts_are_kept() -> None:
    memory = Memory()
    for number in range(MOST_FOR_A_POD + 3):
        memory.record(attempt("pod", started=float(number)))
    assert [kept.started for kept in memory.of("pod")] == [float(number) for number in range(3, MOST_FOR_A_POD + 3)]


def test_each_node_s_verdict_and_score_is_kept() -> None:
    memory = Memory()
    memory.record(attempt("good", nodes=6, refused={1, 4}))
    (kept,) = memory.of("good")
    assert kept.refused_by is not None
    assert kept.refused_by.tolist() == [-1, 0, -1, -1, 0, -1]
    assert [each.plugin for each in kept.refusals] == ["Fit"]
    assert kept.feasible is not None
    assert kept.scores is not None
    assert kept.feasible.tolist() == [0, 2, 3, 5]
    assert kept.scores.tolist() == [[0, 14, 21, 35]]
    memory.record(attempt("bad", nodes=6, fails=True))
    (kept,) = memory.of("bad")
    assert kept.refusals[0].reasons == ("Insufficient cpu",)
    assert kept.message == "0/6 nodes are available: 6 Insufficient cpu."


def test_in_a_burst_in_a_large_cluster_the_best_nodes_are_kept_and_the_chosen_one() -> None:
    memory = Memory()
    for number in range(WHOLE_A_SECOND + 1):
        memory.record(attempt(f"pod-{number}", nodes=1000, started=number / 1000))
    whole, (part,) = memory.of("pod-0")[0], memory.of(f"pod-{WHOLE_A_SECOND}")
    assert whole.feasible is not None
    assert part.feasible is not None
    assert part.total is not None
    assert (len(whole.feasible), len(part.feasible), part.num_feasible) == (1000, BEST + 1, 1000)
    assert part.total[0] == 200
    assert 0 in part.feasible  # n0 was chosen, though (in this test) it is not among the best
    memory.record(attempt("later", nodes=1000, started=2.0))
    (later,) = memory.of("later")
    assert later.feasible is not None
    assert len(later.feasible) == 1000
