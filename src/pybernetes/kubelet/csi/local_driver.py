"""Starts the driver of local volumes (`pyb csi-local`) when the first claim needs it, and keeps it running.

Woken by: claims that name the driver and this node. Who has no such claim pays for a watch, not for a process. Volumes
of an earlier life are a reason too. The driver ends with the kubelet, however that ends: it holds a pipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Final

from pybernetes.api.core.v1 import PersistentVolumeClaim
from pybernetes.api.core.volumebinding import SELECTED_NODE, annotations_of
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.informers import InformerFactory

DRIVER: Final = "local.csi.pybernetes.io"
"""`csi.drivers.local.driver.NAME`, which is not imported here: it would cost every kubelet some memory."""
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
END_WITHIN: Final = 5.0
log = logging.getLogger(__name__)


class LocalVolumes:
    """One driver process."""

    def __init__(self, kubeconfig: str, node: str, root: Path, clock: Clock) -> None:
        self._kubeconfig, self._node, self._root, self._clock = kubeconfig, node, root, clock

    async def run(self) -> None:
        """Wait for a reason, then run the driver; it is run again when it ends."""
        if not await asyncio.to_thread(self._has_volumes):
            await self._claimed()
        arguments = [f"--kubeconfig={self._kubeconfig}", f"--node-name={self._node}", f"--kubelet-root={self._root}"]
        command = [sys.executable, "-P", "-m", "pybernetes", "csi-local", *arguments, "--end-with-stdin"]
        pid, writing = _spawn(command)
        log.info("started the driver of local volumes, process %d", pid)
        try:
            status = await _ended(pid)
            raise RuntimeError(f"the driver of local volumes ended with exit code {os.waitstatus_to_exitcode(status)}")
        finally:
            os.close(writing)

    def _has_volumes(self) -> bool:
        for name in ("volumes", "snapshots"):
            with contextlib.suppress(OSError):
                if os.listdir(self._root / "plugins" / DRIVER / name):
                    return True
        return False

    async def _claimed(self) -> None:
        """Return when a claim is for this node's driver."""
        found = asyncio.Event()

        def seen(claim: PersistentVolumeClaim) -> None:
            annotations = annotations_of(claim)
            bound = claim.spec is not None and claim.spec.volume_name
            here = annotations.get(SELECTED_NODE, self._node) == self._node
            if annotations.get(PROVISIONER) == DRIVER and here and not bound:
                found.set()

        async with Client(clientconfig.load(self._kubeconfig), program="kubelet", clock=self._clock) as client:
            informers = InformerFactory(client.for_component("local-volumes"), clock=self._clock)
            informers.informer(PersistentVolumeClaim).add_handler(seen, lambda _, new: seen(new))
            informers.start()
            try:
                await found.wait()
            finally:
                await informers.stop()


def _spawn(command: list[str]) -> tuple[int, int]:
    """Start a program; its pid, and a descriptor that keeps its stdin open.

    Not by the event loop, which forks: gRPC's threads do not survive that.
    """
    reading, writing = os.pipe()
    try:
        return os.posix_spawn(
            command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0)]
        ), writing
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)


def _status(pid: int) -> int:
    """The wait status of a child that has ended, or is about to."""
    return os.waitpid(pid, 0)[1]


async def _ended(pid: int) -> int:
    """The wait status of a child, when it has ended; one that is not waited for any more is killed."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_WITHIN):
                await ended.wait()
        if not ended.is_set():
            os.kill(pid, signal.SIGKILL)
        _status(pid)
        raise
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return _status(pid)
