"""A FUSE file system that is mounted and never answers: every look at it hangs until it is released.

Run as a program it mounts at the path it is given, says `mounted`, and holds every request until its stdin is closed.
Requests have been read by then, so that not even SIGKILL ends those who wait: the worst that a mount can do.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

MNT_DETACH = 2
INIT = 26
_HEADER = struct.Struct("=IIQQIIII")
_INIT_ANSWER = struct.Struct("=IiQ IIIIHHIIHHI7I")


@contextlib.contextmanager
def hung_mount(
    path: str | Path, enter: Callable[[Sequence[str]], Sequence[str]] = lambda argv: argv
) -> Iterator[Callable[[], None]]:
    """Mounts it at a folder, which is made; what this gives releases it. `enter` makes the command run elsewhere."""
    process = subprocess.Popen(
        enter([sys.executable, "-S", "-E", __file__, str(path)]), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def release() -> None:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)

    try:
        assert process.stdout.readline() == b"mounted\n"
        yield release
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            release()
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
    length, opcode, unique, *_ = _HEADER.unpack_from(request := os.read(device, 1 << 20))
    assert (length, opcode) == (len(request), INIT)
    answer = (7, 31, 0, 0, 12, 9, 1 << 17, 1, 0, 0, 0, *[0] * 7)
    os.write(device, _INIT_ANSWER.pack(_INIT_ANSWER.size, 0, unique, *answer))

    def hold() -> None:
        with contextlib.suppress(OSError):
            while os.read(device, 1 << 20):
                pass

    threading.Thread(target=hold, daemon=True).start()
    os.write(1, b"mounted\n")
    while os.read(0, 1):
        pass
    libc.umount2(os.fsencode(path), MNT_DETACH)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
