"""The hooks of simulated containers: how long they take, and whether they fail. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pybernetes.api.core.v1 import LifecycleHandler
from pybernetes.api.times import parse_duration

FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Hook:
    """The result of a hook: its duration, and whether it fails."""

    seconds: float = 0.0
    fails: bool = False


AT_ONCE = Hook()


def read_hook(text: str) -> Hook:
    """`2s`, `failure`, or `2s, failure`. Raises ValueError."""
    words = [each.strip() for each in text.split(",")]
    fails = words[-1] == FAILURE
    times = words[:-1] if fails else words
    if len(times) > 1:
        raise ValueError(f"not a time, `failure`, or both: {text!r}")
    seconds = parse_duration(times[0]) / 1e9 if times else 0.0
    if seconds < 0:
        raise ValueError(f"a time cannot be negative: {text}")
    return Hook(seconds, fails)


def hook(handler: LifecycleHandler | None, configured: Hook) -> Hook | None:
    """The result of a container's hook; None if it has none. A sleep action takes its own time."""
    if handler is None:
        return None
    if handler.sleep is not None:
        return Hook(float(handler.sleep.seconds or 0))
    return configured
