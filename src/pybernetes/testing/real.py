"""Clusters with containers: those of `pyb up`, in folders of their own, ended and purged with the test."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

from pybernetes.testing.options import ClusterOptions

START_WITHIN = 180.0
"""Seconds; most of it for a machine that is busy."""


class RealCluster:
    """A cluster of `pyb up`."""

    def __init__(self, options: ClusterOptions, folder: Path) -> None:
        self._options = options
        self._home = folder
        self._name = f"test-{os.getpid()}-{secrets.token_hex(3)}"
        self.kubeconfig = folder / "kubeconfig"
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "HOME": str(folder / "home"),
        }

    @property
    def pki(self) -> Path:
        """The keys and certificates of the cluster."""
        return self._home / "data" / "pki"

    def start(self) -> None:
        """Start it; returns when its nodes are ready. RuntimeError with what `up` said."""
        (self._home / "home").mkdir(exist_ok=True)
        options = self._options
        words = [f"--nodes={options.nodes}", f"--runtime={options.runtime}", f"--store={options.store}", "--port=0"]
        self._run("up", *words)

    def stop(self) -> None:
        """End it and remove all of it."""
        self._run("down", "--purge")

    def logs(self) -> str:
        """The logs of its components."""
        files = sorted((self._home / "data" / "logs").glob("*.log"))
        return "\n".join(f"== {file.stem}\n{file.read_text(errors='replace')}" for file in files)

    def _run(self, command: str, *words: str) -> None:
        place = [f"--name={self._name}", f"--data-dir={self._home / 'data'}"]
        argv = [sys.executable, "-P", "-m", "pybernetes", command, *place, *words]
        try:
            done = subprocess.run(
                argv,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=START_WITHIN,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"`pyb {command}` has not ended within {START_WITHIN:.0f} s") from None
        if done.returncode:
            raise RuntimeError(f"`pyb {command}` failed: {(done.stderr or done.stdout).strip()}")
