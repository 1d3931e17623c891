"""Removes what nobody needs any more: dead containers beyond the last, old sandboxes, unused images.

What is dead is told by the runtime's own lists; which images are in use by the containers that there are, running or
not. Images go when their disk is nearly full, those first that were not used for longest.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pybernetes.client.clock import Clock
from pybernetes.component.removal import remove_tree
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from .pulled_images import PulledImages
from .runtime.types import ObservedContainer, ObservedPod

CONTAINERS_EVERY: Final = 60.0
IMAGES_EVERY: Final = 300.0
"""Seconds; upstream's."""
log = logging.getLogger(__name__)


def dead_containers(pod: ObservedPod, keep: int, now: float, least_age: float) -> list[ObservedContainer]:
    """The containers of a pod to remove: of each name all that ended, but for the newest so many."""
    doomed: list[ObservedContainer] = []
    for name in {each.name for each in pod.containers}:
        ended = [each for each in pod.containers if each.name == name and not each.running]
        alive = any(each.name == name and each.running for each in pod.containers)
        # Without a running one the newest is what the pod's status tells of, and is not counted.
        past = ended if alive else ended[1:]
        doomed += [each for each in past[keep:] if now - each.created_at >= least_age]
    return doomed


def dead_sandboxes(pod: ObservedPod) -> list[str]:
    """The sandboxes of a pod to remove: not the newest, not ready, and no container left in them."""
    used = {each.sandbox_id for each in pod.containers}
    return [each.id for each in pod.sandboxes[1:] if not each.ready and each.id not in used]


class ContainerCollector:
    """Removes dead containers and sandboxes of pods that go on. (Those of pods that are gone go with their pods.)"""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        observed: Callable[[], Iterable[ObservedPod]],
        container_logs: Path | None,
        *,
        keep: int = 1,
        keep_in_all: int = -1,
        least_age: float = 0.0,
    ) -> None:
        """`keep`: old runs of each container; `keep_in_all`: of all together, -1 for any number."""
        self._runtime = runtime
        self._clock = clock
        self._observed = observed
        self._container_logs = container_logs
        self._keep = max(0, keep)
        self._keep_in_all = keep_in_all
        self._least_age = least_age
        self.failed: Callable[[str], None] = lambda why: None
        """Told when a collection fails."""

    async def run(self) -> None:
        """Collect every minute until cancelled."""
        while True:
            await self._clock.sleep(CONTAINERS_EVERY)
            try:
                await self.collect()
            except (CRIError, OSError) as error:
                log.error("container garbage collection failed: %s", error)
                self.failed(str(error))

    async def collect(self, *, all_dead: bool = False) -> None:
        """Collect now; with `all_dead` nothing that has ended is kept beyond what statuses need."""
        keep, least_age = (0, 0.0) if all_dead else (self._keep, self._least_age)
        now = self._clock.now()
        pods = list(self._observed())
        doomed = [(pod, each) for pod in pods for each in dead_containers(pod, keep, now, least_age)]
        if self._keep_in_all >= 0:
            chosen = {each.id for _, each in doomed}
            rest = [(pod, each) for pod in pods for each in dead_containers(pod, 0, now, least_age)]
            rest = sorted((item for item in rest if item[1].id not in chosen), key=lambda item: -item[1].created_at)
            doomed += rest[self._keep_in_all :]
        for pod, each in doomed:
            await self._remove(pod, each)
        for pod in pods:
            for id in dead_sandboxes(pod):
                try:
                    await self._runtime.remove_pod_sandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=id))
                except CRIError as error:
                    log.info("sandbox %s stays for now: %s", id, error)

    async def _remove(self, pod: ObservedPod, container: ObservedContainer) -> None:
        try:
            await self._runtime.remove_container(cri.RemoveContainerRequest(container_id=container.id))
        except CRIError as error:
            log.info("container %s stays for now: %s", container.id, error)
            return
        if container.log_path:
            for piece in Path(container.log_path).parent.glob(f"{container.restart_count}.log*"):
                piece.unlink(missing_ok=True)
        if self._container_logs is not None:
            name = f"{pod.ref.name}_{pod.ref.namespace}_{container.name}-{container.id}.log"
            (self._container_logs / name).unlink(missing_ok=True)


