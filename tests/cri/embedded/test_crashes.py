"""A runtime that is killed at any step of a pod's life: the next one knows what is there, and can take it away."""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cri.embedded import crashing
from cri.embedded.crashing import FINISHED
from cri.embedded.machine import EmbeddedMachine
from node import leaks

from pybernetes.cri.embedded.launcher import UNWANTED


@pytest.fixture
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedMachine]:
    """A machine whose runtime has stopped."""
    if why := EmbeddedMachine.lacking():
        pytest.skip(why)
    with EmbeddedMachine(Path(tmp_path_factory.mktemp("crashes")), f"pyb-crashes-{os.getpid()}") as machine:
        machine.kill_runtime()
        yield machine


class Crashing:
    """`crashing.py` in a machine."""

    def __init__(self, machine: EmbeddedMachine) -> None:
        self.machine = machine
        command = [sys.executable, crashing.__file__ or "", str(machine.folder)]
        self._log = (machine.folder / "crashing.log").open("w")
        self._process = subprocess.Popen(
            ["sh", "-c", f"{machine.join()}; exec {shlex.join(machine.enter(command))}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )

    def do(self, what: str) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def errors(self) -> str:
        return (self.machine.folder / "crashing.log").read_text()

    def count(self) -> leaks.Count:
        folder = self.machine.folder
        folders = [str(folder / each) for each in ("lib/sandboxes", "lib/containers", "run/sandboxes", "run/netns")]
        more = [str(folder / "lib/images/containers"), str(folder / "run/exits")]
        return leaks.count(self.machine.init, self.machine.cgroup, f"{folder}/ipam", [*folders, *more])

    def left_over(self, before: leaks.Count, patience: float = UNWANTED + 30) -> object:
        """What there is more than before; processes may take a moment to go."""
        end = time.monotonic() + patience
        while (found := self.count().more_than(before)) and time.monotonic() < end:
            time.sleep(0.01)
        return found

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        self._log.close()

    def start(self) -> leaks.Count:
        """What there is when nothing runs."""
        assert self.do("clear") == 0, self.errors()
        while (found := self.count()).processes["launcher"]:
            time.sleep(0.01)
        assert not found.folders
        return found


@pytest.fixture
def tried(stopped: EmbeddedMachine) -> Iterator[Crashing]:
    crashing = Crashing(stopped)
    yield crashing
    crashing.close()


often = pytest.mark.parametrize("stride", [30, pytest.param(1, marks=pytest.mark.soak)])


@often
def test_a_runtime_that_is_killed_at_any_step_leaves_what_the_next_one_can_take_away(
    tried: Crashing, stride: int
) -> None:
    before = tried.start()
    step = random.randint(1, stride)
    while (code := tried.do(f"die {step}")) != FINISHED:
        assert code == -9, f"step {step}: {tried.errors()}"
        assert tried.do("clear") == 0, f"step {step}: {tried.errors()}"
        assert not tried.left_over(before), f"step {step}"
        step += stride
    assert not tried.left_over(before)
    assert step > 150


@often
def test_a_runtime_whose_launcher_is_killed_at_any_step_goes_on_and_leaves_nothing(
    tried: Crashing, stride: int
) -> None:
    before = tried.start()
    step = random.randint(1, stride)
    while (code := tried.do(f"lose {step}")) != FINISHED:
        assert code == 0, f"step {step}: {tried.errors()}"
        assert not tried.left_over(before), f"step {step}"
        step += stride
    assert not tried.left_over(before)
    assert step > 150


@pytest.mark.parametrize("stride", [20, pytest.param(1, marks=pytest.mark.soak)])
def test_power_failures_at_any_step_and_while_that_is_mended_leave_what_the_next_runtime_can_take_away(
    tried: Crashing, stride: int
) -> None:
    before = tried.start()
    step = random.randint(1, stride)
    while (code := tried.do(f"power die {step}")) != FINISHED:
        again = random.randint(1, 120)
        moment = f"steps {step} and {again}"
        assert code == -9, f"{moment}: {tried.errors()}"
        assert tried.do(f"power die_clearing {again}") in (-9, FINISHED), f"{moment}: {tried.errors()}"
        assert tried.do("power clear") == 0, f"{moment}: {tried.errors()}"
        assert not tried.left_over(before), moment
        step += stride
    assert not tried.left_over(before)
    assert step > 150
