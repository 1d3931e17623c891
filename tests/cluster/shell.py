"""`pyb` as a user has it: real processes, a home folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import yaml

import tools
from pybernetes.cluster import pidfile


class Shell:
    """Runs `pyb` with a home of its own, and ends what a failed test left running."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.kubeconfig = home / ".kube" / "config"
        self.environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        self.environment |= {"HOME": str(home), "PYB_COMMAND": "./pyb"}
        self.started: set[Path] = set()

    def __call__(self, *words: str, code: int | None = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [*tools.PYTHON, *words],
            env=self.environment | environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if code is not None:
            assert result.returncode == code, f"exit code {result.returncode}\n{result.stdout}{result.stderr}"
        return result

    def up(self, *words: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        return self("up", "--nodes=0", "--store=memory", "--port=0", *words, code=code, **environment)

    def status(self, *words: str, code: int = 0) -> dict[str, object]:
        loaded = json.loads(self("status", "--output=json", *words, code=code).stdout)
        assert isinstance(loaded, dict)
        return loaded

    def processes(self, data: Path | None = None) -> dict[str, pidfile.Process]:
        data = data or self.home / ".pybernetes" / "pybernetes"
        found = {path.stem: pidfile.read(str(path)) for path in (data / "run").glob("*.pid")}
        return {name: process for name, process in found.items() if process is not None}

    def contexts(self) -> list[str]:
        return [entry["name"] for entry in yaml.safe_load(self.kubeconfig.read_text())["contexts"] or ()]
