"""The settings of simulated containers and nodes by their names, and how their texts are read. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pybernetes.api.times import parse_duration

from .answers import LEAST_PAUSE, Command, Log, read_commands, read_ports
from .curves import Curve, read_curve
from .hooks import AT_ONCE, Hook, read_hook
from .probing import ALWAYS_GOOD, Answers, read_answers

NEVER: Final = math.inf
PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The behaviour of one container. Times are seconds; infinity = never, for ever."""

    pull_for: float = 0.0
    start_after: float = 0.0
    ready_after: float = 0.0
    run_for: float = NEVER
    stop_after: float = 0.0
    startup_probe: Answers = ALWAYS_GOOD
    readiness_probe: Answers | None = None
    """None = as `ready_after` says."""
    liveness_probe: Answers = ALWAYS_GOOD
    post_start: Hook = AT_ONCE
    pre_stop: Hook = AT_ONCE
    exit_code: int = 0
    exit_reason: str = ""
    cpu: Curve | None = None
    """Cores; None = what it requests."""
    memory: Curve | None = None
    """Bytes; None = what it requests."""
    log: tuple[str, ...] = ()
    log_every: float = 0.0
    exec: tuple[Command, ...] = ()
    ports: Mapping[int, str] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """The reason of its end, in the runtime's words."""
        return self.exit_reason or ("Error" if self.exit_code else "Completed")

    @property
    def output(self) -> Log:
        """Its log."""
        return Log(self.log, self.log_every)


@dataclass(frozen=True, slots=True)
class NodeBehaviour:
    """The behaviour of a node."""

    silent: bool = False
    """Nothing is heard of it."""
    not_ready: str = ""
    """Why it says that it is not ready."""
    pressure: tuple[str, ...] = ()
    """The conditions of pressure that it has."""


def field_of(name: str) -> str:
    """The field of `Behaviour` or `NodeBehaviour` that a setting is about."""
    return name.replace("-", "_")


def duration(text: str) -> float:
    """Seconds, or `never`, which is also called `forever`."""
    if text in ("never", "forever"):
        return NEVER
    seconds = parse_duration(text) / 1e9
    if seconds < 0:
        raise ValueError(f"a time cannot be negative: {text}")
    return seconds


def _pause(text: str) -> float:
    seconds = duration(text)
    if not LEAST_PAUSE <= seconds < NEVER:
        raise ValueError(f"must be at least {LEAST_PAUSE * 1000:.0f}ms: {text}")
    return seconds


def _exit_code(text: str) -> int:
    if not text.isdecimal() or int(text) > 255:
        raise ValueError(f"not an exit code (0 to 255): {text!r}")
    return int(text)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"must be true or false: {text!r}")
    return text == "true"


def _pressures(text: str) -> tuple[str, ...]:
    found = tuple(sorted({each.strip() for each in text.split(",") if each.strip()}))
    for each in found:
        if each not in PRESSURES:
            raise ValueError(f"not one of {', '.join(PRESSURES)}: {each!r}")
    return found


READERS: Final[dict[str, Callable[[str], Any]]] = {
    "pull-for": duration,
    "start-after": duration,
    "ready-after": duration,
    "run-for": duration,
    "stop-after": duration,
    "startup-probe": read_answers,
    "readiness-probe": read_answers,
    "liveness-probe": read_answers,
    "post-start": read_hook,
    "pre-stop": read_hook,
    "exit-code": _exit_code,
    "exit-reason": str,
    "cpu": read_curve,
    "memory": read_curve,
    "log": _lines,
    "log-every": _pause,
    "exec": read_commands,
    "ports": read_ports,
}
NODE_READERS: Final[dict[str, Callable[[str], Any]]] = {"silent": _truth, "not-ready": str, "pressure": _pressures}
