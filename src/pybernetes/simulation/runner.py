"""Runs a scenario under many seeds, makes a failing seed small, and says what happened."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from pybernetes.simulation.faults import Faults, Plan, plan
from pybernetes.testing import channel
from pybernetes.testing.options import ClusterOptions, parse

START_WITHIN = 120.0
"""Seconds for the cluster to start, on a machine that is busy."""
SEED_WITHIN = 120.0
"""Seconds of the machine for one seed."""
SHRINKS = 60
"""Runs that make a failing seed smaller."""


class SimulationFailed(AssertionError):
    """A seed failed; the message says which, why, with which faults, and what was written before."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of one run."""

    error: str | None
    hash: str
    """Of all writes: revisions, keys, values."""
    writes: int
    time: float
    """Virtual seconds."""
    shown: list[str]
    trace: list[str] = []
    """Of a run that failed: who caused what."""


def simulate(
    seeds: int = 100, *, first: int = 0, faults: Faults | None = None, jobs: int = 0, **options: Any
) -> Callable[[Callable[[Any], Awaitable[None]]], Callable[[], None]]:
    """Make a test of a scenario, `async def scenario(sim)`, that runs it under so many seeds until one fails.

    $PYB_SEED runs one seed alone. `options` are those of test clusters.
    """
    chosen = faults or Faults()
    options.setdefault("nodes", 2)
    cluster = parse(options)

    def decorate(scenario: Callable[[Any], Awaitable[None]]) -> Callable[[], None]:
        @functools.wraps(scenario)
        def test() -> None:
            alone = os.environ.get("PYB_SEED")
            wanted = [int(alone)] if alone else list(range(first, first + seeds))
            with Runner(scenario, cluster, chosen) as runner:
                runner.search(wanted, jobs or os.cpu_count() or 1)

        del test.__wrapped__  # pytest would take `sim` for a fixture
        test.scenario = scenario  # type: ignore[attr-defined]
        return test

    return decorate


class Runner:
    """A process in which seeds of one scenario run."""

    def __init__(self, scenario: Callable[[Any], Awaitable[None]], options: ClusterOptions, faults: Faults) -> None:
        self._scenario, self._options, self._faults = scenario, options, faults
        self._folder = Path(tempfile.mkdtemp(prefix="pyb-simulation-"))

    def __enter__(self) -> Runner:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and all seeds that it runs."""
        with contextlib.suppress(AttributeError):
            self._channel.close()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def search(self, seeds: list[int], jobs: int) -> None:
        """Run seeds side by side; SimulationFailed with the lowest one that fails of those that were begun."""
        failed: dict[int, Outcome] = {}
        running: dict[socket.socket, int] = {}
        waiting = iter(seeds)
        try:
            while True:
                while len(running) < jobs and not failed and (seed := next(waiting, None)) is not None:
                    running[self._begin(seed, plan(seed, self._faults))] = seed
                if not running:
                    break
                ready, _, _ = select.select(list(running), [], [], SEED_WITHIN)
                if not ready:
                    hung = ", ".join(map(str, sorted(running.values())))
                    raise SimulationFailed(f"seed {hung}: no end after {SEED_WITHIN:.0f} s of the machine")
                for end in ready:
                    seed = running.pop(end)
                    outcome = _outcome(end)
                    if outcome.error:
                        failed[seed] = outcome
        finally:
            for end in running:
                end.close()
        if failed:
            seed = min(failed)
            raise SimulationFailed(self._report(seed, failed[seed]))

    def run(self, seed: int, planned: Plan | None = None) -> Outcome:
        """Run one seed."""
        return _outcome(self._begin(seed, planned or plan(seed, self._faults)))

    def shrink(self, seed: int, planned: Plan) -> tuple[Plan, Outcome]:
        """The smallest plan found with which a failing seed still fails, and what came of it."""
        outcome = self.run(seed, planned)
        left = SHRINKS
        again = True
        while again and left > 0:
            again = False
            for smaller in planned.smaller():
                left -= 1
                tried = self.run(seed, smaller)
                if tried.error:
                    planned, outcome, again = smaller, tried, True
                    break
                if left <= 0:
                    break
        return planned, outcome

    def _report(self, seed: int, first: Outcome) -> str:
        before = plan(seed, self._faults)
        small, outcome = self.shrink(seed, before)
        outcome = outcome if outcome.error else first
        lines = [
            f"seed {seed} fails (PYB_SEED={seed} runs it alone): {outcome.error}",
            f"its faults: {before.describe()}; enough are: {small.describe()}",
            *(f"    crash at {each.at:.3f} s, down for {each.down:.3f} s" for each in small.crashes),
            *(f"    a connection breaks at {each.at:.3f} s" for each in small.resets),
            f"the last of {outcome.writes} writes, in {outcome.time:.0f} virtual seconds:",
            *(f"    {line}" for line in outcome.shown),
            "who caused what:",
            *(f"    {line}" for line in outcome.trace),
        ]
        return "\n".join(lines)

    def _begin(self, seed: int, planned: Plan) -> socket.socket:
        ours, theirs = channel.pair()
        with theirs:
            message = {"seed": seed, "plan": msgspec.to_builtins(planned)}
            channel.send(self._channel, message, [theirs.fileno()])
        return ours

    def _start(self) -> None:
        from pybernetes.cluster import certificates

        pki = self._folder / "pki"
        pki.mkdir()
        certificates.ensure(pki, ["10.96.0.1"])
        ours, theirs = channel.pair()
        log = self._folder / "log"
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
        with theirs, open(log, "ab") as output:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "pybernetes.simulation.process"),
                    *(str(theirs.fileno()), str(pki), str(self._folder)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                env=environment,
            )
        self._channel = ours
        channel.send(
            ours,
            {
                "file": inspect.getfile(self._scenario),
                "name": self._scenario.__qualname__,
                "path": sys.path,
                "options": msgspec.to_builtins(self._options),
            },
        )
        ours.settimeout(START_WITHIN)
        answer, _ = channel.receive(ours)
        if answer is None or "error" in answer:
            said = answer["error"] if answer else "\n".join(_lines(log))
            raise SimulationFailed(f"the simulated cluster did not start: {said}")


def _outcome(end: socket.socket) -> Outcome:
    with end:
        end.settimeout(SEED_WITHIN)
        try:
            answer, _ = channel.receive(end)
        except TimeoutError:
            raise SimulationFailed(f"a seed did not end within {SEED_WITHIN:.0f} s of the machine") from None
    if answer is None:
        raise SimulationFailed("the process of a seed ended without a result")
    return msgspec.convert(answer, Outcome)


def _lines(log: Path) -> Iterator[str]:
    yield from log.read_text(errors="replace").splitlines()[-15:]
