"""CRI's RuntimeService and ImageService: each call finds its part, and a start finds out what there was before."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybernetes.component.tasks import Tasks
from pybernetes.cri import v1 as cri
from pybernetes.version import GIT_VERSION

from .commands import Commands
from .containers import Containers, unknown_end
from .events import Events
from .groups import Cgroups, Groups, MarkedGroups, ProcessGroups
from .images.service import ImageService
from .images.store import ImageStore
from .launching import LauncherError, Launching
from .network import Network
from .sandboxes import Sandboxes, matches
from .stats import Stats

if TYPE_CHECKING:
    from .streaming import StreamingServer

log = logging.getLogger(__name__)

NAME = "pybernetes"
RELAUNCH = 1.0
"""Seconds between two attempts to get a launcher."""


@dataclass(frozen=True)
class Settings:
    """Where a runtime has its things."""

    root: Path
    """Survives a reboot: images, containers' files, records."""
    state: Path
    """Lost at a reboot: mounts, sockets."""
    cni_conf_dir: Path
    cni_bin_dirs: Sequence[str]
    cni_conf_template: Path | None = None
    images: Path | None = None
    """A folder of archives whose images are taken in."""
    registries: Sequence[Path] = ()
    """Folders of registries' settings: HOST/hosts.toml, as containerd's."""
    cgroups: bool = True
    """Whether we may have any."""
    plain_address: str = ""
    """Where containers are plain processes: the address of all pods."""


