"""Deterministic simulation: the same seed is the same run, and what it finds is said and made small."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from simulation import scenarios

import tools
from pybernetes.simulation.faults import Crash, Faults, Plan, plan
from pybernetes.simulation.runner import Runner, SimulationFailed, simulate
from pybernetes.testing.options import ClusterOptions

OPTIONS = ClusterOptions(nodes=2)
played = pytest.mark.soak
"""For tests that play many runs."""


@pytest.fixture(scope="module")
def rollouts() -> Iterator[Runner]:
    """A process that plays rollouts."""
    with Runner(scenarios.rollout, OPTIONS, Faults()) as runner:
        yield runner


def test_the_same_seed_is_the_same_run_to_the_byte_in_another_process_too(rollouts: Runner) -> None:
    first, again, other = rollouts.run(1), rollouts.run(1), rollouts.run(2)
    assert first == again
    assert first.error is None
    assert first.writes > 30
    assert first.hash != other.hash
    with Runner(scenarios.rollout, OPTIONS, Faults()) as elsewhere:
        assert elsewhere.run(1) == first


HASH = """
from simulation import scenarios
from pybernetes.simulation.faults import Faults
from pybernetes.simulation.runner import Runner
from pybernetes.testing.options import ClusterOptions
with Runner(scenarios.rollout, ClusterOptions(nodes=2), Faults()) as runner:
    print(*(runner.run(seed).hash for seed in range(1, 6)))
"""


@played
@pytest.mark.skipif("PYB_OTHER_PYTHON" not in os.environ, reason="$PYB_OTHER_PYTHON names no other Python")
def test_the_same_seeds_are_the_same_runs_on_another_python() -> None:
    """$PYB_OTHER_PYTHON has the packages of requirements/run.txt."""
    environ = {**os.environ, "PYTHONPATH": f"{tools.ROOT / 'src'}{os.pathsep}{tools.ROOT / 'tests'}"}
    hashes = []
    for python in (sys.executable, os.environ["PYB_OTHER_PYTHON"]):
        argv = [python, "-c", HASH]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        hashes.append(done.stdout)
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0].split())) == 5


@played
def test_an_api_server_that_crashes_loses_nothing(rollouts: Runner) -> None:
    server = sorted(("kube-apiserver", "kube-controller-manager", "kube-scheduler", "simulated-nodes")).index(
        "kube-apiserver"
    )
    for at in (0.05, 0.3, 0.6):
        outcome = rollouts.run(1, Plan(0.05, 0.0, 0.0, crashes=(Crash(at, server, 3.0), Crash(at + 5, server, 1.0))))
        assert outcome.error is None, outcome.error
        assert outcome.time > at + 3.0, "it was away in the middle of the rollout"


@played
def test_a_rollout_survives_what_seeds_do_to_it(rollouts: Runner) -> None:
    rollouts.search(list(range(10, 20)), jobs=2)


@played
def test_virtual_time_takes_none_of_the_machine(rollouts: Runner) -> None:
    slow = rollouts.run(4, Plan(delay=10.0, slow=0.0, slow_delay=0.0))
    assert slow.error is None
    assert slow.time > 60


@played
def test_a_failing_seed_is_named_with_the_fewest_faults() -> None:
    with Runner(scenarios.failing, OPTIONS, Faults()) as runner, pytest.raises(SimulationFailed) as failure:
        runner.search([5, 6, 7], jobs=2)
    message = str(failure.value)
    assert "seed 5 fails (PYB_SEED=5 runs it alone)" in message
    assert "AssertionError: as planted" in message
    assert "enough are: no faults" in message
    assert "created deployments/default/web" in message
    trace = message.partition("who caused what:")[2]
    assert "create deployments default/web" in trace
    assert "reconcile deployment default/web" in trace
    assert "leases/" not in message


@played
def test_a_broken_rule_ends_the_run_at_the_write_that_broke_it() -> None:
    with Runner(scenarios.violating, OPTIONS, Faults(crashes=0)) as runner:
        outcome = runner.run(1)
    assert outcome.error is not None
    assert "no_pod_on_node_one: pod web-" in outcome.error
    assert outcome.time < 60


@played
def test_a_controller_that_forgets_when_it_crashes_is_found_and_only_its_crash_is_left() -> None:
    faults = Faults(crashes=3, within=60.0, resets=0, slow=0.0)
    with Runner(scenarios.counted, OPTIONS, faults) as runner:
        failing = next(seed for seed in range(100) if runner.run(seed).error)
        small, outcome = runner.shrink(failing, plan(failing, faults))
        assert outcome.error is not None
        assert "four does not hold" in outcome.error
        assert len(small.crashes) == 1
        assert runner.run(failing, small) == outcome


@played
def test_the_decorator_makes_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYB_SEED", "8")
    with pytest.raises(SimulationFailed, match="seed 8 fails"):
        simulate(seeds=3)(scenarios.failing)()


def test_seeds_decide_what_goes_wrong() -> None:
    plans = [plan(seed, Faults()) for seed in range(50)]
    assert plan(7, Faults()) == plans[7]
    assert len({repr(each) for each in plans}) > 40
    assert max(len(each.crashes) for each in plans) == 2
    assert plan(7, Faults(crashes=0, resets=0)).crashes == ()


def test_a_plan_gets_smaller_until_nothing_is_left() -> None:
    current = plan(3, Faults(crashes=2, resets=3))
    steps = 0
    while smaller := next(iter(current.smaller()), None):
        assert smaller != current
        current, steps = smaller, steps + 1
        assert steps < 20
    assert current.describe() == "no faults"
