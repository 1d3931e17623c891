"""Keeps the volumes of this node's pods ready: made before their containers, fresh while they run, gone after them.

State is on the disk alone (`pods/<uid>/volumes/<plugin>/<name>`, mounts): a kubelet that starts again finds
everything by calling `ensure` for the pods that are there and `remove` for those in `orphans`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Pod, PodSpec, Volume
from pybernetes.client.backoff import ItemBackoff
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.keys import key_of, uid_of
from pybernetes.component import klog, offload
from pybernetes.component.removal import remove_tree
from pybernetes.cri.errors import CRIError
from pybernetes.cri.mounting import mounts, unmount

from ..error_text import why
from ..node.facts import NodeFacts
from ..runtime.types import all_containers
from ..service_account_tokens import TokenError, Tokens
from ..watched_objects import Objects
from . import (
    config_map,
    downward_api,
    empty_dir,
    host_path,
    image,
    local,
    nfs,
    persistent_volume_claim,
    projected,
    secret,
    subpath,
)
from .base import MountedVolume, ProcessingError, StepError, VolumeError, Volumes
from .host import Host
from .image import ImageMounts

if TYPE_CHECKING:
    from ..csi.volumes import CSIVolumes

SetUp = Callable[[Host, Pod, Volume], Awaitable[MountedVolume]]


async def csi_inline(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """A volume of a CSI driver that is declared in the pod."""
    assert host.csi is not None
    return await host.csi.set_up_inline(pod, volume)


KINDS: Final[dict[str, SetUp]] = {
    "config_map": config_map.set_up,
    "csi": csi_inline,
    "downward_api": downward_api.set_up,
    "empty_dir": empty_dir.set_up,
    "ephemeral": persistent_volume_claim.set_up,
    "host_path": host_path.set_up,
    "image": image.set_up,
    "nfs": nfs.set_up,
    "persistent_volume_claim": persistent_volume_claim.set_up,
    "projected": projected.set_up,
    "secret": secret.set_up,
}
"""By the field of a Volume."""
PLUGINS: Final = {
    "config_map": "kubernetes.io/configmap",
    "csi": "kubernetes.io/csi",
    "downward_api": "kubernetes.io/downward-api",
    "empty_dir": "kubernetes.io/empty-dir",
    "ephemeral": "kubernetes.io/csi",
    "host_path": "kubernetes.io/host-path",
    "image": "kubernetes.io/image",
    "nfs": "kubernetes.io/nfs",
    "persistent_volume_claim": "kubernetes.io/csi",
    "projected": "kubernetes.io/projected",
    "secret": "kubernetes.io/secret",
}
"""Upstream's names, for metrics."""
SHOWING: Final = frozenset(("config_map", "downward_api", "projected", "secret"))
"""Kinds that show what the API says, and so are set up again and again. The others are ready once."""
CLAIMING: Final = frozenset(("csi", "ephemeral", "persistent_volume_claim"))
"""Kinds that may be of a CSI driver, which may have to be asked again."""

# upstream's back-off of operations on volumes
FIRST_RETRY: Final = 0.5
LONGEST_RETRY: Final = 122.0
REMOVE_WITHIN: Final = 60.0
"""Seconds after which the removal of a pod's files is tried again beside the one under way: they may be millions."""
SHORTEST_RENEWAL: Final = 5.0  # a token that cannot be renewed is not asked for all the time

log = logging.getLogger(__name__)


