"""Scripts that write to a switch of the kernel."""

from __future__ import annotations

from pathlib import Path

from escape.conftest import Inside

CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")


def any_of(files: str, write: str) -> str:
    """A script that writes to any of several files; fails if none can be written to, or none is there."""
    return f"for f in {files} /dev/none/none; do {write} && exit 0; done; false"


def refused(inside: Inside, script: str) -> None:
    """The script fails, and the node's switch that the others lead to is as it was."""
    before = CORE_PATTERN.read_text()
    code, said = inside.sh(script)
    assert code not in (0, -1), said
    assert CORE_PATTERN.read_text() == before
