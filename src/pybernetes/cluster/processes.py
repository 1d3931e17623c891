"""Starts the supervisor of a cluster, and ends processes for good, waiting on the kernel instead of on the clock."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pybernetes.cluster import files, pidfile, supervisor
from pybernetes.cluster.forking import PYTHON
from pybernetes.cluster.layout import SUPERVISOR, Layout

if TYPE_CHECKING:
    from pybernetes.cluster.components import Chore, Component

# The supervisor needs STOP_GRACE for its children; only then is it itself overdue.
SUPERVISOR_GRACE = supervisor.STOP_GRACE + 2.0
KILL_WAIT = 5.0


class Events:
    """The supervisor's reports while it starts: lines `event<TAB>component<TAB>detail`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self.closed = False

    def read(self, timeout: float) -> Iterator[tuple[str, str, str]]:
        """The events that come within the time; `closed` is set when the supervisor is gone."""
        readable, _, _ = select.select([self._descriptor], [], [], timeout)
        if readable:
            chunk = os.read(self._descriptor, 65536)
            self.closed = not chunk
            *lines, self._buffer = (self._buffer + chunk).split(b"\n")
            for line in lines:
                event, name, detail = line.decode().split("\t", 2)
                yield event, name, detail

    def close(self) -> None:
        os.close(self._descriptor)


class Supervisor:
    """The supervisor of a cluster, in a session of its own: first it warms up (`warm.py`), then it reads what to run.

    If it reads nothing, it ends with the process that started it.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        supervisor.rotate(str(layout.log(SUPERVISOR)))
        environment = {name: value for name, value in os.environ.items() if name != "PYB_COMMAND"}
        reading, self._notify = os.pipe()
        self._events = Events(reading)
        try:
            with open(layout.log(SUPERVISOR), "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
                self._process = subprocess.Popen(
                    [*PYTHON, "warm"],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    cwd=layout.data,
                    env=environment,
                    pass_fds=[self._notify],
                    start_new_session=True,
                )
            # Written here and not by the supervisor: a `down` after an interrupted `up` finds it.
            pidfile.write(str(layout.pid_file(SUPERVISOR)), self._process.pid)
        finally:
            os.close(self._notify)

    def run(self, components: Sequence[Component], chores: Sequence[Chore] = (), command: str = "supervise") -> Events:
        """Lets it start the components; answers what it tells of them."""
        layout = self._layout
        specs = [spec(layout, component) for component in components]
        specs += [{**spec(layout, chore), "every": chore.every, "refreshes": list(chore.refreshes)} for chore in chores]
        write_specs(layout, specs)
        return self.adopt(command)

    def adopt(self, command: str = "supervise") -> Events:
        """Lets it start the components that the components file lists, and take over those that run."""
        layout = self._layout
        words = [command, str(layout.components_file), str(layout.pid_file(SUPERVISOR)), str(self._notify)]
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as line:  # it ended: the events say so
            line.write(json.dumps(words).encode())
        return self._events


def change(layout: Layout, specs: Sequence[dict[str, object]]) -> None:
    """Makes the supervisor of a running cluster follow another list of components."""
    write_specs(layout, specs)
    process = pidfile.read(str(layout.pid_file(SUPERVISOR)))
    if process is not None and process.alive:
        os.kill(process.pid, signal.SIGUSR1)


def start_later(layout: Layout) -> None:
    """Starts the components that wait until all others are ready."""
    specs = layout.specs()
    if any(each.get("off") and not each.get("every") for each in specs):
        change(layout, [{**each, "off": False} for each in specs])


def write_specs(layout: Layout, specs: Sequence[dict[str, object]]) -> None:
    """Writes the components file."""
    files.write_private(layout.components_file, json.dumps(specs, indent=2).encode())


def spec(layout: Layout, part: Component | Chore) -> dict[str, object]:
    """A component's entry in the components file."""
    return {
        "name": part.name,
        "argv": list(part.argv),
        "log": str(layout.log(part.name)),
        "pidFile": str(layout.pid_file(part.name)),
        **({"offers": [list(each) for each in offers]} if (offers := getattr(part, "offers", ())) else {}),
        **({"off": True} if getattr(part, "later", False) else {}),
        **({"listen": list(listen)} if (listen := getattr(part, "listen", None)) else {}),
    }


def stop_all(layout: Layout) -> list[str]:
    """Ends every process of the cluster, removes what is left in its run folder, answers what was stopped."""
    stopped = []
    # The supervisor first: it ends its components, and would otherwise start them again. A component that outlived a
    # killed supervisor is ended by itself.
    for name in layout.processes():
        process = pidfile.read(str(layout.pid_file(name)))
        if process is not None and process.alive:
            stop(process, SUPERVISOR_GRACE if name == SUPERVISOR else supervisor.STOP_GRACE)
            stopped.append(name)
    # A component started in the same moment as its supervisor was killed is found in a second look.
    for process in layout.processes().values():
        stop(process, supervisor.STOP_GRACE)
    if layout.run.is_dir():
        for path in layout.run.iterdir():
            path.unlink()
        layout.run.rmdir()
    return stopped


def stop(process: pidfile.Process, grace: float) -> None:
    """TERM, and KILL after the grace; returns when the process is gone."""
    for number, wait in ((signal.SIGTERM, grace), (signal.SIGKILL, KILL_WAIT)):
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return
        except OSError:
            descriptor = -1  # An old kernel: signal by number, and look often.
        try:
            # Checked after the descriptor is held: from here on the pid cannot be reused.
            if not process.alive:
                return
            _signal(descriptor, process, number)
            if _gone(descriptor, process, wait):
                return
        finally:
            if descriptor >= 0:
                os.close(descriptor)


def _signal(descriptor: int, process: pidfile.Process, number: int) -> None:
    try:
        if descriptor >= 0:
            signal.pidfd_send_signal(descriptor, number)
        else:
            os.kill(process.pid, number)
    except ProcessLookupError:
        pass


def _gone(descriptor: int, process: pidfile.Process, wait: float) -> bool:
    if descriptor >= 0:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(wait * 1000)) or not process.alive
    deadline = time.monotonic() + wait
    while process.alive and time.monotonic() < deadline:
        time.sleep(0.01)
    return not process.alive
