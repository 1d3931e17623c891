"""Where a volume's client runs, for the driver: in a mount pod (`PodMounts`) or beside the plugin (`ProcessMounts`)."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from pybernetes.api import errors
from pybernetes.api.core.v1 import Pod, Secret
from pybernetes.client.client import Client
from pybernetes.client.codec import decode
from pybernetes.csi.errors import CSIError
from pybernetes.objectfs.csi import manifests
from pybernetes.objectfs.csi.request import Volume, environment, format_command, pod_name, safe_name
from pybernetes.objectfs.fuse import mount_point
from pybernetes.objectfs.mount_options import KIND

log = logging.getLogger(__name__)
READY_SECONDS = 90.0
GONE_SECONDS = 40.0
LOOK_SECONDS = 0.1
FORMAT_SECONDS = 60.0


class Mounts(Protocol):
    """Mounts volumes at one place on the node."""

    def place(self, id: str) -> Path:
        """Where a volume is, or will be."""

    async def start(self, volume: Volume, references: list[str]) -> None:
        """Returns when the volume is mounted; does nothing if it is, with these options."""

    async def note(self, id: str, references: list[str]) -> None:
        """The volume has other users now."""

    async def stop(self, id: str) -> None:
        """Unmounts an unused volume."""


class PodMounts:
    """A pod for each volume of this node; its descriptor of `/dev/fuse` is held by the plugin."""

    def __init__(self, client: Client, node: str, namespace: str, image: str, local: str = manifests.LOCAL) -> None:
        self._client, self._node, self._namespace, self._image, self._local = client, node, namespace, image, local

    def place(self, id: str) -> Path:
        return Path(manifests.host_folder(id))

    async def start(self, volume: Volume, references: list[str]) -> None:
        name, fingerprint = pod_name(self._node, volume.id), volume.fingerprint(self._image)
        pod = await self._get(name)
        if pod is not None and _annotation(pod, manifests.FINGERPRINT) == fingerprint and not _ending(pod):
            await self._ready(volume.id, name)
            return
        place = self.place(volume.id)
        if pod is None:
            await asyncio.to_thread(format_volume, volume)
            await asyncio.to_thread(_make_folder, place)
        else:
            # The descriptor is held: programs wait until the successor answers.
            log.info("mount pod %s: image or options changed, a new one takes over", name)
            await self._delete(name)
        log.info("mount pod %s: create or update Secret %s-secret", name, name)
        await self._secret(manifests.secret(volume, self._node, self._namespace))
        log.info("mount pod %s: create", name)
        await self._create(self._manifest(volume, references))
        log.info("mount pod %s: wait until %s is ready", name, place)
        await self._ready(volume.id, name)

    async def note(self, id: str, references: list[str]) -> None:
        import json

        name = pod_name(self._node, id)
        patch: dict[str, Any] = {"metadata": {"annotations": {manifests.REFERENCES: json.dumps(references)}}}
        try:
            await self._client.patch(Pod, name, patch, self._namespace)
        except errors.NotFound:
            log.warning("mount pod %s is gone", name)

    async def stop(self, id: str) -> None:
        name = pod_name(self._node, id)
        await asyncio.to_thread(_unmount, self.place(id))
        log.info("mount pod %s: delete, nothing refers to it", name)
        await self._delete(name)
        try:
            await self._client.delete(Secret, f"{name}-secret", self._namespace)
        except errors.NotFound:
            pass
        await asyncio.to_thread(_remove_folder, self.place(id))

    async def revive(self, volume: Volume, references: list[str]) -> bool:
        """Recreates a mount pod that was deleted; True if it was."""
        name = pod_name(self._node, volume.id)
        if await self._get(name) is not None:
            return False
        try:
            found = await self._client.get(Secret, f"{name}-secret", self._namespace)
        except errors.NotFound:
            log.error("mount pod %s and its Secret are gone: the volume is published again with the next pod", name)
            return False
        log.warning("mount pod %s is gone while %d pods use its volume: create", name, len(references))
        meta = (found.data or {}).get("META_URL", b"")
        if isinstance(meta, str):
            meta = base64.b64decode(meta)
        again = self._manifest(volume, references)
        again["metadata"]["annotations"][manifests.FINGERPRINT] = _with_meta(volume, meta).fingerprint(self._image)
        await self._create(again)
        return True

    def _manifest(self, volume: Volume, references: list[str]) -> dict[str, Any]:
        return manifests.mount_pod(volume, self._node, self._namespace, self._image, references, self._local)

    async def _get(self, name: str) -> Pod | None:
        try:
            return await self._client.get(Pod, name, self._namespace)
        except errors.NotFound:
            return None

    async def _secret(self, wanted: dict[str, Any]) -> None:
        import msgspec

        secret = decode(Secret, msgspec.json.encode(wanted))
        try:
            await self._client.create(secret)
        except errors.AlreadyExists:
            await self._client.patch(Secret, wanted["metadata"]["name"], {"data": wanted["data"]}, self._namespace)

    async def _create(self, wanted: dict[str, Any]) -> None:
        import msgspec

        try:
            await self._client.create(decode(Pod, msgspec.json.encode(wanted)))
        except errors.AlreadyExists:
            pass

    async def _delete(self, name: str) -> None:
        """Returns when the pod is gone."""
        try:
            await self._client.delete(Pod, name, self._namespace)
        except errors.NotFound:
            return
        end = asyncio.get_running_loop().time() + GONE_SECONDS
        while await self._get(name) is not None:
            if asyncio.get_running_loop().time() > end:
                raise CSIError("Unavailable", f"mount pod {name} does not end")
            await asyncio.sleep(LOOK_SECONDS * 2)

    async def _ready(self, id: str, name: str) -> None:
        try:
            await mounted(self.place(id))
        except TimeoutError:
            pod = await self._get(name)
            phase = pod.status.phase if pod is not None and pod.status is not None else "missing"
            raise CSIError(
                "DeadlineExceeded", f"mount pod {name} is {phase}, its volume is not mounted; see its log"
            ) from None


class ProcessMounts:
    """The client is a process beside the plugin: nothing to schedule, but it ends with the plugin's container."""

    def __init__(self, root: Path = Path(manifests.HOST)) -> None:
        self._root = root
        self._clients: dict[str, subprocess.Popen[bytes]] = {}

    def place(self, id: str) -> Path:
        return self._root / "volume" / safe_name(id)

    async def start(self, volume: Volume, references: list[str]) -> None:
        running = self._clients.get(volume.id)
        if running is not None and running.poll() is None:
            return
        place = self.place(volume.id)
        await asyncio.to_thread(format_volume, volume)
        await asyncio.to_thread(_unmount, place)
        await asyncio.to_thread(_make_folder, place)
        options = ",".join(["default_permissions", "allow_other", f"cache-dir={self._root}/cache", *volume.options])
        command = [*PYB, "mount", "env:META_URL", str(place), "-o", options]
        log.info("volume %s: start its client", volume.id)
        started = await asyncio.to_thread(subprocess.Popen, command, env=os.environ | environment(volume))
        self._clients[volume.id] = started
        try:
            await mounted(place)
        except TimeoutError:
            raise CSIError("DeadlineExceeded", f"volume {volume.id} is not mounted; see the plugin's log") from None

    async def note(self, id: str, references: list[str]) -> None:
        """Nothing else keeps them."""

    async def stop(self, id: str) -> None:
        await asyncio.to_thread(_unmount, self.place(id))
        client = self._clients.pop(id, None)
        if client is not None:
            try:
                await asyncio.to_thread(client.wait, GONE_SECONDS)
            except subprocess.TimeoutExpired:
                client.kill()
        await asyncio.to_thread(_remove_folder, self.place(id))


