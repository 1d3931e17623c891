"""A container's output as CRI's log file: `TIME STREAM F|P line`, one pump for each stream of the launcher.

A line longer than `LONGEST` is written in parts, each but the last marked `P`. The file is kept open until it is to be
`reopen`ed, because the kubelet moves it away when it is too long.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from . import syscalls

LONGEST = 16 * 1024
"""Bytes of a line's part: containerd's and docker's."""
OWN_PARTS = 3
"""The parts of a log's path that belong to the pod: its folder, the container's, the file."""
POD_FOLDER_UNDERSCORES = 2
"""A kubelet's folder for a pod is `NAMESPACE_NAME_UID`; other clients may keep logs where something is mounted."""
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def open_for_writing(path: str) -> int:
    """A descriptor of a log, whose folders are made; OSError if a part that belongs to the pod is a link (ELOOP).

    Nor does it enter what is mounted in a pod's folder (EXDEV): such a file system may never answer, and the launcher
    would wait for it, with all pods.
    """
    base, *own = path.rsplit("/", OWN_PARTS)
    mounts = not own or own[0].count("_") != POD_FOLDER_UNDERSCORES
    os.makedirs(base or "/", 0o755, exist_ok=True)
    folder = os.open(base or "/", _FOLDER)
    try:
        for length in range(1, len(own)):
            try:
                os.mkdir("/".join(own[:length]), 0o755, dir_fd=folder)
            except FileExistsError:
                pass
            os.close(syscalls.open_no_links(folder, "/".join(own[:length]), _FOLDER, mounts=mounts))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK
        return syscalls.open_no_links(folder, "/".join(own), flags, 0o640, mounts=mounts)
    finally:
        os.close(folder)


class LogFile:
    """Where a container's lines go; without a path, nowhere."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = -1
        self.reopen()

    def reopen(self) -> None:
        """Opens the file again, a new one if it was moved away; if that cannot be, the old one goes on."""
        if self.path:
            # A pod with a hostPath of /var/log could have put links there, to let us write to other files of the node.
            file = open_for_writing(self.path)
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                raise OSError(errno.EINVAL, "not a regular file", self.path)
            self.close()
            self._file = file

    def write(self, data: bytes) -> None:
        """Appends whole lines. What a full disk refuses is lost, as with any runtime: the container must not hang."""
        if self._file < 0:
            return
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            pass

    def close(self) -> None:
        """Closes the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Pump:
    """Turns what arrives on one stream into lines of the log."""

    def __init__(self, stream: str, log: LogFile) -> None:
        self._stream = stream.encode()
        self._log = log
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Bytes that arrived."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        head = timestamp() + b" " + self._stream
        written = [part for line in lines for part in parts(head, line, ended=True)]
        if len(self._rest) >= LONGEST:
            whole = len(self._rest) - len(self._rest) % LONGEST
            written += parts(head, self._rest[:whole], ended=False)
            self._rest = self._rest[whole:]
        if written:
            self._log.write(b"".join(written))

    def end(self) -> None:
        """The stream was closed: what has no end of line is written as a part, as containerd does."""
        if self._rest:
            self._log.write(b"".join(parts(timestamp() + b" " + self._stream, self._rest, ended=False)))
            self._rest = b""


def parts(head: bytes, line: bytes, *, ended: bool) -> list[bytes]:
    """A line as it is in the file."""
    cut = [line[at : at + LONGEST] for at in range(0, len(line), LONGEST)] or [b""]
    full = [b"%b P %b\n" % (head, part) for part in cut]
    if ended:
        full[-1] = b"%b F %b\n" % (head, cut[-1])
    return full


def timestamp() -> bytes:
    """Now, in RFC 3339 with nanoseconds."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return b"%b.%09dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode(), nanoseconds)
