"""Computes the results of a simulated container's probes, and when: at the moments when a kubelet would probe. Pure.

What the program answers depends on its age alone (`Answers`), so a process that takes over from another finds out the
same from the beginning of the container on, and a probe that goes on being good costs nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.v1 import Probe
from pybernetes.api.times import parse_duration

from ..probes.outcome import ProbeError
from ..probes.ports import resolve_port
from ..probes.results import ProbeType
from .curves import REPEAT

_WORDS: Final = {"success": True, "failure": False}
_MOMENT: Final = 1e-6
"""Seconds; less than any period, and more than sums of seconds since 1970 lose."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Whether a program answers well, by its age in seconds: `first`, and the other at each of the `changes`."""

    first: bool = True
    changes: tuple[float, ...] = ()
    period: float = 0.0
    """When it begins again, if it does."""

    def at(self, age: float) -> bool:
        """The answer at this age."""
        passed = bisect_right(self.changes, age % self.period if self.period else age)
        return self.first != bool(passed % 2)

    def same_until(self, age: float) -> float:
        """The age up to which the answer is what it is at this one; infinity = for ever."""
        rounds = age - age % self.period if self.period else 0.0
        passed = bisect_right(self.changes, age - rounds)
        if passed < len(self.changes):
            return rounds + self.changes[passed]
        return rounds + self.period if self.period else math.inf


ALWAYS_GOOD: Final = Answers()


def ready_after(seconds: float) -> Answers:
    """Of a program that takes so long until it is ready."""
    if not seconds:
        return ALWAYS_GOOD
    return Answers(False, (seconds,) if seconds < math.inf else ())


def read_answers(text: str) -> Answers:
    """`success`, `failure`, or when it becomes which: `0s=failure, 10s=success[, repeat]`. Raises ValueError."""
    if text in _WORDS:
        return Answers(_WORDS[text])
    words = [each.strip() for each in text.split(",")]
    repeat = words[-1] == REPEAT
    steps: list[tuple[float, bool]] = []
    for word in words[:-1] if repeat else words:
        age, equals, answer = (each.strip() for each in word.partition("="))
        if not equals or answer not in _WORDS:
            raise ValueError(f"not `success`, `failure` or AGE=success, AGE=failure: {word!r}")
        seconds = parse_duration(age) / 1e9
        if seconds < 0 or (steps and seconds <= steps[-1][0]):
            raise ValueError(f"each age is greater than the one before: {text!r}")
        steps.append((seconds, _WORDS[answer]))
    if repeat and len(steps) < 2:
        raise ValueError(f"what is repeated has two ages at least: {text!r}")
    first = steps[0][1] if steps[0][0] == 0 else not steps[0][1]  # at an age the answer becomes another
    changes, last = [], first
    for seconds, answer_then in steps:
        if answer_then != last:
            changes.append(seconds)
            last = answer_then
    return Answers(first, tuple(changes), steps[-1][0] if repeat else 0.0)


