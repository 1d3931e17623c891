"""`pyb objectfs csi sidecar`: the client of one volume in the pod that uses it, until the pod ends.

A sidecar that was killed leaves a mount that nobody answers; the next one, of this pod or of another on the node,
removes it. What programs had open there fails with ENOTCONN, what they open afterwards is on the new mount.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

from pybernetes.objectfs.csi.binding import bind, is_dead, unbind, unmount
from pybernetes.objectfs.csi.mounts import PYB, format_volume, mounted
from pybernetes.objectfs.csi.request import SECRETS, Volume
from pybernetes.objectfs.fuse import mount_point

log = logging.getLogger(__name__)
LOOK_SECONDS = 2.0
END_SECONDS = 20.0


class _Stopped(BaseException):
    """The pod ends."""


def run(target: Path) -> int:
    """Mounts the volume that the environment names; returns when the client has ended."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    found = volume()
    # A folder of the volume is bound to the target; the whole volume is mounted there itself.
    whole = target.with_name(f".{target.name}") if found.folder else target
    client: subprocess.Popen[bytes] | None = None
    try:
        sweep(target.parent)
        format_volume(found)
        for each in {target, whole}:
            # What a killed predecessor has left. The folder stays: the pod's containers have it, and get the new mount.
            unmount(str(each))
        whole.mkdir(parents=True, exist_ok=True)
        options = ",".join(["default_permissions", "allow_other", *found.options])
        client = subprocess.Popen([*PYB, "mount", "env:META_URL", str(whole), "-o", options])
        if asyncio.run(mounted(whole, lambda: client.poll() is not None)):
            if found.folder:
                bind(whole, found.folder, str(target), read_only="ro" in found.options)
            log.info("volume %s is mounted at %s", found.id, target)
        return client.wait() or 1
    except _Stopped:
        return 0
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        # The client ends when nothing of its mount is left, the bound folder first.
        for each in (target, whole) if found.folder else (whole,):
            unbind(str(each))
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
    """Unmount what lies in a folder and has a dead client, of pods that were killed. Their folders stay, see `run`."""
    for each in sorted(folder.iterdir()):
        if mount_point.mounted(str(each)) is not None and _is_abandoned(each):
            log.info("%s: its client is dead: unmount", each)
            try:
                unmount(str(each))
            except OSError as error:
                log.warning("%s: %s", each, error)


def _is_abandoned(place: Path) -> bool:
    """Whether nobody will ever answer there; a client that is only slow is not waited for."""
    found: list[bool] = []

    def look() -> None:
        found.append(is_dead(str(place)))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(LOOK_SECONDS)
    return found == [True]
