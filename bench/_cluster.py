"""A cluster of a benchmark's own, started by `pyb up` on an empty folder as any user would, and gone afterwards."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from _load import Report

_PYB = [sys.executable, "-m", "pybernetes"]


@dataclass(frozen=True)
class Cluster:
    """One that runs."""

    data: Path
    began: float
    """When `up` was typed, by `time.perf_counter`."""

    @property
    def kubeconfig(self) -> str:
        return str(self.data / "kubeconfig")

    @property
    def supervisor(self) -> int:
        """The process that all others descend from."""
        return int((self.data / "run/supervisor.pid").read_text().split()[0])


@contextlib.contextmanager
def cluster(folder: Path, name: str, flags: Sequence[str], report: Report, keep_logs: str | None) -> Iterator[Cluster]:
    """Starts one with these flags of `up`, tells how long that and its end took, and copies its logs if asked to."""
    environment = {**os.environ, "KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)}
    which = ["--name", name, "--data-dir", str(folder / "data")]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            [*_PYB, "up", *which, "--port", "0", *flags], env=environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"pyb up failed:\n{done.stdout}{done.stderr}")
        report.row("up, on an empty folder", time.perf_counter() - began, "s")
        yield Cluster(folder / "data", began)
    finally:
        if keep_logs:
            subprocess.run(["cp", "-r", str(folder / "data/logs"), keep_logs])
        began = time.perf_counter()
        subprocess.run([*_PYB, "down", *which], env=environment, capture_output=True)
        report.row("down", time.perf_counter() - began, "s")
