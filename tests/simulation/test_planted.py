"""Bugs that were planted in our own components are found within 1,000 seeds, and replayed bit for bit. By hand:

`./pyb test --soak tests/simulation/test_planted.py` finds ten seeds of each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from simulation import planted

from pybernetes.simulation import Faults
from pybernetes.simulation.runner import Runner
from pybernetes.testing.options import parse

pytestmark = pytest.mark.soak
SLOW = Faults(slow=0.3, crashes=0, resets=0)
SEEDS = 1000
WANTED = 10


@pytest.mark.parametrize(
    ("scenario", "faults", "nodes", "message"),
    [
        (planted.deployment_forgets_what_it_has_asked_for, SLOW, 1, "no_more_pods_than_wanted"),
        (planted.job_forgets_what_it_has_asked_for, SLOW, 1, "no_more_pods_than_wanted"),
        (planted.collector_believes_its_cache, SLOW, 0, "nothing_with_a_live_owner_goes"),
        (planted.scheduler_forgets_what_it_has_placed, SLOW, 1, "a_node_has_room_for_its_pods"),
    ],
    ids=["deployment", "job", "garbage-collector", "scheduler-cache"],
)
def test_a_planted_bug_is_found_and_replayed(
    scenario: Callable[[Any], Awaitable[None]], faults: Faults, nodes: int, message: str
) -> None:
    found: list[int] = []
    with Runner(scenario, parse({"nodes": nodes}), faults) as runner:
        for seed in range(SEEDS):
            outcome = runner.run(seed)
            if outcome.error is None:
                continue
            assert message in outcome.error, outcome.error
            assert runner.run(seed) == outcome  # writes, their hash, times, the trace
            found.append(seed)
            if len(found) == WANTED:
                break
    print(f"{scenario.__name__}: {found}")
    assert len(found) == WANTED
