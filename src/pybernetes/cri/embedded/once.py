"""Runs one command in the files of an image, with namespaces of its own, and waits for it: no pod, no launcher.

What `image build` does for RUN. The process is confined as a container's is (`inside.py`), but for limits: it is in the
caller's cgroup. A process in between, with next to no modules, is the parent of the command: it ends with the caller,
and the command and all that it started ends with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from . import inside, syscalls

HOSTNAME = "build"
LINE = 3
"""In the process in between and the command: the descriptor for errors."""
_START = "import sys; sys.path.insert(0, sys.argv[1]); from {module} import main; main()"


class NotStarted(Exception):
    """Why the command could not be run."""


def run(spec: Mapping[str, Any], output: Callable[[bytes], object]) -> int:
    """Runs what a spec (as `inside.container` takes it) describes; its exit code, 128 and more for signals.

    `output` gets what it writes. Raises NotStarted.
    """
    import subprocess

    package = os.path.abspath(__file__).rsplit("/", 4)[0]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            process = subprocess.Popen(
                # Neither site-packages nor the environment: it needs our own modules and a few of the library.
                [sys.executable, "-S", "-E", "-c", _START.format(module=__name__), package],
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "PYTHONUTF8": "1"},
            )
        assert process.stdout is not None
        try:
            with memory_file(json.dumps(dict(spec)).encode()) as file:
                socket.send_fds(ours, [b"spec"], [file])
            while data := os.read(process.stdout.fileno(), 1 << 16):
                output(data)
            code = process.wait()
        finally:
            process.stdout.close()
            if process.poll() is None:
                process.terminate()
                process.wait()
        told = _last(ours)
    if told:
        raise NotStarted(told)
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def memory_file(content: bytes) -> Iterator[int]:
    """A file that is nowhere, for what is too long for a packet."""
    file = os.memfd_create("spec", os.MFD_CLOEXEC)
    try:
        os.write(file, content)
        os.lseek(file, 0, os.SEEK_SET)
        yield file
    finally:
        os.close(file)


def _last(line: socket.socket) -> str:
    told = ""
    with contextlib.suppress(OSError):
        while data := line.recv(65536):
            told = json.loads(data).get("error") or told
    return told


def main() -> None:
    """The process in between: its stdin is the line."""
    os.dup2(0, LINE)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    line = socket.socket(fileno=LINE)
    _, files, _, _ = socket.recv_fds(line, 16, 1)
    with open(files[0]) as file:
        spec = json.load(file)
    # The caller's end is this one's; with the first process of a PID namespace all others in it end.
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    syscalls.unshare(syscalls.NEWPID | syscalls.NEWUTS | syscalls.NEWIPC | int(spec["unshare"]))
    syscalls.sethostname(HOSTNAME)
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        if not os.read(ready, 1):
            os._exit(128)  # the parent has gone already
        _command(spec, line)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    os.write(go, b"g")
    for stream in (1, 2):
        os.dup2(null, stream)
    line.close()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(128 - code if code < 0 else code)


def _command(spec: Mapping[str, Any], line: socket.socket) -> NoReturn:
    def report(message: dict[str, Any], descriptors: list[int]) -> None:
        socket.send_fds(line, [json.dumps(message).encode()], descriptors)

    try:
        os.setsid()
        os.set_inheritable(LINE, False)
        os.closerange(LINE + 1, 1 << 20)
        if spec["unshare"] & syscalls.NEWNET:
            inside.up_loopback()
        inside.container(spec, -1, report)
    except BaseException as error:
        with contextlib.suppress(OSError):
            line.send(json.dumps({"error": inside.error_text(error)}).encode())
    finally:
        os._exit(128)