class VolumeManager:
    """`changed(uid)` is called when something that a pod's volumes show wants to be read again: call `ensure` then."""

    def __init__(
        self,
        client: Client | None,
        root: Path,
        facts: NodeFacts,
        clock: Clock,
        *,
        objects: Objects | None,
        changed: Callable[[str], None],
        event: Callable[[Pod, str, str, str], None],
        image_volumes: bool = False,
        images: ImageMounts | None = None,
        csi: Callable[[Tokens], CSIVolumes] | None = None,
    ) -> None:
        """`image_volumes`: the runtime can mount images; `images`: we do it for one that cannot."""
        self._clock = clock
        self._images = images
        self._changed = changed
        tokens = Tokens(client, clock)
        self.csi = csi(tokens) if csi is not None else None
        self._host = Host(root, facts, client, objects, tokens, event, image_volumes or bool(images), self.csi)
        self._failures: ItemBackoff[str] = ItemBackoff(FIRST_RETRY, LONGEST_RETRY)
        self._locks: dict[str, asyncio.Lock] = {}
        self._timers: dict[str, Timer] = {}
        self.took: Callable[[str, str, float, bool], None] = lambda plugin, operation, seconds, ok: None
        """Called with the duration of each volume, and whether it was made ready."""
        self._ready: dict[str, dict[str, MountedVolume]] = {}
        """For each pod the volumes that have been made ready since this kubelet began."""

    async def ensure(self, pod: Pod) -> Volumes:
        """Make all volumes ready, or bring their contents up to date; raises `VolumeError`.

        Cheap when nothing has changed; call it at every sync of a pod. A volume that was ready and cannot be brought up
        to date stays as it is: its pod gets an event, and goes on.
        """
        uid = uid_of(pod)
        if self._host.objects is not None:
            self._host.objects.register(pod)
        volumes = used_volumes(pod)
        async with self._locks.setdefault(uid, asyncio.Lock()):
            ready = self._ready.setdefault(uid, {})
            results = await asyncio.gather(*(self._set_up(pod, each) for each in volumes), return_exceptions=True)
        failed: dict[str, Exception] = {}
        for volume, result in zip(volumes, results, strict=True):
            if isinstance(result, MountedVolume):
                ready[volume.name or ""] = result
            elif isinstance(result, ProcessingError | StepError):
                failed[volume.name or ""] = result
            else:
                raise result
        delay = self._failures.when(uid) if failed else 0.0
        missing = {name: error for name, error in failed.items() if name not in ready}
        told = _messages(missing)
        for message in [*told[1:], *(str(error) for name, error in failed.items() if name in ready)]:
            self._host.event(pod, "Warning", "FailedMount", message)
        if told:
            raise VolumeError(told[0], retry_after=delay)
        if not failed:
            self._failures.forget(uid)
        self._wake_later(uid, delay)
        return {name: ready[name] for name in (volume.name or "" for volume in volumes)}

    async def teardown(self, uid: str) -> None:
        """Unmount and remove the volumes of a pod whose containers are gone; may be called again after a failure.

        Raises `VolumeError` while something is in use.
        """
        if self._host.objects is not None:
            self._host.objects.unregister(uid)
        self._host.tokens.forget(uid)
        self._host.shown.pop(uid, None)
        self._failures.forget(uid)
        self._ready.pop(uid, None)
        if timer := self._timers.pop(uid, None):
            timer.cancel()
        folder = self._host.pod_folder(uid)
        async with self._locks.setdefault(uid, asyncio.Lock()):
            try:
                if self.csi is not None:
                    # Parts of a volume are mounted from it, and keep it busy.
                    parts = folder / subpath.FOLDER
                    await offload.run(f"volumes of pod {uid}", REMOVE_WITHIN, _unmount_volumes, parts)
                    await self.csi.tear_down(uid)
                await offload.run(f"volumes of pod {uid}", REMOVE_WITHIN, _unmount_volumes, folder)
                await offload.run(f"volumes of pod {uid}", REMOVE_WITHIN, local.release, self._host.root)
                if self._images is not None:
                    await self._images.release(uid)
                await offload.run(f"volumes of pod {uid}", REMOVE_WITHIN, _remove_volumes, folder)
            except StepError as error:
                raise VolumeError(str(error)) from None
            except (OSError, CRIError) as error:
                raise VolumeError(f"UnmountVolume.TearDown failed for pod {uid} : {why(error)}") from None
        self._locks.pop(uid, None)

    async def remove(self, uid: str) -> None:
        """Remove the whole folder of a pod that is gone, its volumes first."""
        await self.teardown(uid)
        try:
            await offload.run(f"volumes of pod {uid}", REMOVE_WITHIN, remove_tree, self._host.pod_folder(uid))
        except OSError as error:
            raise VolumeError(f"cannot remove the folder of pod {uid}: {why(error)}") from None

    def has_volumes(self, uid: str) -> bool:
        """Whether a volume of a pod is still there; while one is, the pod must not be taken out of the API."""
        folder = self._host.pod_folder(uid)
        parts = (folder / "volumes", folder / "volumeDevices", folder / subpath.FOLDER)
        return any(part.is_dir() and any(part.iterdir()) for part in parts)

    def orphans(self, known: Collection[str]) -> list[str]:
        """The uids of pods that have a folder here and are not known."""
        try:
            found = os.listdir(self._host.root / "pods")
        except FileNotFoundError:
            return []
        return sorted(uid for uid in found if uid not in known)

    async def _set_up(self, pod: Pod, volume: Volume) -> MountedVolume:
        name = volume.name or ""
        kind = next((each for each in KINDS if getattr(volume, each) is not None), None)
        if kind is None or (kind == "csi" and self.csi is None):
            raise persistent_volume_claim.refusal(volume, name)
        ready = self._ready[uid_of(pod)].get(name)
        if ready is not None and kind not in SHOWING:
            if self.csi is not None and kind in CLAIMING:
                await self._refresh(self.csi, pod, name)
            return ready
        plugin, begin, ok = PLUGINS.get(kind, kind), time.monotonic(), False
        try:
            made = await KINDS[kind](self._host, pod, volume)
            ok = True
            if ready is None:
                klog.info(log, 1, "MountVolume.SetUp succeeded for volume", volumeName=name, pod=key_of(pod))
            return made
        except (errors.APIError, OSError, ValueError, TokenError) as error:
            raise StepError("MountVolume.SetUp failed", name, why(error)) from None
        finally:
            if ready is None:
                self.took(plugin, "volume_mount", time.monotonic() - begin, ok)

    async def _refresh(self, csi: CSIVolumes, pod: Pod, name: str) -> None:
        try:
            await csi.refresh(pod, name)
        except (errors.APIError, OSError) as error:
            raise StepError("MountVolume.SetUp failed", name, why(error)) from None

    def plugins_of(self, pod: Pod) -> list[tuple[str, bool]]:
        """The plugin of each volume that a pod uses, and whether it is ready."""
        ready = self._ready.get(uid_of(pod), {})
        kinds = (
            (each.name, next((kind for kind in KINDS if getattr(each, kind) is not None), ""))
            for each in used_volumes(pod)
        )
        return [(PLUGINS.get(kind, kind), name in ready) for name, kind in kinds]

    def _wake_later(self, uid: str, delay: float) -> None:
        """Look again when something should be tried again, or a token renewed."""
        if timer := self._timers.pop(uid, None):
            timer.cancel()
        renew = self._host.tokens.renew_at(uid)
        delays = [delay] if delay else []
        if renew is not None:
            delays.append(max(renew - self._clock.now(), SHORTEST_RENEWAL))
        if delays:
            self._timers[uid] = self._clock.call_later(min(delays), self._changed, uid)


