"""A FUSE file system that does not answer: every look at it hangs until it is released.

Run as a program it mounts at the path it is given and says `mounted`. It has one empty folder; from the line `hang` on
its stdin on it holds every request, until its stdin is closed. Requests have been read by then, so that not even
SIGKILL ends those who wait: the worst that a mount can do.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

MNT_DETACH = 2
LOOKUP, FORGET, GETATTR, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 1, 2, 3, 26, 27, 28, 29, 36, 42
_HEADER = struct.Struct("=IIQQIIII")
_ANSWER = struct.Struct("=IiQ")
_INIT = struct.Struct("=IIIIHHIIHHI7I")
_ATTR = struct.Struct("=QII QQQQQQ III IIIIIII")
_OPEN = struct.Struct("=QII")


class HungMount:
    """A mount; `hang` makes it hang, `release` ends it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def hang(self) -> None:
        """Answer nothing from now on."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"hang\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == b"hangs\n"

    def release(self) -> None:
        """End the file system: waiting calls get an error."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@contextlib.contextmanager
def hung_mount(
    path: str | Path, enter: Callable[[Sequence[str]], Sequence[str]] = lambda argv: argv, *, hangs: bool = True
) -> Iterator[HungMount]:
    """Mounts it at a folder, which is made. `enter` makes the command run elsewhere."""
    process = subprocess.Popen(
        enter([sys.executable, "-S", "-E", __file__, str(path)]), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    mount = HungMount(process)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"mounted\n"
        if hangs:
            mount.hang()
        yield mount
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            mount.release()
        process.kill()  # the kernel ends the file system with its last descriptor
        process.wait()
        process.stdout.close()


def main(path: str) -> None:
    """Mount and hold."""
    import threading

    libc = ctypes.CDLL(None, use_errno=True)
    os.makedirs(path, exist_ok=True)
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"hung", os.fsencode(path), b"fuse.hung", 0, options):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    hangs = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while request := os.read(device, 1 << 20):
                if not hangs.is_set():
                    _answer(device, request)

    threading.Thread(target=serve, daemon=True).start()
    os.stat(path)
    os.write(1, b"mounted\n")
    while line := os.read(0, 100):
        if line == b"hang\n":
            hangs.set()
            os.write(1, b"hangs\n")
    libc.umount2(os.fsencode(path), MNT_DETACH)
    os._exit(0)


def _answer(device: int, request: bytes) -> None:
    _, opcode, unique, *_ = _HEADER.unpack_from(request)
    error, data = -errno.ENOSYS, b""
    if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
        return
    if opcode == INIT:
        error, data = 0, _INIT.pack(7, 31, 0, 0, 12, 9, 1 << 17, 1, 0, 0, 0, *[0] * 7)
    elif opcode == GETATTR:
        error, data = 0, _ATTR.pack(0, 0, 0, 1, *[0] * 5, *[0] * 3, 0o40755, 2, 0, 0, 0, 4096, 0)
    elif opcode == LOOKUP:
        error = -errno.ENOENT
    elif opcode in (OPENDIR, RELEASEDIR):
        error, data = 0, _OPEN.pack(0, 0, 0) if opcode == OPENDIR else b""
    elif opcode == READDIR:
        error = 0
    os.write(device, _ANSWER.pack(_ANSWER.size + len(data), error, unique) + data)


if __name__ == "__main__":
    main(sys.argv[1])
