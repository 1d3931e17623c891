"""Starts the components of a cluster, starts them again when they die, and stops them together.

`pyb up` leaves exactly this process behind. It sleeps until a child exits, a restart is due or a signal comes: no
polling. Components of ours are forks of it, so that what it has imported (`warm.py`) is there for all of them, also
when one is started again. It knows nothing of clusters: a JSON file lists the components (name, argv, log, pid file),
and lines on a pipe tell `up` what happens while it still listens. SIGUSR1 makes it read the file again: components
that are new are started, those that are gone or `off` are stopped, the others run on.

Components that outlived a killed supervisor are adopted by the next one. They are not its children, so it watches them
by pidfd instead of SIGCHLD.

A component with `every` is a chore: started after so many seconds and again so long after it ended. One that ends with
the exit code CHANGED has changed what others read when they start; those it `refreshes` are started again.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time

from pybernetes.cluster import forking, pidfile
from pybernetes.trace import VARIABLE

# A crash is usually a one-off: the first restart is quick, a component that keeps dying costs next to nothing.
FIRST_DELAY = 0.2
LONGEST_DELAY = 30.0
# A component that lived this long was healthy, and its next crash counts as the first one.
HEALTHY_AFTER = 60.0
# Between TERM and KILL. Upstream's API server drains for 60 s; ours has nothing that slow on one machine.
STOP_GRACE = 15.0
LOG_LIMIT = 16 * 1024 * 1024
LOOK_AT_LOGS = 10.0  # seconds between looks at the size of logs
CHANGED = 10  # exit code of a chore


class Child:
    """One component. Invariant: `pid` is 0 exactly when no process of it is left to be waited for."""

    __slots__ = (
        *("adopted", "argv", "delay", "due", "every", "gone", "kill_at", "listeners", "log", "name", "off"),
        *("pid", "pid_file", "refreshes", "restarts", "started"),
    )

    def __init__(self, spec: dict[str, object]) -> None:
        argv = spec["argv"]
        assert isinstance(argv, list)
        self.name = str(spec["name"])
        self.argv = [str(word) for word in argv]
        self.log = str(spec["log"])
        self.pid_file = str(spec["pidFile"])
        self.listeners: tuple[int, ...] = ()
        """Descriptors that its processes get: where they accept connections."""
        self.pid = 0
        self.adopted = -1
        """The pidfd of a process that another supervisor has started; -1 for our own child."""
        self.off = bool(spec.get("off", False))
        self.gone = False
        """Removed from the components file: it is not started again."""
        self.kill_at: float | None = None
        """When SIGKILL follows the SIGTERM of `stop`."""
        self.restarts = 0
        self.started = 0.0
        self.delay = FIRST_DELAY
        every, refreshes = spec.get("every", 0.0), spec.get("refreshes", [])
        assert isinstance(every, (int, float))
        assert isinstance(refreshes, list)
        self.every = float(every)
        self.refreshes = [str(name) for name in refreshes]
        self.due: float | None = None if self.off else time.monotonic() + self.every if every else 0.0

    def adopt(self) -> bool:
        """Takes over the process that the pid file names, if it runs; returns whether it does."""
        process = pidfile.read(self.pid_file)
        if process is None or not process.alive:
            return False
        descriptor = os.pidfd_open(process.pid)
        if not process.alive:  # it ended, and the descriptor may be another process's
            os.close(descriptor)
            return False
        self.pid, self.restarts, self.adopted = process.pid, process.restarts, descriptor
        self.started = time.monotonic()
        self.due = None
        return True

    def start(self) -> None:
        rotate(self.log)
        self.started = time.monotonic()
        self.due = None
        self.pid = forking.start(self.argv, self.log, self.listeners)
        pidfile.write(self.pid_file, self.pid, self.restarts)

    def exited(self) -> None:
        """Plans the next start; the delay doubles while the component keeps dying young."""
        self.pid = 0
        self.kill_at = None
        if self.adopted >= 0:
            os.close(self.adopted)
            self.adopted = -1
        pidfile.remove(self.pid_file)
        now = time.monotonic()
        if self.off or self.gone:
            self.due = None
            return
        if self.every:
            self.due = now + self.every
            return
        if now - self.started >= HEALTHY_AFTER:
            self.delay = FIRST_DELAY
        self.due = now + self.delay
        self.delay = min(self.delay * 2, LONGEST_DELAY)
        self.restarts += 1

    def terminate(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):  # an adopted one may have ended: nothing holds its pid
                os.kill(self.pid, signal.SIGTERM)

    def stop(self) -> None:
        """Ends the process, by SIGKILL if it does not heed SIGTERM; it is not started again."""
        self.due = None
        if self.pid and self.kill_at is None:
            self.kill_at = time.monotonic() + STOP_GRACE
            self.terminate()

    def kill(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


class Supervisor:
    def __init__(self, children: list[Child], notify: int, components_file: str = "") -> None:
        self.children = children
        self.notify = notify
        self.components_file = components_file
        self.stopping = False
        self.changed = False
        self.kill_at: float | None = None
        # Signals wake select() through this pipe; the handlers themselves do nothing but set the flag.
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if components_file:
            signal.signal(signal.SIGUSR1, self._change)

    def run(self) -> None:
        """Keeps the components running until SIGTERM; returns when all of them are gone."""
        while True:
            self._reap()
            if self.stopping:
                if not any(child.pid for child in self.children):
                    return
                self._end()
            else:
                if self.changed:
                    self.changed = False
                    self._read_again()
                self.children[:] = [child for child in self.children if child.pid or not child.gone]
                self._kill_overdue()
                self._start_due()
                for child in self.children:
                    if child.pid:
                        shorten(child.log)
            self._sleep()

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _change(self, *_: object) -> None:
        self.changed = True

    def _read_again(self) -> None:
        """Follows the components file; one that cannot be read changes nothing."""
        try:
            with open(self.components_file) as file:
                wanted = {child.name: child for child in map(Child, json.load(file))}
        except (OSError, ValueError, KeyError, AssertionError) as error:
            print(time.strftime("%Y-%m-%dT%H:%M:%S"), f"cannot read {self.components_file}: {error}", flush=True)
            return
        for child in self.children:
            new = wanted.pop(child.name, None)
            child.gone = new is None
            if new is not None:
                child.argv, child.log = new.argv, new.log
                if child.off and not new.off and not child.pid:
                    child.due, child.delay = 0.0, FIRST_DELAY
                child.off = new.off
            if child.gone or child.off:
                child.stop()
        self.children += wanted.values()

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for child in self.children:
            if child.kill_at is not None and child.kill_at <= now:
                child.kill_at = now + STOP_GRACE
                child.kill()

    def _reap(self) -> None:
        for child in self.children:
            if child.adopted >= 0 and select.select([child.adopted], [], [], 0)[0]:
                child.exited()
                self.report("exited", child.name, "which was started by an earlier supervisor")
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self.children:
                if child.pid == pid:
                    child.exited()
                    self.report("exited", child.name, describe_exit(status))
                    if child.every and os.waitstatus_to_exitcode(status) == CHANGED:
                        self._refresh(child.refreshes)

    def _refresh(self, names: list[str]) -> None:
        for child in self.children:
            if child.name in names:
                child.terminate()

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in self.children:
            if child.due is not None and child.due <= now:
                try:
                    child.start()
                except OSError as error:
                    child.exited()
                    self.report("exited", child.name, f"could not be started: {error}")
                else:
                    self.report("started", child.name, str(child.pid))

    def _end(self) -> None:
        now = time.monotonic()
        if self.kill_at is None:
            self.kill_at = now + STOP_GRACE
            for child in reversed(self.children):
                child.terminate()
        elif now >= self.kill_at:
            self.kill_at = now + STOP_GRACE
            for child in self.children:
                child.kill()

    def _sleep(self) -> None:
        if self.stopping:
            wakes = [] if self.kill_at is None else [self.kill_at]
        else:
            wakes = [child.due for child in self.children if child.due is not None]
            wakes += [child.kill_at for child in self.children if child.kill_at is not None]
            wakes.append(time.monotonic() + LOOK_AT_LOGS)
        timeout = max(0.0, min(wakes) - time.monotonic()) if wakes else None
        adopted = [child.adopted for child in self.children if child.adopted >= 0]
        select.select([self.wake, *adopted], [], [], timeout)
        try:
            os.read(self.wake, 4096)
        except BlockingIOError:
            pass

    def report(self, event: str, name: str, detail: str) -> None:
        print(time.strftime("%Y-%m-%dT%H:%M:%S"), name, event, detail, flush=True)
        if self.notify >= 0:
            try:
                os.write(self.notify, f"{event}\t{name}\t{detail}\n".encode())
            except OSError:  # `up` has seen enough and is gone.
                os.close(self.notify)
                self.notify = -1


def describe_exit(status: int) -> str:
    """A wait status in words: `exit code 1` or `signal SIGKILL`."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def rotate(log: str) -> None:
    """Keeps one older log file, so that a component that dies all night cannot fill the disk."""
    try:
        if os.stat(log).st_size > LOG_LIMIT:
            os.replace(log, log + ".1")
    except FileNotFoundError:
        pass