def used_volumes(pod: Pod) -> list[Volume]:
    """The volumes that a container mounts; the pod does not wait for the others."""
    spec = pod.spec or PodSpec()
    used = set()
    for container in all_containers(spec):
        used |= {each.name for each in (*(container.volume_mounts or ()), *(container.volume_devices or ()))}
    return [volume for volume in spec.volumes or () if volume.name in used]


def _messages(failed: dict[str, Exception]) -> list[str]:
    unknown = [name for name, error in failed.items() if isinstance(error, ProcessingError)]
    steps = [str(error) for error in failed.values() if isinstance(error, StepError)]
    if not unknown:
        return steps
    why = "; ".join(str(failed[name]) for name in unknown)
    return [
        f"Unable to attach or mount volumes: unmounted volumes=[{' '.join(failed)}], unattached volumes=[],"
        f" failed to process volumes=[{' '.join(unknown)}]: {why}",
        *steps,
    ]


def _unmount_volumes(folder: Path) -> None:
    for each in reversed(mounts(folder)):
        unmount(each.path)
    if left := mounts(folder):  # nothing may be removed through a mount: it is another owner's data
        raise OSError(f"{left[0].path} is still mounted")


def _remove_volumes(folder: Path) -> None:
    for part in (subpath.FOLDER, "volumes", "volumeDevices", "plugins"):
        remove_tree(folder / part)
