"""The parent of all processes of pods: has them forked, pumps their output into logs, writes down how they ended.

It outlives the runtime, which talks to it over a SOCK_SEQPACKET socket, one JSON document a packet; what is long (how a
container looks) is in files. Started with next to no modules, because every process of a pod is forked from what it
was then (`seed.py`). One thread, one epoll: nothing is polled. It ends by itself when it has neither a runtime nor a
process.

A runtime of a later version finds the launcher of an earlier one, with all its pods: `version` answers PROTOCOL, which
grows when requests or specs get another meaning. `version`, `list`, `signal` and the message about an end stay as they
are in all versions.

Requests: `version`, `start` (a sandbox or container by the file of its spec), `exec` (a command, with descriptors of
its streams), `signal`, `reopen`, `attach`, `close_stdin`, `list`. Answers carry the request's `id`; the end of a
process is sent unasked, after it was written to `exits/NAME`: a runtime that was away reads it there.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import signal
import socket
import stat
import sys
import time
from collections.abc import Sequence
from typing import Any

from . import syscalls
from .attached import Attached
from .logs import LogFile, Pump
from .seed import LONGEST_ERROR, OWN_PIDS, STREAMS, Seed
from .watching import Watching

PROTOCOL = 1
"""Of requests, answers and specs."""
READY = b"ready"
CHUNK = 65536
OOM_SCORE = "-999"
"""When the node is out of memory: everything else first, because all pods end with the launcher."""
UNWANTED = 10.0
"""Seconds after which a launcher without a connection ends: the runtime that started it was killed meanwhile."""
NULL_DEVICE = os.makedev(1, 3)
LISTED = 500
"""Processes in one message: a name has up to 64 letters."""
CREDENTIALS, NUMBER = 12, 4
"""Bytes of what the kernel tells of a sender (pid, uid, gid), and of one such number."""
FULL_LINE = 1000
"""Messages after which a socket's buffer may be full: each takes 768 bytes of 208 KiB at least."""
FULL_PIPE = 32
"""Reads after which a pipe cannot hold what was written before: it has at most 1 MiB; children may go on."""


class Process:
    """A process of a pod; its name is the container's id, or that of the command's request."""

    def __init__(self, name: str, pid: int, request: int) -> None:
        self.name = name
        self.pid = pid
        self.request: int | None = request
        """The caller whose reply is due as soon as the program runs, or could not."""
        self.line: socket.socket | None = None
        """Where it tells of itself until then; None as soon as its program runs."""
        self.goes_on = False
        """It goes on as another process, in a PID namespace where others may take its line: see `_tell`."""
        self.takes_stdin = False
        self.own_pids = False
        self.log: LogFile | None = None
        self.streams: set[int] = set()
        self.stdin = -1
        self.terminal = -1
        self.copies: dict[str, list[Attached]] = {"stdout": [], "stderr": []}
        """Attached clients that get its output, by stream."""
        self.sources: dict[str, int] = {}
        """Where that output comes from."""
        self.facts: dict[str, Any] = {}


