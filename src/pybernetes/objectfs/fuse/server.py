"""Serves one mount: threads that read requests from `/dev/fuse`, handle them and write the answers.

There are as many threads as requests being handled at once and two more, so that a slow object store holds up only
those who read from it; metadata is answered meanwhile. A request for a lock that is taken (SETLKW) holds no thread: it
waits in a list that is tried again, and an INTERRUPT ends it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from errno import EAGAIN, EINTR, EIO, ENODEV, ENOENT, ENOSYS, EPROTO

from pybernetes.objectfs.access_log import AccessLog
from pybernetes.objectfs.fuse import protocol
from pybernetes.objectfs.fuse.dispatch import HANDLERS, JOURNALED, FileSystem, Handler, Header, redo, setlk
from pybernetes.objectfs.fuse.protocol import Init, Notify, Opcode

log = logging.getLogger(__name__)
SPARE_THREADS = 2
MAX_THREADS = 64
# How often a waiting lock is tried again; another client's release sends no message.
LOCK_RETRY_SECONDS = 0.01
MAX_READAHEAD = 1 << 20

WANTED = (
    Init.ASYNC_READ
    | Init.POSIX_LOCKS
    | Init.FLOCK_LOCKS
    | Init.BIG_WRITES
    | Init.DO_READDIRPLUS
    | Init.READDIRPLUS_AUTO
    | Init.ASYNC_DIO
    | Init.PARALLEL_DIROPS
    | Init.MAX_PAGES
    | Init.CACHE_SYMLINKS
    | Init.EXPORT_SUPPORT
    | Init.INIT_EXT
    | Init.HAS_RESEND
)


ACL = Init.POSIX_ACL | Init.DONT_MASK


class Server:
    """The requests of one mount."""

    def __init__(
        self,
        device: int,
        filesystem: FileSystem,
        on_ready: Callable[[], None] = lambda: None,
        observe: Callable[[str, float, int], None] = lambda name, seconds, error: None,
        access_log: AccessLog | None = None,
    ) -> None:
        self._device, self._filesystem, self._on_ready = device, filesystem, on_ready
        self._observe, self._access_log = observe, access_log
        self._journal = filesystem.volume.names.journal
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._done = threading.Event()
        # Requests for locks that are taken, by their unique number.
        self._waiting: dict[int, tuple[Header, bytes]] = {}
        self._lock_wanted = threading.Event()

    def serve(self, resumed: bool = False) -> None:
        """Returns when the file system is unmounted. `resumed`: a predecessor has negotiated with the kernel, which
        sends again what was not answered."""
        if resumed:
            # Before the first request is read: what we read ourselves must not come twice.
            self._resend()
        self._add_thread()
        if resumed:
            self._on_ready()
        retries = threading.Thread(target=self._retry_locks, name="objectfs-locks", daemon=True)
        retries.start()
        self._done.wait()
        self._lock_wanted.set()
        retries.join()
        for thread in list(self._threads):
            thread.join(timeout=30)

    def _resend(self) -> None:
        notice = protocol.OUT_HEADER.pack(protocol.OUT_HEADER.size, Notify.RESEND, 0)
        try:
            os.write(self._device, notice)
        except OSError as error:
            log.error("the kernel does not send requests again (%s): those in flight are lost", error.strerror)

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._work, name="objectfs-fuse", daemon=True)
        with self._lock:
            self._threads.add(thread)
            self._idle += 1
        thread.start()

    def _work(self) -> None:
        buffer = bytearray(protocol.BUFFER_SIZE)
        view = memoryview(buffer)
        try:
            while not self._done.is_set():
                try:
                    length = os.readv(self._device, [buffer])
                except OSError as error:
                    if error.errno in (EINTR, EAGAIN, ENOENT):
                        continue
                    if error.errno != ENODEV:
                        log.error("reading from /dev/fuse: %s", error)
                    self._done.set()
                    return
                with self._lock:
                    self._idle -= 1
                    alone = self._idle < 1 and len(self._threads) < MAX_THREADS
                if alone:
                    self._add_thread()
                try:
                    self._handle(view[:length])
                finally:
                    with self._lock:
                        self._idle += 1
                        spare = self._idle > SPARE_THREADS + 1
                        if spare:
                            self._idle -= 1
                if spare:
                    return
        finally:
            self._journal.leave()
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _handle(self, request: memoryview) -> None:
        header = Header._make(protocol.IN_HEADER.unpack_from(request))
        arguments = request[protocol.IN_HEADER.size : header.length - header.extension * 8]
        handler = HANDLERS.get(header.opcode)
        if handler is None:
            self._handle_rare(header, arguments)
            return
        begun, code = time.perf_counter(), 0
        try:
            answer = self._call(handler, header, arguments)
        except OSError as error:
            code = error.errno or EIO
            if code == EIO:
                log.error("%s of inode %d: %s", _opcode(header.opcode), header.inode, error)
            self._answer(header.unique, b"", code)
        except Exception:
            code = EIO
            log.exception("%s of inode %d failed", _opcode(header.opcode), header.inode)
            self._answer(header.unique, b"", EIO)
        else:
            if answer is not None:
                self._answer(header.unique, answer)
        seconds = time.perf_counter() - begun
        self._observe(_opcode(header.opcode), seconds, code)
        if self._access_log is not None:
            self._access_log.write(
                _opcode(header.opcode), header.inode, header.uid, header.gid, header.pid, code, seconds
            )

    def _call(self, handler: Handler, header: Header, arguments: memoryview) -> bytes | None:
        """Requests that may not be handled twice are looked up in the journal when the kernel sends them again."""
        if header.opcode not in JOURNALED:
            return handler(self._filesystem, header, arguments)
        unique = header.unique & ~protocol.UNIQUE_RESEND
        if header.unique & protocol.UNIQUE_RESEND:
            made = self._journal.redo(unique)
            if made is not None:
                return redo(self._filesystem, header, made)
        self._journal.begin(unique)
        try:
            return handler(self._filesystem, header, arguments)
        finally:
            self._journal.end()

    def _handle_rare(self, header: Header, arguments: memoryview) -> None:
        if header.opcode == Opcode.INIT:
            self._init(header, arguments)
        elif header.opcode == Opcode.SETLKW:
            self._wait_for_lock(header, bytes(arguments))
        elif header.opcode == Opcode.INTERRUPT:
            (unique,) = protocol.INTERRUPT_IN.unpack_from(arguments)
            if self._waiting.pop(unique, None) is not None:
                self._answer(unique, b"", EINTR)
        elif header.opcode == Opcode.DESTROY:
            self._answer(header.unique, b"")
            self._done.set()
        else:
            self._answer(header.unique, b"", ENOSYS)

    def _init(self, header: Header, arguments: memoryview) -> None:
        major, minor, readahead, flags = protocol.INIT_IN.unpack_from(arguments)
        if major != protocol.MAJOR or minor < 31:
            log.error("the kernel speaks FUSE %d.%d, 7.31 or later is needed", major, minor)
            self._answer(header.unique, b"", EPROTO)
            return
        if flags & Init.INIT_EXT:
            flags |= int.from_bytes(arguments[16:20], "little") << 32
        agreed = flags & (WANTED | ACL if self._filesystem.acls else WANTED)
        answer = protocol.INIT_OUT.pack(
            protocol.MAJOR, min(minor, protocol.MINOR), min(readahead, MAX_READAHEAD), agreed & 0xFFFFFFFF,
            64, 48, protocol.MAX_WRITE, 1, protocol.MAX_WRITE // protocol.PAGE, 0, agreed >> 32, 0, 0,
        )  # fmt: skip
        self._answer(header.unique, answer)
        self._on_ready()

    def _wait_for_lock(self, header: Header, arguments: bytes) -> None:
        if not self._try_lock(header, arguments):
            self._waiting[header.unique] = (header, arguments)
            self._lock_wanted.set()

    def _try_lock(self, header: Header, arguments: bytes) -> bool:
        """True when the request is answered."""
        try:
            setlk(self._filesystem, header, memoryview(arguments))
        except OSError as error:
            if error.errno == EAGAIN:
                return False
            self._answer(header.unique, b"", error.errno or EIO)
        except Exception:  # the thread that tries for all must go on, and a program wait for no answer
            log.exception("%s of inode %d failed", _opcode(header.opcode), header.inode)
            self._answer(header.unique, b"", EIO)
        else:
            self._answer(header.unique, b"")
        return True

    def _retry_locks(self) -> None:
        while not self._done.is_set():
            if not self._waiting:
                self._lock_wanted.wait()
                self._lock_wanted.clear()
                continue
            for unique, (header, arguments) in list(self._waiting.items()):
                # Taken out first, so that an INTERRUPT meanwhile answers once.
                if self._waiting.pop(unique, None) is not None and not self._try_lock(header, arguments):
                    self._waiting[unique] = (header, arguments)
            self._done.wait(LOCK_RETRY_SECONDS)

    def _answer(self, unique: int, data: bytes, error: int = 0) -> None:
        head = protocol.OUT_HEADER.pack(protocol.OUT_HEADER.size + len(data), -error, unique)
        try:
            os.writev(self._device, [head, data] if data else [head])
        except OSError as failure:
            # ENOENT: the program was interrupted and waits no longer. ENODEV: unmounted.
            if failure.errno not in (ENOENT, ENODEV):
                log.error("answering request %d: %s", unique, failure)


_NAMES = {int(each): each.name.lower() for each in Opcode}


def _opcode(number: int) -> str:
    return _NAMES.get(number, f"operation {number}")