def remove_orphaned_logs(pod_logs: Path, container_logs: Path | None, alive: Collection[str]) -> None:
    """Remove the log folders of pods that are not alive (by uid), and links that lead nowhere."""
    for folder in pod_logs.iterdir() if pod_logs.is_dir() else ():
        uid = folder.name.rpartition("_")[2]
        if folder.name.count("_") == 2 and uid not in alive:
            remove_tree(folder, ignore_errors=True)
    for link in container_logs.iterdir() if container_logs and container_logs.is_dir() else ():
        if link.is_symlink() and not link.exists():
            link.unlink(missing_ok=True)


@dataclass(slots=True)
class _Image:
    """What is remembered of an image."""

    detected: float
    used: float
    size: int
    pinned: bool


class ImageCollector:
    """Removes images that no container uses."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        pulled: PulledImages,
        event: Callable[[str, str, str], None],
        *,
        high: int = 85,
        low: int = 80,
        least_age: float = 120.0,
        greatest_age: float = 0.0,
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._pulled = pulled
        self._event = event
        self._high, self._low = high, low
        self._least_age, self._greatest_age = least_age, greatest_age
        self.removed: Callable[[str], None] = lambda reason: None
        """Told of each image that was removed: for `space`, or for its `age`."""
        self._images: dict[str, _Image] = {}

    async def run(self) -> None:
        """Look every five minutes until cancelled."""
        while True:
            await self._clock.sleep(IMAGES_EVERY)
            try:
                await self.collect()
            except (CRIError, OSError) as error:
                log.warning("image garbage collection: %s", error)
                self._event("Warning", "ImageGCFailed", str(error))

    async def collect(self) -> None:
        """Remove images if the disk is fuller than it should be, or they are too old."""
        in_use = await self._detect()
        if self._greatest_age:
            now = self._clock.now()
            for id, image in list(self._images.items()):
                old = id not in in_use and now - image.used > self._greatest_age
                if old and await self._remove(id):
                    self.removed("age")
        used, size = await self._usage()
        if not size or used * 100 < self._high * size:
            return
        wanted = used - size * self._low // 100
        freed = await self._free(wanted, in_use, self._least_age)
        if freed < wanted:
            message = (
                f"Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, "
                f"but only found {freed} bytes eligible to free."
            )
            self._event("Warning", "FreeDiskSpaceFailed", message)

    async def delete_unused(self) -> None:
        """Remove all images that are not in use, however young: the node is short of disk."""
        await self._free(1 << 62, await self._detect(), 0.0)

    async def _detect(self) -> set[str]:
        """Look which images there are; those that containers use."""
        images = (await self._runtime.list_images()).images
        containers = (await self._runtime.list_containers()).containers
        names = {name: each.id for each in images for name in (each.id, *each.repo_tags, *each.repo_digests)}
        in_use = {names[ref] for each in containers for ref in _references(each) if ref in names}
        now = self._clock.now()
        present = {each.id for each in images}
        self._images = {id: each for id, each in self._images.items() if id in present}
        for each in images:
            image = self._images.setdefault(each.id, _Image(now, 0.0, each.size, each.pinned))
            image.size, image.pinned = each.size, each.pinned
            if each.id in in_use:
                image.used = now
        self._pulled.keep(present)
        return in_use

    async def _free(self, wanted: int, in_use: set[str], least_age: float) -> int:
        now, freed = self._clock.now(), 0
        order = sorted(self._images.items(), key=lambda item: (item[1].used, item[1].detected))
        for id, image in order:
            if freed >= wanted:
                break
            if id in in_use or image.pinned or now - image.detected < least_age:
                continue
            if await self._remove(id):
                self.removed("space")
                freed += image.size
        return freed

    async def _remove(self, id: str) -> bool:
        try:
            await self._runtime.remove_image(cri.RemoveImageRequest(image=cri.ImageSpec(image=id)))
        except CRIError as error:
            log.info("image %s stays for now: %s", id, error)
            return False
        self._images.pop(id, None)
        return True

    async def _usage(self) -> tuple[int, int]:
        """Bytes used, and in all, of the disk that images are on."""
        found = (await self._runtime.image_fs_info()).image_filesystems
        mountpoint = found[0].fs_id.mountpoint if found else "/"
        try:
            space = os.statvfs(mountpoint)
        except FileNotFoundError:
            space = os.statvfs("/")
        return (space.f_blocks - space.f_bavail) * space.f_frsize, space.f_blocks * space.f_frsize


def _references(container: Any) -> Iterable[str]:
    return (container.image_ref, container.image.image, container.image_id)
