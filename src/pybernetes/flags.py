"""Types of flags' values for `argparse`, with Go's forms and our messages."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def boolean(text: str) -> bool:
    """Go's words for true and false, in any case."""
    if text.lower() in ("1", "t", "true"):
        return True
    if text.lower() in ("0", "f", "false"):
        return False
    raise argparse.ArgumentTypeError(f"not true or false: {text!r}")


def seconds(text: str) -> float:
    """A duration as Go writes it, `1h30m`, in seconds."""
    from pybernetes.api.times import parse_duration  # not every command has a use for it

    try:
        return parse_duration(text) / 1e9
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def file(text: str) -> Path:
    """A file that exists: a wrong name is an error at the start, not when the file is needed."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"no such file: {text}")
    return path


def words(text: str) -> list[str]:
    """Words with commas between them; empty ones do not count."""
    return [part.strip() for part in text.split(",") if part.strip()]


def go_text(value: Any, *, duration: bool = False) -> str:
    """A flag's value as Go prints it; `duration`: seconds are meant."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        from pybernetes.api.times import format_duration

        return format_duration(round(value * 1e9)) if duration else f"{value:g}"
    if isinstance(value, dict):
        return ",".join(f"{name}={go_text(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return f"[{','.join(map(go_text, value))}]"
    return str(value)
