"""`pyb objectfs mount META FOLDER [-d]`: serves a volume at a folder until it is unmounted.

This process only keeps the mount's descriptor and starts the server, again if it dies: programs wait a moment and do
not notice. SIGHUP starts a new server, of the program that is installed then. With `-d` the command returns when the
mount answers; the rest goes on in the background and writes to its log file.
"""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from pybernetes.objectfs import mount_options
from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.fuse import mount_point
from pybernetes.objectfs.fuse.holder import HeldMounts, receive, send
from pybernetes.objectfs.mount_options import MountOptions

log = logging.getLogger("objectfs")
READY_SECONDS = 60
# A server that dies again and again is started after pauses of up to so many seconds.
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
LIVED_SECONDS = 5.0
NAME = "mount"


def add_flags(parser: argparse.ArgumentParser) -> None:
    mount_options.add_flags(parser)
    parser.add_argument("-d", "--background", action="store_true", help="return when the mount answers")
    parser.add_argument("--holder", default="", metavar="SOCKET", help="who keeps the descriptor instead of us")
    parser.add_argument("--holder-name", default="", help="the mount's name there")


def run(arguments: argparse.Namespace) -> int:
    options = mount_options.parse(arguments)
    options.over = bool(arguments.holder)
    if not options.over and mount_point.mounted(options.folder) is not None:
        raise ObjectFSError(f"something is mounted at {options.folder} already")
    # With a holder it may be a mount without a server yet: do not stat it.
    if not options.over and not os.path.isdir(options.folder):
        raise ObjectFSError(f"{options.folder} is not a folder")
    keeper = Keeper(options, arguments.holder, arguments.holder_name)
    if arguments.background:
        return _in_background(keeper, options.log, options.folder)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    return keeper.run(lambda: None)


class Keeper:
    """Holds the descriptor of one mount and keeps a server running."""

    def __init__(self, options: MountOptions, holder: str = "", name: str = "") -> None:
        self._options, self._holder, self._name = options, holder, name
        self._held = HeldMounts()
        self._server: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._stopping = False

    def run(self, on_ready: Callable[[], None]) -> int:
        """Returns when the file system is unmounted; raises what the first server could not do."""
        signal.signal(signal.SIGHUP, lambda *_: self._kill())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._unmount())
        pause, was_ready = FIRST_PAUSE, False
        while True:
            begun = time.monotonic()
            self._start()
            outcome, reason = self._follow(on_ready if not was_ready else lambda: None)
            was_ready = was_ready or outcome in ("ready", "ended")
            assert self._server is not None
            code = self._server.wait()
            if outcome == "ended" or code == 0:
                return 0
            if self._stopping or mount_point.mounted(self._options.folder) is None:
                if reason and not was_ready:
                    raise ObjectFSError(reason)
                return 0 if self._stopping else 1
            if reason and not was_ready:
                self._unmount()
                raise ObjectFSError(reason)
            if time.monotonic() - begun > LIVED_SECONDS:
                pause = FIRST_PAUSE
            log.warning("the server of %s ended (%s); a new one takes over", self._options.folder, reason or code)
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-m", "pybernetes", "objectfs", "serve", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        if self._connection is not None:
            self._connection.close()
        self._connection = ours
        send(ours, {"options": self._options.to_json(), "holder": self._holder, "name": self._name})

    def _follow(self, on_ready: Callable[[], None]) -> tuple[str, str]:
        """Answers the server until it is gone: how far it came, and what it could not do."""
        outcome, reason = "", ""
        assert self._connection is not None
        while (found := receive(self._connection)) is not None:
            message, device = found
            kind = self._held.answer(NAME, message, device, self._connection)
            if kind == "ready":
                outcome = "ready"
                on_ready()
            elif kind == "failed":
                reason = str(message.get("reason"))
            elif kind == "ended":
                outcome = "ended"
        return outcome, reason

    def _kill(self) -> None:
        if self._server is not None:
            self._server.kill()

    def _unmount(self) -> None:
        self._stopping = True
        if self._holder:
            # Who holds the descriptor decides: a successor takes over, or it was unmounted and the server ends.
            if mount_point.mounted(self._options.folder) is not None:
                self._kill()
            return
        try:
            mount_point.unmount(self._options.folder, lazy=True)
        except OSError:
            self._kill()


def _in_background(keeper: Keeper, path: str, folder: str) -> int:
    """Forks before any thread exists; the child says through a pipe that the mount answers, or why not."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        os._exit(_background(keeper, path, writing))
    os.close(writing)
    answered, _, _ = select.select([reading], [], [], READY_SECONDS)
    word = os.read(reading, 4096) if answered else b""
    if word != b"ready":
        reason = word.decode() if word else f"no answer within {READY_SECONDS} s; see {path}"
        raise ObjectFSError(f"cannot mount at {folder}: {reason}")
    print(f"OK, {folder} is mounted")
    return 0


def _background(keeper: Keeper, path: str, writing: int) -> int:
    os.setsid()
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        sys.stdout.flush()
        for number, source in ((0, null), (1, target), (2, target)):
            os.dup2(source, number)
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")

        def ready() -> None:
            os.write(writing, b"ready")
            os.close(writing)

        return keeper.run(ready)
    except (ObjectFSError, OSError) as error:
        os.write(writing, f"{error}".encode())
        log.error("%s", error)
    except BaseException as error:
        os.write(writing, f"{type(error).__name__}: {error}; see {path}".encode())
        log.exception("the mount failed")
    finally:
        logging.shutdown()
    return 1
