"""The server of one mount: from its options to a file system that answers, until it is unmounted.

It takes a mount over from a predecessor if the holder has one (`fuse/holder.py`), else it makes the mount and leaves
the descriptor with the holder. Log lines follow the description of JuiceFS's client.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pybernetes.objectfs import format as formats
from pybernetes.objectfs.access_log import AccessLog
from pybernetes.objectfs.data.pace import DataOptions
from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.fuse import mount_point
from pybernetes.objectfs.fuse.answers import Timeouts
from pybernetes.objectfs.fuse.dispatch import FileSystem
from pybernetes.objectfs.fuse.holder import Held, Holder
from pybernetes.objectfs.fuse.server import Server
from pybernetes.objectfs.meta.sessions import HEARTBEAT_SECONDS
from pybernetes.objectfs.meta.urls import connect, masked, resolved
from pybernetes.objectfs.metrics import Metrics, serve_metrics
from pybernetes.objectfs.mount_options import KIND, MountOptions
from pybernetes.objectfs.objects.store import open_store
from pybernetes.objectfs.volume import Volume

log = logging.getLogger("objectfs")
# Pending writes are stored after so many seconds, even if the program keeps its file open.
FLUSH_SECONDS = 5.0
TRASH_SECONDS = 3600.0
MAX_PENDING_PAGES = 15


def serve(options: MountOptions, holder: Holder, on_ready: Callable[[], None]) -> None:
    """Returns when the file system is unmounted."""
    held = holder.take()
    folder = options.folder
    meta = resolved(options.meta)
    engine = connect(meta)
    settings = formats.load(engine)
    if settings is None:
        raise ObjectFSError(f"{masked(meta)} holds no volume; `pyb objectfs format` makes one")
    log.info("Meta address: %s", masked(meta))
    for warning in getattr(engine, "warnings", list)():
        log.warning("metadata: %s", warning)
    log.info("Data use %s://%s/", settings.storage, settings.bucket.partition("://")[2] or settings.bucket)
    place = Path(options.cache_dir) / settings.uuid
    log.info(
        "Disk cache (%s/): capacity (%d MB), free ratio (%d%%), max pending pages (%d)",
        place, options.cache_size, round(options.free_space_ratio * 100), MAX_PENDING_PAGES,
    )  # fmt: skip
    slot, lock = _slot(place, None if held is None else held.state["slot"])
    volume = Volume(
        engine,
        settings,
        open_store(settings),
        place / str(slot),
        options.cache_size << 20,
        options.free_space_ratio,
        {"host": socket.gethostname(), "pid": os.getpid(), "mount": folder, "started": time.time()},
        session=0 if held is None else held.state["session"],
        data=DataOptions(options.upload_limit << 17, options.download_limit << 17),
        resumable=True,
        access_times="noatime" if options.flags & mount_point.MS_RDONLY else options.atime_mode,
    )
    log.info("%s session %d", "Create" if held is None else "Continue", volume.session)
    access_log = AccessLog(options.access_log) if options.access_log else None
    metrics = Metrics(volume)
    device = _device(options, held, volume.session, slot, settings.name, holder)
    timeouts = Timeouts(round(options.entry_cache * 1e9), round(options.attr_cache * 1e9))

    def ready() -> None:
        log.info("OK, %s is ready at %s", settings.name, folder)
        on_ready()

    endpoint = serve_metrics(metrics, options.metrics) if options.metrics not in ("", "none") else None
    address = "" if endpoint is None else f"{options.metrics.rpartition(':')[0] or '127.0.0.1'}:{endpoint.server_port}"
    xattrs = options.xattrs or settings.acl
    filesystem = FileSystem(volume, timeouts, xattrs, time.time_ns, settings.acl, address)
    server = Server(device, filesystem, ready, metrics.observe, access_log)
    volume.recover()
    stopped = threading.Event()
    threads = [
        threading.Thread(target=_store, args=(volume, stopped), name="objectfs-store"),
        threading.Thread(target=_keep, args=(volume, stopped, options.background), name="objectfs-keeper"),
    ]
    for thread in threads:
        thread.start()
    if options.background:
        volume.collector.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _unmount(folder))
    server.serve(resumed=held is not None)
    holder.say("ended")
    stopped.set()
    for thread in threads:
        thread.join()
    volume.collector.stop()
    volume.close()
    engine.close()
    if endpoint is not None:
        endpoint.shutdown()
    os.close(device)
    os.close(lock)


def _device(options: MountOptions, held: Held | None, session: int, slot: int, name: str, holder: Holder) -> int:
    state: dict[str, Any] = {"session": session, "slot": slot, "folder": options.folder}
    if held is not None:
        device = held.device
    else:
        while mount_point.mounted(options.folder) is not None:
            if not options.over:
                raise ObjectFSError(f"something is mounted at {options.folder} already")
            # Its descriptor is lost with the process that held it: nothing can answer there any more.
            mount_point.unmount(options.folder, lazy=True)
        device = mount_point.mount(f"{options.source or KIND.upper()}:{name}", KIND, options.folder, options.flags)
    holder.leave(device, state)
    return device


def _slot(place: Path, wanted: int | None) -> tuple[int, int]:
    """A number that no other client of the volume on this machine uses, and the lock that says so: it is held as
    long as this process lives. A successor waits for its predecessor's."""
    place.mkdir(parents=True, exist_ok=True)
    for number in range(1000) if wanted is None else [wanted]:
        lock = os.open(place / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if wanted is None else 0))
        except BlockingIOError:
            os.close(lock)
            continue
        return number, lock
    raise ObjectFSError(f"a thousand clients use {place} already")


def _store(volume: Volume, stopped: threading.Event) -> None:
    """Stores writes of files that stay open; what an earlier client left at once."""
    while True:
        for inode in volume.writer.inodes():
            try:
                volume.writer.flush(inode)
            except OSError as error:
                log.error("inode %d: not stored yet: %s", inode, error)
            except Exception:  # the other files must not wait for this one
                log.exception("inode %d: not stored yet", inode)
        if stopped.wait(FLUSH_SECONDS):
            return


def _keep(volume: Volume, stopped: threading.Event, background: bool) -> None:
    """Renews the session, ends stale ones, empties the trash. It waits for no object store, whose failure must not
    cost the session."""
    emptied = time.monotonic()
    while not stopped.wait(HEARTBEAT_SECONDS):
        try:
            if not volume.sessions.resume(volume.session):
                log.error("session %d was ended by another client: its locks are gone", volume.session)
                volume.sessions.renew(volume.session)
            volume.names.journal.settle()
            volume.reload()
            if background:
                for session in volume.sessions.close_stale():
                    log.info("ended session %d: its client died", session)
                if time.monotonic() - emptied > TRASH_SECONDS:
                    emptied = time.monotonic()
                    count = volume.empty_trash()
                    if count:
                        log.info("removed %d files from the trash", count)
        except (OSError, ObjectFSError) as error:
            log.error("session %d is not renewed: %s", volume.session, error)
        except Exception:  # the next heartbeat must come, whatever was wrong with this one
            log.exception("session %d: its upkeep failed", volume.session)


def _unmount(folder: str) -> None:
    try:
        mount_point.unmount(folder, lazy=True)
    except OSError as error:
        log.error("cannot unmount %s: %s", folder, error.strerror)
