"""A node without any namespace: its programs and its pods are plain processes, found by a mark in their environment.

Killing its process is no power failure: pods go on, and the next one takes them up with the programs it starts.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pybernetes.cluster import pidfile, supervisor
from pybernetes.cluster.node.machine import Machine
from pybernetes.cluster.node.programs import PATH

MARK = "PYBERNETES_NODE"
"""`cri.embedded.plain.NODE`: in the environment of everything on a node, its folder."""


def run(machine: Machine) -> int:
    """Keeps the programs of a node running until SIGTERM, then ends everything on it."""
    os.makedirs(machine.run, mode=0o700, exist_ok=True)
    os.environ |= {"PATH": PATH, MARK: machine.folder}
    children = []
    for program in machine.programs:
        spec = {"name": program.name, "argv": program.argv, "log": program.log}
        child = _Program({**spec, "pidFile": f"{machine.run}/{program.name}.pid"})
        children.append(child)
    _end_programs(machine)  # of a node's process that was killed
    supervisor.Supervisor([*children], notify=-1).run()
    end(machine)
    return 0


class _Program(supervisor.Child):
    def exited(self) -> None:
        super().exited()
        Path(self.pid_file).with_suffix(".restarts").write_text(str(self.restarts))


def _end_programs(machine: Machine) -> None:
    """By their pid files: what is forked and never becomes another program shows the environment of its parent."""
    for program in machine.programs:
        process = pidfile.read(f"{machine.run}/{program.name}.pid")
        if process is not None and process.alive:
            os.kill(process.pid, signal.SIGKILL)


def end(machine: Machine, patience: float = 10.0) -> list[str]:
    """Kills everything on a node but this process; answers what is still there afterwards."""
    _end_programs(machine)
    deadline = time.monotonic() + patience
    while found := _marked(f"{MARK}={machine.folder}".encode()):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            return [f"process {pid}" for pid in found]
        time.sleep(0.005)
    return []


def _marked(mark: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:  # gone, or another user's
                continue
    return found
