"""Containers: created, started, stopped, removed, and what is known of them.

The launcher reports exits; `ended` writes them down first and notifies listeners then, so that a listener finds
it in the status.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

from . import node_paths
from . import spec as specs
from .events import Events
from .groups import Group, Groups, remove_group
from .images import volumes
from .images.copying import copy_layers
from .images.store import ImageStore, Rootfs
from .launching import LauncherError, Launching
from .sandboxes import Sandboxes, matches
from .state import Container, Records, new_id

log = logging.getLogger(__name__)

KILLED = 60.0
"""Seconds that a killed process may take to go; one that waits for a dead disk takes longer."""
START_WITHIN = 110.0
"""Seconds until a container's program runs; less than the kubelet waits for the answer."""
START_ERROR = "StartError"
NOT_STARTED = 128
UNKNOWN_END = 255
"""Exit codes of containerd: for a program that could not be run, and for an unknown exit code."""


class Containers:
    """All containers of this node."""

    def __init__(
        self,
        root: Path,
        state: Path,
        launching: Launching,
        sandboxes: Sandboxes,
        images: ImageStore,
        events: Events,
        groups: Groups,
    ) -> None:
        self._groups = groups
        self._mount_point = state / "rootfs"  # each container mounts there, in a mount namespace of its own
        self._mount_point.mkdir(parents=True, exist_ok=True)
        self._launching = launching
        self._sandboxes = sandboxes
        self._images = images
        self._events = events
        self._records = Records(root / "containers", Container, cri.ContainerConfig)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._ends: dict[str, asyncio.Event] = {}
        self.all: dict[str, Container] = {}
        self.pids: dict[str, int] = {}
        self._being_made: list[Container] = []
        """Those whose names are taken already."""
        self._sweeps: dict[str, asyncio.Task[None]] = {}
        """Cgroups of containers that have ended and are being removed."""
        sandboxes.stop_containers = self.stop_all

    def get(self, id: str) -> Container:
        """The container of an id; NotFound."""
        found = self.all.get(id)
        if found is None:
            text = f'an error occurred when try to find container "{id}": not found'
            raise CRIError("NotFound", text)
        return found

    def spec(self, id: str) -> Path:
        """The file that tells how it is started."""
        return self._records.spec(id)

    def in_sandbox(self, id: str) -> list[Container]:
        """The containers of a sandbox."""
        return [each for each in self.all.values() if each.sandbox_id == id]

    def cgroup(self, container: Container) -> Group:
        """Where its processes are."""
        parent = self._sandboxes.get(container.sandbox_id).config.linux.cgroup_parent
        return self._groups.of(parent, container.id)

    async def create(self, request: Any) -> str:
        """Makes a container; its id."""
        sandbox = self._sandboxes.get(request.pod_sandbox_id)
        if not sandbox.ready:
            raise CRIError("Unknown", f"failed to create container: sandbox {sandbox.id} is not running")
        config = request.config
        for other in [*self.in_sandbox(sandbox.id), *self._being_made]:
            if other.sandbox_id == sandbox.id and other.config.metadata == config.metadata:
                pod = sandbox.config.metadata
                name = f"{config.metadata.name}_{pod.name}_{pod.namespace}_{pod.uid}_{config.metadata.attempt}"
                text = f'failed to reserve container name "{name}": name "{name}" is reserved for "{other.id}"'
                raise CRIError("Unknown", text)
        if config.linux.security_context.privileged and not sandbox.config.linux.security_context.privileged:
            raise CRIError("Unknown", "no privileged container allowed in sandbox")
        self._check_target(config.linux.security_context.namespace_options, sandbox.id)
        image = self._find_image(config.image.image)
        container = Container(new_id(), config, sandbox.id, image, created_at=time.time_ns())
        if config.log_path and sandbox.config.log_directory:
            container.log_path = os.path.join(sandbox.config.log_directory, config.log_path)
        group = self._groups.of(sandbox.config.linux.cgroup_parent, container.id)
        self._records.create(container)
        self._being_made.append(container)
        try:
            await node_paths.add_cdi_devices(config, sandbox.config.metadata.uid)
            paths = await node_paths.found(config, sandbox.config.metadata.uid)
            rootfs = self._images.rootfs(image, container.id)
            files = self._sandboxes.files(sandbox)
            own = await self._own_volumes(rootfs, {*files, *specs.mount_targets(config)})
            container.stop_signal = specs.stop_signal(config, rootfs.config)
            wanted = specs.container_spec(
                container,
                sandbox,
                rootfs,
                self._mount_point,
                group.folders(),
                self._groups.kinds,
                {**own, **files},
                lambda name: self._volume(name, container.id),
                paths.devices,
                plain=bool(self._sandboxes.plain_address),
            )
            if self._sandboxes.plain_address:
                lower = [rootfs.layers / name for name in reversed(rootfs.lower)]
                await asyncio.to_thread(copy_layers, lower, rootfs.upper)
            if not sandbox.ready:  # stopped meanwhile
                raise CRIError("Unknown", f"failed to create container: sandbox {sandbox.id} is not running")
            group.create()
            group.limit(config.linux.resources)
            group.allow_devices(paths.device_rules)
            self._records.write_spec(container.id, wanted)
            self._records.save(container)
        except BaseException as error:
            _remove(group)
            self._images.release(container.id)
            self._records.remove(container.id)
            if isinstance(error, OSError):
                raise CRIError("Unknown", f"failed to create container: {error}") from None
            raise
        finally:
            self._being_made.remove(container)
        self.all[container.id] = container
        self._events.tell(cri.CONTAINER_CREATED_EVENT, container.id, sandbox.id)
        return container.id

    def _check_target(self, options: Any, sandbox_id: str) -> None:
        """Refuse the processes of a container of another pod: its root and environment would come with them."""
        if options.pid != cri.TARGET:
            return
        target = self.all.get(options.target_id)
        if target is None or target.sandbox_id != sandbox_id:
            text = f'invalid target container: there is no container "{options.target_id}" in sandbox "{sandbox_id}"'
            raise CRIError("InvalidArgument", text)

    async def _own_volumes(self, rootfs: Rootfs, taken: set[str]) -> dict[str, Path]:
        """The folders of the image's own volumes; a plain process has a copy of the whole image."""
        paths = volumes.wanted(rootfs, taken)
        if not paths or self._sandboxes.plain_address:
            return {}
        try:
            return await asyncio.to_thread(volumes.make, rootfs, paths)
        except volumes.VolumeError as error:
            raise CRIError("Unknown", f"failed to create container: {error}") from None

    def _volume(self, name: str, id: str) -> list[str]:
        try:
            return self._images.volume(name, id)
        except KeyError:
            raise CRIError("NotFound", f'failed to resolve image volume "{name}": not found') from None

    def _find_image(self, name: str) -> str:
        try:
            image = self._images.find(name)
        except ValueError as error:
            raise CRIError("InvalidArgument", str(error)) from None
        if image is None:
            raise CRIError("NotFound", f'failed to resolve image "{name}": not found')
        return image.id

    async def start(self, id: str) -> None:
        """Starts a container that was created."""
        async with self._locks[id]:
            container = self.get(id)
            if container.started_at or container.finished_at:
                state = "CONTAINER_RUNNING" if container.running else "CONTAINER_EXITED"
                raise CRIError("Unknown", f'failed to start container "{id}": container is in {state} state')
            self._ends[id] = asyncio.Event()
            # Written down before: a runtime that is killed now finds a process, or knows that there was none.
            container.started_at, container.starting = time.time_ns(), True
            try:
                self._records.save(container)
            except OSError as error:
                container.started_at, container.starting = 0, False
                del self._ends[id]
                raise CRIError("Unknown", f"failed to start container: {error}") from None
            try:
                async with asyncio.timeout(START_WITHIN):
                    answer = await self._launching.start(self._records.spec(id))
            except (LauncherError, TimeoutError) as error:
                if isinstance(error, TimeoutError):  # it mounts what does not answer
                    self.cgroup(container).kill()
                    with contextlib.suppress(LauncherError):
                        await self._launching.signal(id, signal.SIGKILL)
                reason = str(error) or f"its process was not ready within {START_WITHIN:g} s and was killed"
                self.ended({"name": id, "at": time.time_ns(), "error": reason})
                raise CRIError("Unknown", f"failed to start container: {reason}") from None
            container.starting = False
            container.user = answer.get("user", [])
            if not container.finished_at:
                self.pids[id] = int(answer["pid"])
                self._groups.started(id, self.pids[id])
            self._records.try_save(container)
            self._events.tell(cri.CONTAINER_STARTED_EVENT, id, container.sandbox_id)

    def ended(self, end: dict[str, Any]) -> None:
        """A container's first process is gone, or never became its program (`error`)."""
        id = str(end["name"])
        self.pids.pop(id, None)
        container = self.all.get(id)
        if container is None:
            self._launching.forget(id)
            return
        if not container.finished_at:
            self._note(container, end)
            self._sweep(container)
            self._events.tell(cri.CONTAINER_STOPPED_EVENT, id, container.sandbox_id)
        waiting = self._ends.pop(id, None)
        if waiting is not None:
            waiting.set()

    def _note(self, container: Container, end: dict[str, Any]) -> None:
        container.finished_at, container.starting = int(end["at"]), False
        container.user = end.get("user", container.user)
        if "error" in end:
            container.exit_code, container.reason, container.message = NOT_STARTED, START_ERROR, str(end["error"])
        else:
            container.exit_code = int(end["code"])
            killed = self.cgroup(container).oom_kills() > 0
            usual = "OOMKilled" if killed else "Completed" if container.exit_code == 0 else "Error"
            container.reason = end.get("reason", usual)
        if self._records.try_save(container):  # else what the launcher has written stays for the next runtime
            self._launching.forget(container.id)

    def _sweep(self, container: Container) -> None:
        """With a PID namespace of its own nothing is left by now; otherwise its other processes go with its cgroup."""
        group = self.cgroup(container)
        group.kill()
        task = asyncio.get_running_loop().create_task(self._remove_group(container.id, group))
        self._sweeps[container.id] = task
        task.add_done_callback(lambda _: self._sweeps.pop(container.id, None))

    async def _remove_group(self, id: str, group: Group) -> None:
        try:
            await remove_group(id, group)
        except CRIError as error:
            log.info("later: %s", error.message)  # with the container
        else:
            self._groups.gone(id)

    async def stop(self, id: str, grace: float) -> None:
        """Asks a container to end, and ends it after the grace; one that does not run is no error.

        Its cgroup is gone then, so that the pod's may be given a lower limit.
        """
        await self._stop(id, grace)
        if (sweep := self._sweeps.get(id)) is not None:
            await asyncio.shield(sweep)

    async def _stop(self, id: str, grace: float) -> None:
        container = self.all.get(id)
        if container is None or not container.has_process:
            return
        end = self._ends.get(id)
        if end is None:
            return
        if grace > 0:
            with contextlib.suppress(LauncherError):  # it ends with its launcher
                await self._launching.signal(id, container.stop_signal)
            try:
                await asyncio.wait_for(end.wait(), grace)
                return
            except TimeoutError:
                pass
        with contextlib.suppress(LauncherError):
            await self._launching.signal(id, signal.SIGKILL)
        self.cgroup(container).kill()
        try:
            await asyncio.wait_for(end.wait(), KILLED)
        except TimeoutError:
            text = f'failed to stop container "{id}": it was killed and has not gone for {KILLED:.0f} s'
            raise CRIError("DeadlineExceeded", text) from None

    async def stop_all(self, sandbox_id: str, remove: bool) -> None:
        """Stops, or removes, all containers of a sandbox at once."""
        found = self.in_sandbox(sandbox_id)
        await asyncio.gather(*(self.remove(each.id) if remove else self.stop(each.id, 0) for each in found))

    async def remove(self, id: str) -> None:
        """Removes a container, by force; one that is not there is no error."""
        await self.stop(id, 0)
        async with self._locks[id]:
            container = self.all.get(id)
            if container is None:
                self._locks.pop(id, None)
                return
            await self.stop(id, 0)  # it may have been about to start
            group = self.cgroup(container)
            group.kill()
            await remove_group(id, group)
            self._groups.gone(id)
            await asyncio.to_thread(self._images.release, id)
            self._records.remove(id)
            self._launching.forget(id)
            del self.all[id]
        self._locks.pop(id, None)
        self._events.tell(cri.CONTAINER_DELETED_EVENT, id, container.sandbox_id)

    def update(self, id: str, resources: Any) -> None:
        """Changes a container's limits."""
        container = self.get(id)
        if container.finished_at:
            raise CRIError("Unknown", f'failed to update resources: container "{id}" is not running')
        self.cgroup(container).limit(resources)
        container.config.linux.resources.MergeFrom(resources)
        self._records.save_config(container)

    async def reopen_log(self, id: str) -> None:
        """Lets the log be a new file."""
        container = self.get(id)
        if not container.running:
            raise CRIError("Unknown", "container is not running")
        try:
            await self._launching.reopen(id)
        except LauncherError as error:
            raise CRIError("Unknown", str(error)) from None

    def recover(self, running: dict[str, int], exits: dict[str, dict[str, Any]]) -> None:
        """Finds out what there is after a start, and what happened meanwhile."""
        for container in self._records.load():
            if container.sandbox_id not in self._sandboxes.all:
                self._images.release(container.id)
                self._records.remove(container.id)
                continue
            self.all[container.id] = container
            if not container.has_process:
                continue
            self._ends[container.id] = asyncio.Event()
            if container.id in running:
                container.starting = False
                self.pids[container.id] = running[container.id]
                self._groups.started(container.id, running[container.id])
            else:
                self.ended(exits.get(container.id, unknown_end(container.id)))
        for id in self._images.containers():
            if id not in self.all:
                self._images.release(id)

    def status(self, container: Container) -> Any:
        """CRI's ContainerStatus."""
        config = container.config
        found = cri.ContainerStatus(
            id=container.id,
            metadata=config.metadata,
            state=state_of(container),
            created_at=container.created_at,
            started_at=0 if container.starting else container.started_at,
            finished_at=container.finished_at,
            exit_code=container.exit_code,
            image=config.image,
            image_ref=container.image_id,
            image_id=container.image_id,
            reason=container.reason,
            message=container.message,
            labels=config.labels,
            annotations=config.annotations,
            mounts=config.mounts,
            log_path=container.log_path,
            resources=cri.ContainerResources(linux=config.linux.resources),
            stop_signal=config.stop_signal,
        )
        image = self._images.find(container.image_id)
        if image is not None:  # a pod's status tells names, though the kubelet asked by id
            found.image.image = image.shown_name(config.image.user_specified_image) or config.image.image
            found.image_ref = next(iter(image.digests), container.image_id)
        if container.user:
            uid, gid, groups = container.user
            linux = cri.LinuxContainerUser(uid=uid, gid=gid, supplemental_groups=groups)
            found.user.CopyFrom(cri.ContainerUser(linux=linux))
        return found

    def list(self, filter: Any) -> list[Any]:
        """CRI's Containers that match a filter."""
        found = []
        for container in self.all.values():
            if filter.id and not container.id.startswith(filter.id):
                continue
            if filter.pod_sandbox_id and not container.sandbox_id.startswith(filter.pod_sandbox_id):
                continue
            if filter.HasField("state") and filter.state.state != state_of(container):
                continue
            if not matches(container.config.labels, filter.label_selector):
                continue
            found.append(
                cri.Container(
                    id=container.id,
                    pod_sandbox_id=container.sandbox_id,
                    metadata=container.config.metadata,
                    image=container.config.image,
                    image_ref=container.image_id,
                    image_id=container.image_id,
                    state=state_of(container),
                    created_at=container.created_at,
                    labels=container.config.labels,
                    annotations=container.config.annotations,
                )
            )
        return found


def _remove(group: Group) -> bool:
    """Whether it is gone."""
    try:
        group.remove()
    except CRIError as error:
        log.info("later: %s", error.message)  # with the container
        return False
    return True


def state_of(container: Container) -> int:
    """CRI's word for it."""
    if container.finished_at:
        return int(cri.CONTAINER_EXITED)
    return int(cri.CONTAINER_RUNNING if container.running else cri.CONTAINER_CREATED)


def unknown_end(id: str) -> dict[str, Any]:
    """The exit report of a process whose exit was not seen, in the launcher's form."""
    return {"name": id, "code": UNKNOWN_END, "at": time.time_ns(), "reason": "Unknown"}
