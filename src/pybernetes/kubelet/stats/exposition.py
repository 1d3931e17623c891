"""Samples with times in Prometheus's text format."""

from __future__ import annotations

from collections.abc import Iterable

Labels = dict[str, str]
Row = tuple[Labels, float, float | None]
"""Labels, value, and the time it was measured at (None: now)."""


def family(name: str, help: str, kind: str, rows: Iterable[Row]) -> list[str]:
    """The lines of one metric; none if there is nothing to tell."""
    lines = [f"{name}{_labels(labels)} {_number(value)}{_time(time)}" for labels, value, time in rows]
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}", *lines] if lines else []


def text(*families: list[str]) -> bytes:
    """A whole answer."""
    return "\n".join([*(line for each in families for line in each), ""]).encode()


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in sorted(labels.items()))
    return "{" + pairs + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _time(time: float | None) -> str:
    return "" if time is None else f" {int(time * 1000)}"