def shorten(log: str) -> None:
    """The same for a component that runs: its file is copied and emptied, because it holds it open (for appending).

    What it writes between the copy's end and the emptying is lost; the copy goes on until it has caught up.
    """
    try:
        if os.stat(log).st_size <= LOG_LIMIT:
            return
        older = log + ".new"
        with open(log, "rb") as source, open(os.open(older, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            while data := source.read(1 << 20):
                out.write(data)
            os.truncate(log, 0)
        os.replace(older, log + ".1")
    except OSError as error:  # the disk is full, perhaps: the log is worth less than what it would cost
        print(time.strftime("%Y-%m-%dT%H:%M:%S"), f"cannot rotate {log}: {error}", flush=True)


def main(argv: list[str]) -> int:
    """`pyb supervise COMPONENTS_FILE PID_FILE NOTIFY_FD` (internal)."""
    return run(argv[0], argv[1], int(argv[2]))


def run(
    components_file: str, own_pid_file: str, notify: int, listeners: dict[str, tuple[int, ...]] | None = None
) -> int:
    """Keeps the components running until SIGTERM; `listeners` are descriptors for some of them, by name."""
    if notify >= 0:
        os.set_inheritable(notify, False)
    with open(components_file) as file:
        specs = json.load(file)
    if any(word.startswith("--trace-dir=") for spec in specs for word in spec["argv"]):
        os.environ[VARIABLE] = "1"  # the API server keeps spans, so the others record theirs
    children = [Child(spec) for spec in specs]
    for child in children:
        child.listeners = (listeners or {}).get(child.name, ())
    supervisor = Supervisor(children, notify, components_file)
    for child in children:
        if child.adopt():
            supervisor.report("adopted", child.name, str(child.pid))
    try:
        supervisor.run()
    finally:
        pidfile.remove(own_pid_file)
    sys.stdout.flush()
    return 0
