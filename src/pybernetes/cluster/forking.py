"""Starts programs, each with its own log: our own as forks of this process, others by fork and exec.

What a fork finds imported it neither imports again nor has twice in memory (`warm.py`). In all else it is as if it had
been started anew: default signals, no descriptor but its own, a process group of its own, and its command line is shown
by `ps`. Where the kernel does not let a process change that, it shows its parent's.

Who forks has one thread. Nothing of the parent's stack is ever returned to: a component runs where it was forked, and
its process ends there.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

# -P: a module in the folder where the user types `up` must not shadow one of ours.
PYTHON = (sys.executable, "-P", "-m", "pybernetes")
_CLOSE_UP_TO = 1 << 30
_PARKED = 200
"""Where descriptors are put first, so that none lies where another is to be."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_MM, _PR_SET_MM_MAP = 35, 14


def start(argv: list[str], log: str, listeners: Sequence[int] = ()) -> int:
    """Starts a program whose output goes to a file, with listening sockets if given; answers its pid. OSError."""
    if tuple(argv[: len(PYTHON)]) == PYTHON:
        return _fork(argv, log, listeners)
    return _spawn(argv, log, listeners)


def _spawn(argv: list[str], log: str, listeners: Sequence[int]) -> int:
    environment = dict(os.environ)
    descriptors: list[tuple[int, int, int] | tuple[int, int]] = []
    if listeners:
        from pybernetes.net import inherited_sockets

        environment[inherited_sockets.VARIABLE] = str(len(listeners))
        descriptors += [(os.POSIX_SPAWN_DUP2, each, _PARKED + number) for number, each in enumerate(listeners)]
        descriptors += [
            (os.POSIX_SPAWN_DUP2, _PARKED + number, inherited_sockets.FIRST + number)
            for number in range(len(listeners))
        ]
        descriptors += [(os.POSIX_SPAWN_CLOSE, _PARKED + number) for number in range(len(listeners))]
    return os.posix_spawn(
        argv[0],
        argv,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *descriptors,
        ],
        # A group of its own: whatever a component forks can be found and ended with it.
        setpgroup=0,
        # Ignored signals outlive an exec: these are the ones the interpreter and a supervisor ignore.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP],
    )


def _fork(argv: list[str], log: str, listeners: Sequence[int]) -> int:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal that comes between the fork and the new handlers is for the child, not for handlers of its parent.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        pid = os.fork()
        if pid == 0:
            _be(argv, output, listeners, mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(output)
    return pid


def _be(argv: list[str], output: int, listeners: Sequence[int], mask: set[int | signal.Signals]) -> NoReturn:
    """The child's whole life."""
    code = 1
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        _take_descriptors(output, listeners)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        be_called(argv)
        code = run(argv[len(PYTHON) :])
    except SystemExit as end:
        code = _exit_code(end)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        _end(code)


def _take_descriptors(output: int, listeners: Sequence[int]) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    first_unused = 3
    if listeners:
        from pybernetes.net import inherited_sockets

        parked = [os.dup2(each, _PARKED + number) for number, each in enumerate(listeners)]
        for number, each in enumerate(parked):
            os.dup2(each, inherited_sockets.FIRST + number)
        os.environ[inherited_sockets.VARIABLE] = str(len(listeners))
        first_unused = inherited_sockets.FIRST + len(listeners)
    os.closerange(first_unused, _CLOSE_UP_TO)


def run(words: list[str]) -> int:
    """Runs a command of ours in this process; its exit code."""
    from pybernetes.cluster import cli

    return cli.main(words)


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _end(code: int) -> NoReturn:
    """As the interpreter ends, but for taking everything apart: the kernel does that quicker."""
    import atexit
    import threading

    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code & 0xFF)


def be_called(argv: list[str]) -> bool:
    """Makes a command line the one of this process, for Python and for tools like ps."""
    sys.argv[1:] = argv[len(PYTHON) :]
    sys.orig_argv[:] = argv
    try:
        return _show(b"\0".join(map(os.fsencode, argv)) + b"\0")
    except (OSError, ValueError, ImportError):
        return False


_shown: object = None
"""The buffer behind /proc/PID/cmdline; it must not be freed."""


def _show(line: bytes) -> bool:
    """Lets the kernel know where the command line is (prctl(2), PR_SET_MM_MAP: needs no rights over oneself)."""
    global _shown
    import ctypes
    import struct

    with open("/proc/self/stat", "rb") as file:
        fields = [b"", b"", *file.read().rpartition(b") ")[2].split()]  # now field N of proc(5) is fields[N - 1]
    code, end_code, stack = (int(fields[number - 1]) for number in (26, 27, 28))
    data, end_data, brk, _, _, environment, end_environment = (int(fields[number - 1]) for number in range(45, 52))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.sbrk.restype = ctypes.c_void_p
    text = ctypes.create_string_buffer(line, len(line))
    begin = ctypes.addressof(text)
    addresses = [code, end_code, data, end_data, brk, libc.sbrk(0) or 0, stack]
    addresses += [begin, begin + len(line), environment, end_environment]
    # struct prctl_mm_map: addresses, no auxiliary vector and its size, no descriptor of the program.
    table = struct.pack("=12Q2I", *addresses, 0, 0, 0xFFFFFFFF)
    if libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, table, ctypes.c_ulong(len(table)), 0) != 0:
        return False
    _shown = text
    return True
