"""`pyb objectfs csi sidecar`: the client of one volume in the pod that uses it, until the pod ends.

The volume is mounted beside the target and bound to it. A sidecar that was killed leaves a mount without a server;
its successor binds the volume on top of that, because only so the pod's other containers, which have the old mount,
get the new one. What programs had open fails with ENOTCONN, what they open afterwards is on the new mount.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

from pybernetes.objectfs.csi.binding import bind, is_dead, unbind, unmount
from pybernetes.objectfs.csi.mounts import PYB, format_volume, mounted
from pybernetes.objectfs.csi.request import SECRETS, Volume
from pybernetes.objectfs.fuse import mount_point

log = logging.getLogger(__name__)
LOOK_SECONDS = 2.0
END_SECONDS = 20.0
# Longer than a kubelet waits until it starts a container that fails again and again.
DEAD_SECONDS = 3600.0
# Files that tell since when a mount is dead.
DEAD = ".dead-"


class _Stopped(BaseException):
    """The pod ends."""


def run(target: Path) -> int:
    """Mounts the volume that the environment names; returns when the client has ended."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    found = volume()
    whole = target.with_name(f".{target.name}")
    client: subprocess.Popen[bytes] | None = None
    try:
        sweep(target.parent)
        format_volume(found)
        unmount(str(whole))
        whole.mkdir(parents=True, exist_ok=True)
        options = ",".join(["default_permissions", "allow_other", *found.options])
        client = subprocess.Popen([*PYB, "mount", "env:META_URL", str(whole), "-o", options])
        if asyncio.run(mounted(whole, lambda: client.poll() is not None)):
            bind(whole, found.folder, str(target), read_only="ro" in found.options, over=True)
            log.info("volume %s is mounted at %s", found.id, target)
        return client.wait() or 1
    except _Stopped:
        unbind(str(target))
        for each in (target, whole):
            _mark(each).unlink(missing_ok=True)
        return 0
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        unbind(str(whole))
        if client is not None:
            try:
                client.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                client.kill()


def _stop(*_: object) -> None:
    raise _Stopped


def volume() -> Volume:
    """The volume that the webhook has put into the environment, with the Secret's values."""
    kept = Volume.from_state(json.loads(os.environ["VOLUME"]))
    names = (*SECRETS, "meta-password", "rsa-passphrase")
    values = {name: value for name in names if (value := os.environ.get(name.upper().replace("-", "_")))}
    return replace(kept, metaurl=os.environ["META_URL"], secrets=values)


def sweep(folder: Path) -> None:
    """Remove what pods have left that were killed with their sidecars: mounts whose clients are dead for long.

    Not those that have just died: their pods' sidecars start again, and need them (see above).
    """
    for each in sorted(folder.iterdir()):
        mark = _mark(each)
        if each.name.startswith(DEAD) or mount_point.mounted(str(each)) is None:
            continue
        if not _is_abandoned(each):
            mark.unlink(missing_ok=True)
        elif not mark.exists():
            mark.touch()
        elif time.time() - mark.stat().st_mtime > DEAD_SECONDS:
            log.info("%s: its client is dead: unmount", each)
            unbind(str(each))
            mark.unlink()


def _mark(place: Path) -> Path:
    return place.with_name(f"{DEAD}{place.name}")


def _is_abandoned(place: Path) -> bool:
    """Whether the mount has no server any more; a server that is only slow is not waited for."""
    found: list[bool] = []

    def look() -> None:
        found.append(is_dead(str(place)))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(LOOK_SECONDS)
    return found == [True]