PYB = (sys.executable, "-P", "-m", "pybernetes", "objectfs")


def format_volume(volume: Volume) -> None:
    """Formats a volume if it is not yet; InvalidArgument with the command's own words if it cannot be."""
    if not volume.bucket:
        return  # formatted before by a user with these settings
    try:
        done = subprocess.run(
            [*PYB, *format_command(volume)],
            env=os.environ | environment(volume), capture_output=True, text=True, timeout=FORMAT_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CSIError("DeadlineExceeded", f"volume {volume.name}: formatting took {FORMAT_SECONDS:.0f} s") from None
    if done.returncode != 0:
        words = done.stderr.strip().rpartition("\n")[2]
        for secret in environment(volume).values():
            words = words.replace(secret, "****")
        raise CSIError("FailedPrecondition", f"volume {volume.name} cannot be formatted: {words}")


async def mounted(place: Path, ended: Callable[[], bool] = lambda: False) -> bool:
    """Returns when a volume of ours is mounted there and answers; False if its client has ended instead."""
    end = asyncio.get_running_loop().time() + READY_SECONDS
    while not ended():
        found = await asyncio.to_thread(mount_point.mounted, str(place))
        if found is not None and found[1] == f"fuse.{KIND}":
            left = max(1.0, end - asyncio.get_running_loop().time())
            await asyncio.wait_for(asyncio.to_thread(os.stat, place), left)
            return True
        if asyncio.get_running_loop().time() > end:
            raise TimeoutError
        await asyncio.sleep(LOOK_SECONDS)
    return False


def _with_meta(volume: Volume, meta: bytes) -> Volume:
    from dataclasses import replace

    return replace(volume, metaurl=meta.decode())


def _annotation(pod: Pod, name: str) -> str:
    return ((pod.metadata.annotations if pod.metadata else None) or {}).get(name, "")


def _ending(pod: Pod) -> bool:
    return bool(pod.metadata and pod.metadata.deletion_timestamp)


def _make_folder(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        # A dead mount of an earlier client.
        _unmount(place)
        place.mkdir(parents=True, exist_ok=True)


def _remove_folder(place: Path) -> None:
    try:
        place.rmdir()
    except OSError:
        pass


def _unmount(place: Path) -> None:
    while mount_point.mounted(str(place)) is not None:
        mount_point.unmount(str(place), lazy=True)