class EmbeddedRuntime:
    """The servicer; `recover` before it is served."""

    def __init__(self, settings: Settings) -> None:
        for folder in (settings.root, settings.state):
            folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        self.network = Network(settings.state, settings.cni_conf_dir, settings.cni_bin_dirs, settings.cni_conf_template)
        self.events = Events(self._described)
        self.images = ImageStore(settings.root / "images")
        self._images = ImageService(self.images, settings.images, settings.registries)
        self.launching = Launching(settings.state, self._ended, self._lost)
        groups: Groups = Cgroups()
        if not settings.cgroups:
            groups = MarkedGroups() if settings.plain_address else ProcessGroups()
        self._plain = bool(settings.plain_address)
        self.sandboxes = Sandboxes(
            *(settings.root, settings.state, self.launching, self.network, self.events, groups),
            plain_address=settings.plain_address,
        )
        self.containers = Containers(
            settings.root, settings.state, self.launching, self.sandboxes, self.images, self.events, groups
        )
        self.commands = Commands(self.launching, self.containers)
        self.stats = Stats(self.sandboxes, self.containers, self.images, groups)
        self.list_images = self._images.list_images
        self.stream_images = self._images.stream_images
        self.image_status = self._images.image_status
        self.pull_image = self._images.pull_image
        self.remove_image = self._images.remove_image
        self.image_fs_info = self._images.image_fs_info
        self._streaming: StreamingServer | None = None
        self._streaming_starts = asyncio.Lock()
        self.tasks = Tasks("runtime")
        self._undoing: set[asyncio.Task[None]] = set()
        """Removals of what was made for callers that hung up."""
        self._relaunching = asyncio.Lock()

    async def recover(self) -> None:
        """Connects to the launcher and learns what runs and what ended meanwhile."""
        async with self._relaunching:  # the launcher may be lost before it is known what was there
            running = await self._running()
            exits = self.launching.exits()
            self.sandboxes.recover(running)
            self.containers.recover(running, exits)
            await self._forget_others(running, exits)
        for name in self.network.kept():
            if name not in self.sandboxes.all:
                self.network.let_go(name)
        await self._images.look()

    async def close(self) -> None:
        """Lets go of the launcher; pods go on."""
        if self._streaming is not None:
            await self._streaming.stop()
        await self.tasks.stop()
        self.launching.close()

    def _ended(self, end: dict[str, Any]) -> None:
        if self.commands.ended(end):
            return
        if end["name"] in self.sandboxes.pids:
            self.sandboxes.ended(end["name"])
        else:
            self.containers.ended(end)
        if self.launching.problem and not self.sandboxes.pids:
            self.tasks.start("launcher", self._relaunch)

    def _lost(self) -> None:
        """The launcher was killed: exit codes are lost, so its processes end now and a new one is started."""
        self.commands.lost()
        self.tasks.start("launcher", self._relaunch)

    async def _relaunch(self) -> None:
        async with self._relaunching:  # the new one may be killed too, before all is known of the old one
            await self._begin_again()

    async def _begin_again(self) -> None:
        containers = [each for each in self.containers.all.values() if each.has_process]
        sandboxes = list(self.sandboxes.pids)
        running = await self._running()
        exits = self.launching.exits()  # it may have hung up on a runtime that did not listen, and be well
        for container in containers:
            if container.has_process and container.id not in running:
                self.containers.ended(exits.get(container.id, unknown_end(container.id)))
        for name in sandboxes:
            if name not in running:
                if name in self.sandboxes.all:  # otherwise it is just being made, which fails and takes it away
                    self.sandboxes.cgroup(self.sandboxes.all[name]).kill()
                self.sandboxes.ended(name)
        await self._forget_others(running, exits)

    async def _forget_others(self, running: Iterable[str], exits: Iterable[str]) -> None:
        """Ends processes without a known owner: commands, and containers that were just being started."""
        known = self.commands.names() | self.sandboxes.ids()
        for name in set(exits) - known - self.containers.all.keys():
            self.launching.forget(name)
        known |= {each.id for each in self.containers.all.values() if each.has_process}
        for name in set(running) - known:
            with contextlib.suppress(LauncherError):
                await self.launching.signal(name, signal.SIGKILL)

    async def _running(self) -> dict[str, int]:
        """The processes of the launcher, once one answers."""
        while True:
            try:
                await self.launching.connect()
                running = await self.launching.running()
                if not self.launching.problem or running:
                    return running
                await self.launching.replace()
                return {}
            except (OSError, LauncherError) as error:
                log.error("no launcher: %s", error)
                await asyncio.sleep(RELAUNCH)

    def _described(self, sandbox_id: str) -> tuple[Any, list[Any]]:
        sandbox = self.sandboxes.all.get(sandbox_id)
        status = self.sandboxes.status(sandbox) if sandbox else cri.PodSandboxStatus(id=sandbox_id)
        return status, [self.containers.status(each) for each in self.containers.in_sandbox(sandbox_id)]

    # The runtime

    async def version(self, request: Any) -> Any:
        """The runtime's name and version."""
        return cri.VersionResponse(
            version="0.1.0", runtime_name=NAME, runtime_version=GIT_VERSION, runtime_api_version=cri.VERSION
        )

    async def status(self, request: Any) -> Any:
        """Whether pods can be run."""
        problem = "" if self._plain else self.network.problem()
        failed = self.tasks.check() or self.launching.problem
        conditions = [
            cri.RuntimeCondition(
                type="RuntimeReady",
                status=not failed,
                reason="TaskFailed" if failed else "",
                message=failed,
            ),
            cri.RuntimeCondition(
                type="NetworkReady",
                status=not problem,
                reason="NetworkPluginNotReady" if problem else "",
                message=f"Network plugin returns error: {problem}" if problem else "",
            ),
        ]
        features = cri.RuntimeHandlerFeatures(recursive_read_only_mounts=True, user_namespaces=False)
        return cri.StatusResponse(
            status=cri.RuntimeStatus(conditions=conditions),
            runtime_handlers=[cri.RuntimeHandler(name=name, features=features) for name in ("", "embedded")],
            features=cri.RuntimeFeatures(supplemental_groups_policy=True),
        )

    async def runtime_config(self, request: Any) -> Any:
        """cgroups are folders here, not systemd's slices."""
        return cri.RuntimeConfigResponse(linux=cri.LinuxRuntimeConfiguration(cgroup_driver=cri.CGROUPFS))

    async def update_runtime_config(self, request: Any) -> Any:
        """The node's pod range."""
        self.network.set_pod_cidr(request.runtime_config.network_config.pod_cidr)
        return cri.UpdateRuntimeConfigResponse()

    async def get_container_events(self, request: Any) -> AsyncIterator[Any]:
        """Stream container events."""
        async for event in self.events.listen():
            yield event

    async def _unless_abandoned(
        self, making: asyncio.Future[str], remove: Callable[[str], Coroutine[Any, Any, None]]
    ) -> str:
        """The id of the created object. If the client disconnects, creation completes and the object is removed."""
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            undoing = asyncio.get_running_loop().create_task(_undo(making, remove))
            self._undoing.add(undoing)
            undoing.add_done_callback(self._undoing.discard)
            raise

    # Sandboxes

    async def run_pod_sandbox(self, request: Any) -> Any:
        """Makes and starts a sandbox."""
        making = asyncio.ensure_future(self.sandboxes.run(request.config, request.runtime_handler))
        id = await self._unless_abandoned(making, self.sandboxes.remove)
        return cri.RunPodSandboxResponse(pod_sandbox_id=id)

    async def stop_pod_sandbox(self, request: Any) -> Any:
        """Stops all in a sandbox."""
        await asyncio.shield(self.sandboxes.stop(request.pod_sandbox_id))
        return cri.StopPodSandboxResponse()

    async def remove_pod_sandbox(self, request: Any) -> Any:
        """Removes a sandbox and its containers."""
        await asyncio.shield(self.sandboxes.remove(request.pod_sandbox_id))
        self.stats.forget(request.pod_sandbox_id)
        return cri.RemovePodSandboxResponse()

    async def pod_sandbox_status(self, request: Any) -> Any:
        """A sandbox's state."""
        sandbox = self.sandboxes.get(request.pod_sandbox_id)
        status, statuses = self._described(sandbox.id)
        pid = str(self.sandboxes.pids.get(sandbox.id, 0))
        info = {"pid": pid, "netns": str(self.network.path(sandbox.id))} if request.verbose else {}
        return cri.PodSandboxStatusResponse(
            status=status, info=info, containers_statuses=statuses, timestamp=time.time_ns()
        )

    async def list_pod_sandbox(self, request: Any) -> Any:
        """The sandboxes that match a filter."""
        return cri.ListPodSandboxResponse(items=self.sandboxes.list(request.filter))

    async def update_pod_sandbox_resources(self, request: Any) -> Any:
        """The kubelet has changed the pod's cgroup itself; there is nothing else to change."""
        self.sandboxes.get(request.pod_sandbox_id)
        return cri.UpdatePodSandboxResourcesResponse()

    # Containers

    async def create_container(self, request: Any) -> Any:
        """Makes a container."""
        making = asyncio.ensure_future(self.containers.create(request))
        id = await self._unless_abandoned(making, self.containers.remove)
        return cri.CreateContainerResponse(container_id=id)

    async def start_container(self, request: Any) -> Any:
        """Starts a container."""
        await asyncio.shield(self.containers.start(request.container_id))
        return cri.StartContainerResponse()

    async def stop_container(self, request: Any) -> Any:
        """Stops a container."""
        await self.containers.stop(request.container_id, request.timeout)
        return cri.StopContainerResponse()

    async def remove_container(self, request: Any) -> Any:
        """Removes a container."""
        await asyncio.shield(self.containers.remove(request.container_id))
        self.stats.forget(request.container_id)
        return cri.RemoveContainerResponse()

    async def list_containers(self, request: Any) -> Any:
        """The containers that match a filter."""
        return cri.ListContainersResponse(containers=self.containers.list(request.filter))

    async def container_status(self, request: Any) -> Any:
        """A container's state."""
        container = self.containers.get(request.container_id)
        info = {"pid": str(self.containers.pids.get(container.id, 0))} if request.verbose else {}
        return cri.ContainerStatusResponse(status=self.containers.status(container), info=info)

    async def update_container_resources(self, request: Any) -> Any:
        """Changes limits."""
        self.containers.update(request.container_id, request.linux)
        return cri.UpdateContainerResourcesResponse()

    async def reopen_container_log(self, request: Any) -> Any:
        """Lets a log be a new file."""
        await self.containers.reopen_log(request.container_id)
        return cri.ReopenContainerLogResponse()

    async def exec_sync(self, request: Any) -> Any:
        """Runs a command to its end."""
        return await self.commands.run(request.container_id, list(request.cmd), request.timeout)

    # Streams

    async def _streams(self) -> StreamingServer:
        """The streaming server; started for the first who needs it, as most nodes are idle in this respect."""
        async with self._streaming_starts:
            if self._streaming is None:
                from .streaming import StreamingServer
                from .streams import Streams

                parts = Streams(self.launching, self.sandboxes, self.containers, self.commands, self.network)
                server = StreamingServer(parts)
                await server.start()
                self._streaming = server
            return self._streaming

    async def exec(self, request: Any) -> Any:
        """Where a command with streams is served."""
        return await (await self._streams()).exec(request)

    async def attach(self, request: Any) -> Any:
        """Where the streams of a container are served."""
        return await (await self._streams()).attach(request)

    async def port_forward(self, request: Any) -> Any:
        """Where ports of a pod are served."""
        return await (await self._streams()).port_forward(request)

    # Usage

    async def container_stats(self, request: Any) -> Any:
        """The usage of a container."""
        container = self.containers.get(request.container_id)
        await self.stats.measure([container])
        return cri.ContainerStatsResponse(stats=self.stats.container(container))

    async def list_container_stats(self, request: Any) -> Any:
        """The usage of containers."""
        wanted = request.filter
        found = [
            each
            for each in self.containers.all.values()
            if (not wanted.id or each.id == wanted.id)
            and (not wanted.pod_sandbox_id or each.sandbox_id == wanted.pod_sandbox_id)
            and matches(each.config.labels, wanted.label_selector)
        ]
        await self.stats.measure(found)
        return cri.ListContainerStatsResponse(stats=[self.stats.container(each) for each in found])

    async def pod_sandbox_stats(self, request: Any) -> Any:
        """The usage of a pod."""
        sandbox = self.sandboxes.get(request.pod_sandbox_id)
        await self.stats.measure(self.containers.in_sandbox(sandbox.id))
        return cri.PodSandboxStatsResponse(stats=self.stats.sandbox(sandbox))

    async def list_pod_sandbox_stats(self, request: Any) -> Any:
        """The usage of pods."""
        wanted = request.filter
        found = [
            each
            for each in self.sandboxes.all.values()
            if each.ready
            and (not wanted.id or each.id == wanted.id)
            and matches(each.config.labels, wanted.label_selector)
        ]
        await self.stats.measure([each for sandbox in found for each in self.containers.in_sandbox(sandbox.id)])
        return cri.ListPodSandboxStatsResponse(stats=[self.stats.sandbox(each) for each in found])


async def _undo(making: asyncio.Future[str], remove: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    try:
        id = await making
    except Exception as error:
        log.info("what was being made for a caller that hung up was not made: %s", error)
        return
    try:
        await remove(id)
    except Exception as error:
        log.error("%s was made for a caller that hung up, and cannot be removed: %s", id, error)


def lock(state: Path) -> int:
    """Makes sure that one runtime has this state folder; OSError if another one has it."""
    import fcntl

    state.mkdir(parents=True, exist_ok=True, mode=0o711)
    descriptor = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor
