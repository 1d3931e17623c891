"""Container garbage collection: dead containers beyond the newest, unused sandboxes, logs without a container.

Runs every minute on the list of the runtime. The newest dead container of each name stays: the pod's status is made
from it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

from pybernetes.client.clock import Clock
from pybernetes.component import offload
from pybernetes.component.openat2 import open_without_links
from pybernetes.component.removal import remove_tree
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from ..runtime.types import ObservedContainer, ObservedPod

CONTAINERS_EVERY: Final = 60.0
"""Seconds; upstream's."""
REMOVE_WITHIN: Final = 10.0
"""Seconds for the removal of one container's logs."""
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
        """Called when a collection fails."""

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
        link = None
        if self._container_logs is not None:
            link = self._container_logs / f"{pod.ref.name}_{pod.ref.namespace}_{container.name}-{container.id}.log"
        try:
            await offload.run(f"logs of pod {pod.ref.uid}", REMOVE_WITHIN, _remove_logs, container, link)
        except OSError as error:  # others are to be collected all the same
            log.warning("the logs of container %s stay: %s", container.id, error)


def _remove_logs(container: ObservedContainer, link: Path | None) -> None:
    if container.log_path:
        for piece in Path(container.log_path).parent.glob(f"{container.restart_count}.log*"):
            piece.unlink(missing_ok=True)
    if link is not None:
        link.unlink(missing_ok=True)


def remove_orphaned_logs(pod_logs: Path, container_logs: Path | None, alive: Collection[str]) -> None:
    """Remove the log folders of pods that are not alive (by uid), and links that lead nowhere."""
    for folder in pod_logs.iterdir() if pod_logs.is_dir() else ():
        uid = folder.name.rpartition("_")[2]
        if folder.name.count("_") == 2 and uid not in alive:
            remove_tree(folder, ignore_errors=True)
    for link in container_logs.iterdir() if container_logs and container_logs.is_dir() else ():
        if link.is_symlink() and _leads_nowhere(link):
            link.unlink(missing_ok=True)


def _leads_nowhere(link: Path) -> bool:
    """Whether the log is gone; a look at it must not wait for what a pod may have mounted over its logs."""
    try:
        os.close(open_without_links(os.readlink(link), os.O_PATH))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False
