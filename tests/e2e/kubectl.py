"""Debian's kubectl as a function."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class KubectlFailed(AssertionError):
    """kubectl ended with an error; the text is what it printed."""


class Kubectl:
    """Runs kubectl with a kubeconfig and a home of its own; the answer is its standard output."""

    def __init__(self, binary: str, kubeconfig: Path, home: Path) -> None:
        self.binary = binary
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [self.binary, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=60,
        )
        if done.returncode:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done.stdout