class Launcher:
    """See the module."""

    def __init__(self, state: str) -> None:
        self._seed = Seed()
        """First of all: it must know nothing, and have nothing open."""
        self._state = state
        self._exits = f"{state}/exits"
        os.makedirs(self._exits, 0o700, exist_ok=True)
        self._processes: dict[str, Process] = {}
        self._by_pid: dict[int, Process] = {}
        self._unclaimed: dict[int, int] = {}
        """Status of children that ended before their process reported its PID."""
        self._spent: set[int] = set()
        """Processes that became others, and seeds that were replaced, which have not been reaped."""
        self._late: list[tuple[Process, int]] = []
        """Processes that had ended when they were reported, with their status."""
        self._watching = Watching(self._failed)
        # As the parent of all we have some files open for each of them; programs have the limit that the seed has.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._runtime: socket.socket | None = None
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._devices = syscalls.private_mount("tmpfs")
        except OSError:  # where we may mount nothing the node's device is not ours to change
            self._devices = -1
        # One launcher for a state folder: a runtime that was killed while one started would start another.
        self._lock = os.open(f"{state}/launcher.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in os.listdir(self._exits):
            if name.startswith("."):  # an end that was just being written down when an earlier launcher was killed
                os.unlink(f"{self._exits}/{name}")
        path = f"{state}/launcher.sock"
        if os.path.exists(path):
            os.unlink(path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        os.chmod(path, 0o600)
        self._listener.listen(4)
        self._watching.add(self._listener.fileno(), self._accept)
        read, write = socket.socketpair()
        read.setblocking(False)
        write.setblocking(False)
        self._wakeups = (read, write)
        signal.set_wakeup_fd(write.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._watching.add(read.fileno(), self._reap)

    def run(self) -> None:
        """Runs until it is no longer needed."""
        connected = False
        while self._runtime is not None or self._processes or not connected:
            connected = connected or self._runtime is not None
            if not self._watching.wait(None if connected else UNWANTED):
                break
        os.unlink(f"{self._state}/launcher.sock")

    def _failed(self, descriptor: int) -> None:
        """An error ends what it is about, but not the launcher: all pods would end with it."""
        if self._runtime is not None and descriptor == self._runtime.fileno():
            self._hang_up()
        elif descriptor not in (self._listener.fileno(), self._wakeups[0].fileno()):
            self._watching.remove(descriptor)

    # The runtime

    def _accept(self) -> None:
        """The newest runtime is the one: an older one is dead, or about to be."""
        connection, _ = self._listener.accept()
        connection.settimeout(5.0)
        self._hang_up()
        self._runtime = connection
        self._watching.add(connection.fileno(), self._receive)

    def _hang_up(self) -> None:
        if self._runtime is not None:
            self._watching.remove(self._runtime.fileno())
            self._runtime.close()
            self._runtime = None

    def _receive(self) -> None:
        assert self._runtime is not None
        try:
            data, descriptors, _, _ = socket.recv_fds(self._runtime, CHUNK, STREAMS)
        except OSError:
            data, descriptors = b"", []
        if not data:
            self._hang_up()
            return
        request = json.loads(data)
        try:
            answer = getattr(self, f"_do_{request['do']}")(request, descriptors)
        except Exception as error:
            answer = {"error": str(error)}
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if answer is not None:
            self._send({"id": request["id"], **answer})

    def _send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        if self._runtime is not None:
            try:
                socket.send_fds(self._runtime, [json.dumps(message).encode()], descriptors)
            except OSError:
                self._hang_up()

    # Requests

    def _do_version(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        return {"version": PROTOCOL}

    def _do_list(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        """As many as fit into a packet, in the order of their names, from the one after a name on."""
        names = sorted(each for each in self._processes if each > request["after"])[:LISTED]
        return {"processes": {each: self._processes[each].pid for each in names}}

    def _do_start(self, request: dict[str, Any], _: list[int]) -> dict[str, Any] | None:
        with open(request["spec"]) as file:
            spec = json.load(file)
        name = spec["id"]
        if name in self._processes:
            return {"error": f"{name} runs already"}
        if spec["kind"] == "sandbox":
            order = {"spec": request["spec"], "changes": {}, "as": "sandbox"}
            self._fork(request["id"], spec, [self._null] * STREAMS, order, None)
            return None
        holder = self._processes.get(spec["sandbox"])
        if holder is None or holder.line is not None:
            return {"error": f"sandbox {spec['sandbox']} does not run"}
        log = LogFile(spec["log_path"])
        pipes = [] if spec["tty"] else [os.pipe(), os.pipe()]
        streams = [self._null] * 3 if spec["tty"] else [self._null, pipes[0][1], pipes[1][1]]
        feeding = os.pipe() if spec["stdin"] and not spec["tty"] else None
        if feeding:
            streams[0] = feeding[0]
        try:
            order = {"spec": request["spec"], "changes": {}, "as": "container"}
            process = self._fork(request["id"], spec, streams, order, holder)
        except BaseException:
            log.close()
            for descriptor in (each for pair in [*pipes, feeding or ()] for each in pair):
                os.close(descriptor)
            raise
        process.log = log
        process.takes_stdin = bool(spec["stdin"])
        for stream, (read, write) in zip(("stdout", "stderr"), pipes, strict=False):
            os.close(write)
            self._pump(process, read, stream)
        if feeding:
            os.close(feeding[0])
            process.stdin = feeding[1]
        return None

    def _do_exec(self, request: dict[str, Any], streams: list[int]) -> dict[str, Any] | None:
        with open(request["spec"]) as file:
            spec = {**json.load(file), **request["changes"]}
        target = self._processes.get(spec["id"])
        if target is None or target.line is not None:  # until its program runs, its namespaces are the node's
            return {"error": f"container {spec['id']} does not run"}
        changes = {**request["changes"], "id": request["name"]}
        if not spec.get("plain"):
            changes["pid"] = ["join", target.name]
        order = {"spec": request["spec"], "changes": changes, "as": "command"}
        given = (streams + [self._null] * STREAMS)[:STREAMS]
        self._fork(request["id"], {**spec, **changes}, given, order, target)
        return None

    def _do_signal(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        process = self._processes.get(request["name"])
        if process is not None:
            # Not reaped yet, so the number is still its own.
            os.kill(process.pid, request["signal"])
        return {"sent": process is not None}

    def _do_attach(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any] | None:
        process = self._processes.get(request["name"])
        if process is None or process.log is None:
            return {"error": "container is not running"}
        for stream, descriptor in zip(request["copies"], descriptors, strict=True):
            self._attach(process, stream, os.dup(descriptor))
        stdin = process.terminal if process.terminal >= 0 and process.takes_stdin else process.stdin
        found = [stdin, process.terminal]
        there = [each for each in found if each >= 0]
        self._send({"id": request["id"], "there": [each >= 0 for each in found]}, there)
        return None

    def _attach(self, process: Process, stream: str, descriptor: int) -> None:
        def changed() -> None:
            process.copies[stream] = [each for each in process.copies[stream] if not each.gone]
            if not any(each.full for each in process.copies[stream]):
                self._watching.go_on(process.sources.get(stream, -1))

        process.copies[stream].append(Attached(descriptor, self._watching.add_for, self._watching.remove, changed))

    def _do_close_stdin(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        process = self._processes.get(request["name"])
        if process is not None and process.stdin >= 0:
            os.close(process.stdin)
            process.stdin = -1
        return {}

    def _do_reopen(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        process = self._processes.get(request["name"])
        if process is None or process.log is None:
            return {"error": "container is not running"}
        process.log.reopen()
        return {}

    # Processes

    def _fork(
        self, request: int, spec: dict[str, Any], streams: list[int], order: dict[str, Any], target: Process | None
    ) -> Process:
        """A new process; `order` says what it is to become: the file of its spec, changes to that, `as` what."""
        kind, joined = spec["pid"]
        seen = self._processes.get(joined)
        if kind == "join" and seen is None:
            raise ProcessLookupError(f"container {joined} does not run")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # each message names its sender
        opened: list[int] = []
        try:
            if target:
                # By a descriptor, because numbers of processes mean something else in another PID namespace.
                opened.append(os.pidfd_open(target.pid))
            handed = [theirs.fileno(), opened[0] if target else self._null]
            if kind != OWN_PIDS and seen is not None:
                # It joins by itself, as its last step: until then the pod's other processes must not see it.
                opened.append(_pid_namespace(seen))
                handed.append(opened[-1])
            own = [self._own_null() if each == self._null or _is_null(each) else each for each in streams]
            opened += [each for each in own if each not in streams]
            ours.send(json.dumps(order).encode())
            pid = self._forked(kind, [*own, *handed])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            for descriptor in opened:
                os.close(descriptor)
        process = Process(spec["id"], pid, request)
        process.own_pids = kind == OWN_PIDS
        self._processes[process.name] = self._by_pid[pid] = process
        process.line = ours
        self._watching.add(ours.fileno(), lambda: self._hear(process, ours))
        return process

    def _forked(self, pids: str, descriptors: list[int]) -> int:
        try:
            return self._seed.fork(pids, descriptors)
        except BrokenPipeError:
            self._replace_seed()
            return self._seed.fork(pids, descriptors)
        except (ConnectionError, TimeoutError):
            # What it has forked, if anything, reads its order, so that there cannot be another one with this line. It
            # ends at its first report, because the other end is closed: before its program runs.
            self._replace_seed()
            raise

    def _replace_seed(self) -> None:
        sys.stderr.write("the seed is gone: another one takes its place\n")
        self._seed.close()
        self._spent.add(self._seed.pid)
        self._seed = Seed()

    def _own_null(self) -> int:
        """A null device whose inode no other process has: root in a container could change the mode of the node's."""
        name = "null"
        if self._devices < 0:
            return os.dup(self._null)
        try:
            os.mknod(name, 0o666 | stat.S_IFCHR, NULL_DEVICE, dir_fd=self._devices)
        except PermissionError:  # not root's: who runs the node may not change the node's device either
            return os.dup(self._null)
        try:
            os.chmod(name, 0o666, dir_fd=self._devices)
            return os.open(name, os.O_RDWR | os.O_CLOEXEC, dir_fd=self._devices)
        finally:
            os.unlink(name, dir_fd=self._devices)

    def _hear(self, process: Process, line: socket.socket) -> bool:
        """A new process tells: who it is, its terminal, an error; the end of the line means that its program runs.

        Returns whether there may be more to hear.
        """
        try:
            data, descriptors, sender = _received(line)
        except BlockingIOError:
            return False  # a stale event: the descriptor's number was reused
        except OSError:
            data, descriptors, sender = b"", [], 0
        if data and self._tell(process, data, descriptors, sender):
            return True
        self._end_line(process, line)
        return False

    def _hear_out(self, process: Process) -> None:
        """Reads a process's messages up to its end, or until it goes on as another one."""
        pid = process.pid
        for _ in range(FULL_LINE):
            if process.pid != pid or process.line is None or not self._hear(process, process.line):
                break

    def _tell(self, process: Process, data: bytes, descriptors: list[int], sender: int) -> bool:
        """Takes what came over the line of a process; whether there may be more.

        Only the process that we forked is believed. The one that it goes on as is seen in the container's PID
        namespace: a container with SYS_PTRACE can copy its descriptors and speak for it, so that it may only say that
        its program could not be started. That may come before we know that the process goes on.
        """
        if sender != process.pid or process.goes_on:
            for descriptor in descriptors:
                os.close(descriptor)
            process.facts["error"] = _error_of(data)
            if process.goes_on and self._by_pid.get(process.pid) is process:
                os.kill(process.pid, signal.SIGKILL)  # if it was not the one that spoke, its program may run
            return not process.goes_on
        message = json.loads(data)
        if became := message.pop("became", 0):
            self._follow(process, became)
        process.facts |= message
        if message.get("terminal") and descriptors:
            process.terminal = descriptors[0]
            if process.log is not None:
                self._pump(process, descriptors[0], "stdout")
        return "error" not in message

    def _end_line(self, process: Process, line: socket.socket) -> None:
        """There is nothing more to hear of a new process: its program runs, or could not be started."""
        self._watching.remove(line.fileno())
        line.close()
        process.line = None
        if process.request is not None:
            # A command's terminal is the runtime's; a container's stays here, where its log is written.
            command = [process.terminal] if process.terminal >= 0 and process.log is None else []
            self._send({"id": process.request, "pid": process.pid, **process.facts}, command)
            process.request = None
            for descriptor in command:
                os.close(descriptor)
                process.terminal = -1

    def _follow(self, process: Process, pid: int) -> None:
        """The process goes on as another one, a child of ours as well, which may have ended already."""
        if self._by_pid.pop(process.pid, None) is not None:
            self._spent.add(process.pid)
        process.pid, process.goes_on = pid, True
        if pid in self._unclaimed:
            self._late.append((process, self._unclaimed.pop(pid)))
            self._wakeups[1].send(b"\0")
        else:
            self._by_pid[pid] = process

    def _pump(self, process: Process, descriptor: int, stream: str) -> None:
        assert process.log is not None
        os.set_blocking(descriptor, False)
        process.streams.add(descriptor)
        process.sources[stream] = descriptor
        pump = Pump(stream, process.log)

        def read() -> bool:
            """Whether there may be more."""
            try:
                data = os.read(descriptor, CHUNK)
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno != errno.EIO:  # a terminal without a reader on the other side
                    raise
                data = b""
            if data:
                pump.feed(data)
                for each in list(process.copies[stream]):
                    each.write(data)
                    if each.full:
                        self._watching.hold_up(descriptor)
                return True
            pump.end()
            for each in list(process.copies[stream]):
                each.finish()
            process.sources.pop(stream, None)
            if descriptor == process.terminal:
                process.terminal = -1
            self._watching.remove(descriptor)
            os.close(descriptor)
            process.streams.discard(descriptor)
            if not process.streams and process.name not in self._processes and process.log is not None:
                process.log.close()
            return False

        self._watching.add(descriptor, read)

    def _reap(self) -> None:
        try:
            while self._wakeups[0].recv(4096):
                pass
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            process = self._by_pid.pop(pid, None)
            if process is None:
                if pid == self._seed.pid:
                    continue
                if pid in self._spent:
                    self._spent.discard(pid)
                else:
                    self._unclaimed[pid] = status
                continue
            # Its messages from before its end are there: also that it goes on as another process.
            self._hear_out(process)
            if process.pid == pid:
                self._finish(process, status)
        while self._late:
            self._finish(*self._late.pop())

    def _finish(self, process: Process, status: int) -> None:
        try:
            self._drain(process)
        except Exception:
            sys.excepthook(*sys.exc_info())  # the exit is reported all the same, and others are
        self._ended(process, status)

    def _drain(self, process: Process) -> None:
        """Reads the remaining messages and output of a process that has ended."""
        # Its messages first: there may be a terminal, with everything that a short program has written.
        self._hear_out(process)
        if process.line is not None:  # another process has its other end, too
            self._end_line(process, process.line)
        # All output before the end belongs into the log before the end is reported.
        for descriptor in list(process.streams):
            read = self._watching.handler(descriptor)
            for _ in range(FULL_PIPE):
                if read is None or not read():
                    break
        for each in [*process.copies["stdout"], *process.copies["stderr"]]:
            each.finish()

    def _ended(self, process: Process, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
        del self._processes[process.name]
        if process.stdin >= 0:
            os.close(process.stdin)
        if not process.streams and process.log is not None:
            process.log.close()
        end = {"name": process.name, "code": code, "at": time.time_ns(), **process.facts}
        temporary = f"{self._exits}/.{process.name}"
        try:
            with open(temporary, "w") as file:
                json.dump(end, file)
            os.rename(temporary, f"{self._exits}/{process.name}")
        except OSError as error:  # a full disk: a runtime that is there hears of it all the same
            sys.stderr.write(f"the end of {process.name} is not written down: {error}\n")
        self._send({"exit": end})


def _received(line: socket.socket) -> tuple[bytes, list[int], int]:
    """A message, the descriptor that came with it, and the process that sent it, for which the kernel answers."""
    room = socket.CMSG_SPACE(CREDENTIALS) + socket.CMSG_SPACE(NUMBER)
    data, more, _, _ = line.recvmsg(CHUNK, room, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
    descriptors, sender = [], 0
    for _, kind, content in more:
        if kind == socket.SCM_CREDENTIALS:
            sender = int.from_bytes(content[:NUMBER], sys.byteorder)
        elif kind == socket.SCM_RIGHTS:
            descriptors.append(int.from_bytes(content[:NUMBER], sys.byteorder))
    return data, descriptors, sender


def _error_of(data: bytes) -> str:
    """Why a program could not be started, in the words of a process that is not believed in anything else."""
    try:
        message = json.loads(data)
        return str(message["error"])[:LONGEST_ERROR]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "the process that was about to run the program was disturbed"


def _is_null(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == NULL_DEVICE


def _pid_namespace(process: Process) -> int:
    try:
        return os.open(f"/proc/{process.pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # it has ended and was not reaped yet
        raise ProcessLookupError(f"container {process.name} does not run") from None


def main(state: str) -> None:
    """Serves a runtime whose state is in this folder, until it is no longer needed."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(OOM_SCORE)
    except OSError:
        pass  # needs SYS_RESOURCE
    if "PYBERNETES_NODE" in os.environ:
        from . import plain  # noqa: F401 - read now what will be needed: later the files may be of another version
    launcher = Launcher(state)
    os.write(1, READY)
    os.dup2(launcher._null, 1)
    launcher.run()


if __name__ == "__main__":
    main(sys.argv[1])
