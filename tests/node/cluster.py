"""A whole cluster for tests: `pyb up` with nodes on a fresh folder, and everything that can be done to it.

Its home and kubeconfig are its own, so that nothing of the user's is touched and clusters of parallel workers do not
meet.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from node import leaks

import tools
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import embedded, inside
from pybernetes.cluster.node.machine import Machine

PROGRAMS = {"containerd": "containerd", "embedded": "runtime"}
"""What the program of each runtime is called on a node."""
COMPONENTS = ("apiserver", "controller-manager", "scheduler")


class Cluster:
    """A running cluster; `folder` must have a short name, because the paths of sockets are short."""

    def __init__(self, folder: Path, name: str, *flags: str, runtime: str, nodes: int = 1) -> None:
        self.folder = folder
        self.runtime = runtime
        self.layout = Layout(name, folder / "data")
        self.environment = {**os.environ, "HOME": str(folder), "KUBECONFIG": str(folder / "config")}
        self.flags = [f"--nodes={nodes}", "--port=0", f"--runtime={runtime}", *flags]
        self.nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        self._killed: dict[str, str] = {}
        """When the kubelet of a node was killed last, as leases write times."""

    def __enter__(self) -> Cluster:
        try:
            self.up()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> str:
        """`pyb up`."""
        return self.pyb("up", *self.flags)

    def down(self) -> str:
        """`pyb down --purge`."""
        return self.pyb("down", "--purge", check=False)

    def pyb(self, command: str, *words: str, check: bool = True) -> str:
        """A command of `pyb` on this cluster."""
        named = ["--name", self.layout.name, "--data-dir", str(self.layout.data)]
        return self._run([*tools.PYTHON, command, *named, *words], check=check)

    def pyb_image(self, command: str, *words: str, check: bool = True, timeout: float = 120.0) -> str:
        """`pyb image COMMAND` on this cluster."""
        named = ["--name", self.layout.name, "--data-dir", str(self.layout.data)]
        return self._run([*tools.PYTHON, "image", command, *named, *words], check=check, timeout=timeout)

    def pyb_node(self, command: str, *words: str) -> str:
        """`pyb node COMMAND` on this cluster."""
        named = ["--name", self.layout.name, "--data-dir", str(self.layout.data)]
        return self._run([*tools.PYTHON, "node", command, *named, *words], check=True)

    def kubectl(self, *words: str, stdin: str = "", check: bool = True, timeout: float = 120.0) -> str:
        """Debian's kubectl, with all rights."""
        return self._run([tools.kubectl(), *words], stdin=stdin, check=check, timeout=timeout)

    def _run(self, command: Sequence[str], *, stdin: str = "", check: bool, timeout: float = 120.0) -> str:
        done = subprocess.run(
            command, env=self.environment, input=stdin, check=False, capture_output=True, text=True, timeout=timeout
        )
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout if check else done.stdout + done.stderr

    def get(self, *words: str) -> Any:
        """`kubectl get ... -o json`."""
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        """`kubectl apply` of objects as JSON."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(listed))

    def client(self) -> Client:
        """A client of our own, with all rights; each event loop needs one of its own."""
        return Client(config.load(self.environment["KUBECONFIG"]), program="test")

    def init(self, node: str = "node-1") -> int:
        """The init process of a node that runs."""
        return tools.wait_until(lambda: inside.init_process(self.layout, node), f"{node} has an init process")

    def machine(self, node: str = "node-1") -> Machine:
        """What the node is made of."""
        return Machine.read(str(self.layout.node(node) / "machine.json"))

    def enter(self, argv: Sequence[str], node: str = "node-1") -> list[str]:
        """The command that runs `argv` in a node."""
        return ["nsenter", "-t", str(self.init(node)), "-m", "-u", "-i", "-n", "-p", "-C", "--", *argv]

    def inside(self, *argv: str, node: str = "node-1", check: bool = True) -> str:
        """Runs a command in a node and answers its output."""
        return self._run(self.enter(argv, node), check=check)

    def count(self, node: str = "node-1") -> leaks.Count:
        """What a node has of the kernel."""
        lib, run = self.layout.node(node) / "lib-runtime", Path(embedded.SOCKET).parent
        own = [lib / "sandboxes", lib / "containers", lib / "images/containers", run / "sandboxes", run / "exits"]
        folders = [*map(str, own)] if self.runtime == "embedded" else []
        return leaks.count(self.init(node), self.machine(node).cgroup, folders=folders)

    def at_rest(self, node: str = "node-1") -> leaks.Count:
        """The same, once everything runs that an earlier test may have killed: what is more later is left over."""
        programs = {"launcher"} if self.runtime == "embedded" else set()

        def complete() -> leaks.Count | None:
            found = self.count(node)
            up = all(self.find(name, node) for name in ("runtime", "kubelet"))
            return found if up and programs <= found.processes.keys() else None

        return tools.wait_until(complete, f"everything runs on {node}", 60.0)

    def find(self, name: str, node: str = "node-1") -> int | None:
        """The pid of a component of the control plane, a node's program, or (`node`) its init; None if it is down.

        `runtime` is the container runtime, whichever it is.
        """
        if name == "runtime":
            name = PROGRAMS[self.runtime]
        if name in COMPONENTS:
            process = self.layout.processes().get(name)
        else:
            init = inside.init_process(self.layout, node)
            if init is None or name == "node":
                return init
            process = inside.programs(init).get(name)
        return process.pid if process is not None and process.alive else None

    def kill(self, name: str, node: str = "node-1") -> None:
        """kill -9 of one of them; of `node` it is a power failure. One that is down is waited for."""
        # It may be waiting to be started again, up to 30 s if it has died often.
        pid = tools.wait_until(lambda: self.find(name, node), f"{name} runs", 60.0)
        os.kill(pid, signal.SIGKILL)
        tools.wait_until(lambda: not os.path.exists(f"/proc/{pid}") or _ended(pid), f"{name} is dead")
        if name in ("kubelet", "node"):
            self._killed[node] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def wait_ready(self, node: str = "node-1", timeout: float = 120.0) -> None:
        """Waits until the API server answers, the node is Ready, and a kubelet says so that lives."""

        def value(path: str, *words: str) -> str:
            return self.kubectl("get", *words, node, "-o", f"jsonpath={path}", check=False)

        def ready() -> bool:
            if value("{.status.conditions[?(@.type=='Ready')].status}", "node") != "True":
                return False
            # What a kubelet said before it was killed stays for a while; its lease is renewed by those who live.
            renewed = value("{.spec.renewTime}", "-n", "kube-node-lease", "lease")
            return node not in self._killed or (renewed[:2] == "20" and renewed > self._killed[node])

        tools.wait_until(ready, f"{node} is Ready", timeout, every=0.1)

    def log(self, name: str) -> str:
        """The end of a log, for messages."""
        path = self.layout.log(name)
        return path.read_text(errors="replace")[-4000:] if path.exists() else f"no {path}"


def _ended(pid: int) -> bool:
    """Whether nothing is left of a process but its number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


def settle(condition: Any, timeout: float = 120.0) -> Any:
    """Asks until the answer is empty, and answers the last one: what is still wrong after that time."""
    deadline = time.monotonic() + timeout
    while (wrong := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return wrong
