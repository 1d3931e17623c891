"""The process that every process of a pod is forked from. It is made when the launcher starts, before any pod is.

Others of its pod see a new process a moment before its program runs, and a container with SYS_PTRACE can read its
memory then. Forked from the launcher itself, it would show what that has read and kept of other pods: environments,
commands, output. The seed is given nothing but descriptors, and a new process reads by itself what it is to become.
What is forked becomes a child of the launcher. One thread, next to no imports.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
from collections.abc import Sequence
from typing import Any, NoReturn

from . import inside, syscalls
from .inside import LINE, TARGET

SMALL = 64
"""Bytes of a request or an answer."""
LARGEST = 1 << 18
"""The size of an order for a new process: a request of the runtime, which has at most 64 KiB, in JSON again."""
LONGEST_ERROR = 4096
"""The length of an error's text: it may be about a command, which has no limit."""
STREAMS = 3
WITHIN = 20.0
"""Seconds for a fork."""
OWN_PIDS = "own"


class Seed:
    """The launcher's side."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(WITHIN)
        self.pid = os.fork()
        if self.pid == 0:
            _serve(theirs)
        theirs.close()

    def fork(self, pids: str, descriptors: Sequence[int]) -> int:
        """A new child of this process, with `descriptors` from 0 on; in a PID namespace of its own if `pids` is `own`.

        Raises OSError if there can be none, BrokenPipeError if the seed was gone before, and another ConnectionError
        or TimeoutError if it went meanwhile: then there may be a process, of which nothing is known.
        """
        try:
            socket.send_fds(self._line, [pids.encode()], list(descriptors))
        except ConnectionError as error:
            raise BrokenPipeError(*error.args) from None
        try:
            answer = self._line.recv(SMALL)
        except ConnectionError:
            answer = b""
        if not answer:
            raise ConnectionResetError("the process that all others are forked from was killed")
        if (pid := int(answer)) < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    def close(self) -> None:
        """The seed ends."""
        self._line.close()


def _serve(line: socket.socket) -> NoReturn:
    """Forks on request, until the connection closes."""
    try:
        syscalls.end_with_parent()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(null, stream)
        node = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        while True:
            request, descriptors, _, _ = socket.recv_fds(line, SMALL, STREAMS * 2)
            if not request:
                break
            answer = _fork(request.decode() == OWN_PIDS, node, descriptors)
            for each in descriptors:
                os.close(each)
            line.send(str(answer).encode())
    finally:
        os._exit(0)


def _fork(own_pids: bool, node: int, descriptors: list[int]) -> int:
    """The number of a new process, or of an error, which is below 0."""
    try:
        if own_pids:
            syscalls.unshare(syscalls.NEWPID)
        try:
            pid = syscalls.fork_sibling()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            _become(descriptors)
        if own_pids:
            syscalls.setns(node, syscalls.NEWPID)
        return pid
    except OSError as error:
        return -(error.errno or 1)


def _become(descriptors: list[int]) -> NoReturn:
    """In the new process: it ends here, as a program or with an error reported."""
    line: socket.socket | None = None
    try:
        os.setsid()
        syscalls.end_with_parent()
        syscalls.new_session_keyring()
        # Copies above all others first: none of them may be in the way of another's new number.
        wanted = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 16) for each in descriptors]
        for number, each in enumerate(wanted):
            os.dup2(each, number, inheritable=number < LINE)
        os.closerange(len(wanted), 1 << 30)
        line = socket.socket(fileno=LINE)
        order = json.loads(line.recv(LARGEST))
        with open(order["spec"]) as file:
            spec = {**json.load(file), **order["changes"]}

        def report(message: dict[str, Any], descriptors: list[int]) -> None:
            socket.send_fds(line, [json.dumps(message).encode()], descriptors)

        way: Any = inside
        if spec.get("plain"):
            from . import plain

            way = plain
        if order["as"] == "sandbox":
            way.sandbox(spec, report)
        become = way.container if order["as"] == "container" else way.command
        become(spec, TARGET, report)
    except BaseException as error:
        if line is not None:
            with contextlib.suppress(BaseException):
                line.send(json.dumps({"error": inside.error_text(error)[:LONGEST_ERROR]}).encode())
    finally:
        os._exit(128)