class Asked:
    """One probe of one container: `passes` is what a kubelet holds for true, None = not known yet."""

    __slots__ = ("_last", "_next", "_period", "_run", "_started_at", "answers", "decided_at", "passes", "spec", "type")

    def __init__(self, type: ProbeType, spec: Probe, answers: Answers, started_at: float) -> None:
        self.type = type
        self.spec = spec
        self.passes: bool | None = {ProbeType.LIVENESS: True, ProbeType.READINESS: False}.get(type)
        self.answers = answers
        self._started_at = started_at
        self._period = float(spec.period_seconds or 10)
        self._next = started_at + (spec.initial_delay_seconds or 0)
        self.decided_at = 0.0
        """When the first answers were enough to say something."""
        self._last: bool | None = None
        self._run = 0
        """How many answers in a row were `_last`."""

    def hold_until(self, moment: float) -> None:
        """Run no probe before this moment."""
        self._next = max(self._next, moment)

    def ask(self, now: float) -> Iterator[float]:
        """Asks as often as it is due; the moments at which the answer was bad."""
        while self._next <= now:
            at = self._next
            good = self.answers.at(max(0.0, at + _MOMENT - self._started_at))
            self._run = self._run + 1 if good is self._last else 1
            self._last = good
            self._next = at + self._period
            if self._run >= self._needed(good):
                self.passes = good
                self.decided_at = self.decided_at or at
                if self.type is ProbeType.STARTUP or (self.type is ProbeType.LIVENESS and not good):
                    self._next = math.inf
            if good:
                self._pass_over(now)
            else:
                yield at

    @property
    def again_at(self) -> float:
        """When an answer may change something; infinity = never."""
        if not self._settled:
            return self._next
        changes = self._started_at + self.answers.same_until(self._next - self._started_at)
        if changes == math.inf:
            return math.inf
        return self._next + max(0.0, math.ceil((changes - self._next) / self._period - _MOMENT)) * self._period

    def _pass_over(self, now: float) -> None:
        """Leaves out good answers that change nothing."""
        if self._settled:
            last = min(now, self._started_at + self.answers.same_until(self._next - self._started_at))
            self._next += max(0, math.floor((last - self._next) / self._period)) * self._period

    @property
    def _settled(self) -> bool:
        """Whether further successes change nothing. Each failure is reported."""
        if self._next == math.inf:
            return False
        upcoming = self.answers.at(max(0.0, self._next + _MOMENT - self._started_at))
        return bool(self.passes) and bool(self._last) and upcoming

    def _needed(self, good: bool) -> int:
        return (self.spec.success_threshold or 1) if good else (self.spec.failure_threshold or 3)


def refusal(spec: Probe, container: AnyContainer, ip: str) -> str:
    """The kubelet's message for a failed probe."""
    if spec.http_get is not None:
        return "HTTP probe failed with statuscode: 503"
    if spec.tcp_socket is not None:
        try:
            port = resolve_port(spec.tcp_socket.port, container)
        except ProbeError as error:
            return str(error)
        return f"dial tcp {spec.tcp_socket.host or ip}:{port}: connect: connection refused"
    if spec.grpc is not None:
        return 'service unhealthy (responded with "NOT_SERVING")'
    return "simulated"


class Probed:
    """All probes of one container. The startup probe comes first; the others wait until it has passed."""

    __slots__ = ("_liveness", "_readiness", "_startup")

    def __init__(self, container: AnyContainer, answers: Mapping[ProbeType, Answers], started_at: float) -> None:
        self._startup, self._readiness, self._liveness = (
            Asked(type, spec, answers[type], started_at) if spec is not None else None
            for type, spec in (
                (ProbeType.STARTUP, container.startup_probe),
                (ProbeType.READINESS, container.readiness_probe),
                (ProbeType.LIVENESS, container.liveness_probe),
            )
        )

    def change(self, answers: Mapping[ProbeType, Answers], now: float) -> None:
        """From now on these are the answers."""
        for _ in self.ask(now):
            pass  # what is past was answered in the old way
        for each in (self._startup, self._readiness, self._liveness):
            if each is not None:
                each.answers = answers[each.type]

    @property
    def startup(self) -> bool | None:
        """Whether it has started; None = not known."""
        return self._startup.passes if self._startup is not None else None

    @property
    def liveness(self) -> bool | None:
        """Whether it lives; None without a liveness probe."""
        return self._liveness.passes if self._liveness is not None else None

    @property
    def readiness(self) -> bool | None:
        """Whether it is ready; None without a readiness probe."""
        return self._readiness.passes if self._readiness is not None else None

    @property
    def started(self) -> bool:
        """The field `started` of the container's status."""
        return self._startup is None or bool(self._startup.passes)

    def ask(self, now: float, *, ending: bool = False) -> Iterator[Asked]:
        """Asks what is due; a probe for each bad answer to it. What is ending is asked for its readiness alone."""
        if self._startup is not None and not ending:
            for _ in self._startup.ask(now):
                yield self._startup
        if not self.started:
            return
        for each in self._others(ending):
            if self._startup is not None:
                each.hold_until(self._startup.decided_at)
            for _ in each.ask(now):
                yield each

    def again_at(self, *, ending: bool = False) -> float:
        """When something may change; infinity = never."""
        if not self.started:
            return self._startup.again_at if self._startup is not None and not ending else math.inf
        return min((each.again_at for each in self._others(ending)), default=math.inf)

    def _others(self, ending: bool) -> list[Asked]:
        return [each for each in (self._readiness, None if ending else self._liveness) if each is not None]
