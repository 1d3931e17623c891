"""A cluster with simulated nodes only, for tests that use it as people do."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tools

NODES = 5
RULES = """
rules:
- name: short-*
  settings: {run-for: 100ms, exit-code: 4}
- name: talking*
  settings:
    log: "hello {n}\\nworld {n}"
    log-every: 50ms
    exec:
    - {command: "cat /etc/*", stdout: "content\\n"}
    - {command: "false", exitCode: 3, stderr: "no\\n"}
    - {command: cat, echo: true}
    ports: {"80": "served"}
"""


class Simulation:
    """The cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"s{os.getpid()}"
        self.environment = {**os.environ, "HOME": str(folder), "KUBECONFIG": str(folder / "config")}
        self.rules = folder / "rules.yaml"
        self.rules.write_text(RULES)

    def pyb(self, command: str, *words: str, check: bool = True) -> str:
        where = (f"--name={self.name}", f"--data-dir={self.folder / 'data'}")
        done = subprocess.run(
            [*tools.PYTHON, command, *where, *words], env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout

    def pid(self) -> int | None:
        """Of the process that pretends, if it runs."""
        parts = json.loads(self.pyb("status", "--output=json", check=False))["components"]
        found: int | None = next(each["pid"] for each in parts if each["name"] == "simulated-nodes")
        return found

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """kubectl, however it ends."""
        command = [str(tools.kubectl()), *words]
        return subprocess.run(command, env=self.environment, input=stdin, capture_output=True, text=True, timeout=60)

    def kubectl(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def ready(self, pod: str) -> None:
        self.kubectl("wait", f"pod/{pod}", "--for=condition=Ready", "--timeout=60s")

    def wait_for(self, pod: str, condition: Any, what: str) -> Any:
        """The status of a pod that fulfils the condition."""

        def found() -> Any:
            status = self.get("pod", pod)["status"]
            return status if condition(status) else None

        return tools.wait_until(found, what, 60.0, every=0.1)

    def events(self, pod: str) -> list[tuple[str, str]]:
        """Reasons and messages."""
        found = self.get("events", f"--field-selector=involvedObject.name={pod}")["items"]
        return [(each["reason"], each["message"]) for each in found]


def first(status: Any) -> Any:
    """The status of a pod's first container; empty as long as its node has reported nothing."""
    return (status.get("containerStatuses") or [{}])[0]


def pod(name: str, spec: dict[str, Any] | None = None, **annotations: str) -> dict[str, Any]:
    """A pod with one container `c`, and settings of its behaviour."""
    settings = {f"simulated.pybernetes.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    container = {"name": "c", "image": "x"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": settings},
        "spec": {"containers": [container], **(spec or {})},
    }


@contextlib.contextmanager
def cluster() -> Iterator[Simulation]:
    """Started, and stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        made = Simulation(Path(folder))
        try:
            made.pyb(
                "up", "--store=memory", "--port=0", f"--simulated-nodes={NODES}", f"--simulation-rules={made.rules}"
            )
            yield made
        finally:
            made.pyb("down", "--purge")
