"""Extended resources such as `example.com/gpu`, and who has which device.

Plugins register at a socket and send their devices in a stream. Devices are given to a pod's containers when it is
admitted, and written down before it starts, so that a restarted kubelet gives none away twice. A plugin that goes
away leaves its devices unhealthy; after five minutes its resource is gone from the node.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pybernetes.api.core.podresources import is_sidecar, parsed
from pybernetes.api.core.v1 import Container, ContainerStatus, Pod, PodSpec, ResourceHealth, ResourceStatus
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.keys import uid_of
from pybernetes.component import klog

from ..pod.refusal import PodRefused
from ..runtime.types import AnyContainer
from . import checkpoint, v1beta1
from .checkpoint import NO_NODE, Entry
from .plugin import Device, Plugin, PluginError
from .registration import RegistrationServer

STOP_GRACE_SECONDS: Final = 300.0
log = logging.getLogger(__name__)


DeviceInUse = tuple[str, str, tuple[int, ...]]
"""Resource, device, and the NUMA nodes that it is near to."""


@dataclass(slots=True)
class DeviceOptions:
    """Variables, mounts, devices and annotations that come with a container's devices, for its CRI config."""

    envs: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    mounts: list[tuple[str, str, bool]] = field(default_factory=list)
    """(host path, container path, read only)"""
    devices: list[tuple[str, str, str]] = field(default_factory=list)
    """(host path, container path, permissions such as `rw`)"""
    cdi_devices: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Resource:
    """The state of one resource. Without a plugin its devices come from the checkpoint, and are unhealthy."""

    plugin: Plugin | None = None
    watching: asyncio.Task[None] | None = None
    devices: dict[str, Device] = field(default_factory=dict)
    expiry: Timer | None = None

    def healthy(self) -> set[str]:
        return {each.id for each in self.devices.values() if each.healthy}


class DeviceManager:
    """Registration of plugins, their devices, and their allocation to containers."""

    def __init__(self, folder: Path, clock: Clock, changed: Callable[[], None]) -> None:
        """`folder`: `device-plugins` in the kubelet's folder; `changed` is called when capacity or health is another:
        the node's status, and those of pods with devices, must be updated."""
        self._folder, self._clock, self._changed = folder, clock, changed
        self._server = RegistrationServer(folder, self._register)
        self._resources: dict[str, _Resource] = {}
        self._removed: set[str] = set()
        self._entries: dict[tuple[str, str, str], Entry] = {}
        """By pod uid, container, resource."""
        self._running: set[tuple[str, str]] = set()
        self._turn = asyncio.Lock()
        self.took: Callable[[str, float], None] = lambda resource, seconds: None
        """Called with the duration of each Allocate."""
        self.registered: Callable[[str], None] = lambda resource: None
        """Called for each registration."""

    async def start(self, running: Iterable[tuple[str, str]] = ()) -> None:
        """Serve `kubelet.sock`; `running`: (pod uid, container name) of containers that run, after a restart: they
        have their devices, whatever plugins are there by now."""
        self._running = set(running)
        entries, registered = checkpoint.load(self._folder)
        self._entries = {(each.pod_uid, each.container_name, each.resource_name): each for each in entries}
        for name in registered:
            self._stopped(name, self._resources.setdefault(name, _Resource()))
        await self._server.start()

    async def stop(self) -> None:
        """Close all connections; what is allocated stays in the checkpoint."""
        await self._server.stop()
        for each in self._resources.values():
            if each.expiry is not None:
                each.expiry.cancel()
            if each.watching is not None:
                each.watching.cancel()
                await asyncio.gather(each.watching, return_exceptions=True)
            if each.plugin is not None:
                await each.plugin.close()

    def capacity(self) -> tuple[dict[str, int], dict[str, int], set[str]]:
        """For the node's status: capacity, allocatable (the healthy ones), and resources that are gone (zero)."""
        everything = {name: len(each.devices) for name, each in self._resources.items()}
        healthy = {name: len(each.healthy()) for name, each in self._resources.items()}
        return everything, healthy, self._removed - set(everything)

    def holders(self) -> set[str]:
        """The uids of pods that have devices."""
        return {key[0] for key in self._entries}

    def in_use(self, uid: str, container: str) -> list[DeviceInUse]:
        """The devices that a container has."""
        return [
            (resource, id, () if node == NO_NODE else (node,))
            for (owner, name, resource), entry in sorted(self._entries.items(), key=lambda each: each[0])
            if (owner, name) == (uid, container)
            for node, ids in sorted((entry.device_ids or {}).items())
            for id in ids
        ]

    def allocatable(self) -> list[DeviceInUse]:
        """The healthy devices, whether or not a container has them."""
        return [
            (name, each.id, each.nodes)
            for name, resource in sorted(self._resources.items())
            for _, each in sorted(resource.devices.items())
            if each.healthy
        ]

    def allocated(self) -> dict[str, int]:
        """How many devices pods have: the node must not seem to have fewer when it admits these pods again."""
        counts: dict[str, int] = {}
        for entry in self._entries.values():
            counts[entry.resource_name] = counts.get(entry.resource_name, 0) + len(entry.ids)
        return counts

    async def admit(self, pod: Pod, active: Iterable[str]) -> None:
        """Choose devices for all containers of a pod; `PodRefused` (UnexpectedAdmissionError) if there are none.

        `active` are the uids of pods that are not terminated: devices of others are free. Init containers that end
        lend their devices to those after them.
        """
        spec = pod.spec or PodSpec()
        if not any(self._wanted(each) for each in (*(spec.init_containers or ()), *(spec.containers or ()))):
            return
        uid = uid_of(pod)
        async with self._turn:
            known = {*active, uid}
            self._entries = {key: entry for key, entry in self._entries.items() if key[0] in known}
            reusable: dict[str, set[str]] = {}
            try:
                for container in spec.init_containers or ():
                    await self._allocate(uid, container, reusable, lend=not is_sidecar(container))
                for container in spec.containers or ():
                    await self._allocate(uid, container, reusable, lend=False)
            except PluginError as error:
                message = f"Allocate failed due to {error}, which is unexpected"
                raise PodRefused("UnexpectedAdmissionError", message) from error

    async def options(self, pod: Pod, container: AnyContainer) -> DeviceOptions | None:
        """Combine the plugins' responses for the container's devices; calls PreStartContainer where plugins ask for it.

        Raises `PluginError`: the container cannot be started (yet).
        """
        entries = [
            entry
            for (uid, name, _), entry in sorted(self._entries.items())
            if (uid, name) == (uid_of(pod), container.name)
        ]
        if not entries:
            return None
        options = DeviceOptions()
        for entry in entries:
            resource = self._resources.get(entry.resource_name)
            if resource is not None and resource.plugin is not None and resource.plugin.pre_start_required:
                await resource.plugin.pre_start(entry.ids)
            _merge(options, v1beta1.ContainerAllocateResponse.FromString(entry.alloc_resp or b""), entry)
        return options

    def status(self, pod: Pod, statuses: Iterable[ContainerStatus]) -> None:
        """Put `allocatedResourcesStatus` (health of devices) into container statuses."""
        for status in statuses:
            found = []
            for (uid, name, resource), entry in sorted(self._entries.items()):
                if (uid, name) == (uid_of(pod), status.name):
                    devices = self._resources[resource].devices if resource in self._resources else {}
                    health = [
                        ResourceHealth(
                            resource_id=id,
                            health="Healthy" if id not in devices or devices[id].healthy else "Unhealthy",
                        )
                        for id in sorted(entry.ids)
                    ]
                    found.append(ResourceStatus(name=resource, resources=health))
            if found:
                status.allocated_resources_status = found

    def remove(self, uid: str) -> None:
        """Give the devices of a pod back."""
        mine = [key for key in self._entries if key[0] == uid]
        for key in mine:
            del self._entries[key]
        if mine:
            self._save()

    # plugins

    async def _register(self, name: str, socket: Path, options: Any) -> None:
        plugin = Plugin(name, socket, options)
        await plugin.connect()
        resource = self._resources.setdefault(name, _Resource())
        if resource.watching is not None:
            resource.watching.cancel()
        if resource.plugin is not None:
            await resource.plugin.close()
        if resource.expiry is not None:
            resource.expiry.cancel()
            resource.expiry = None
        self._removed.discard(name)
        resource.plugin = plugin
        self.registered(name)
        resource.watching = asyncio.create_task(self._watch(name, resource, plugin))
        log.info("device plugin %s registered at %s", name, socket)

    async def _watch(self, name: str, resource: _Resource, plugin: Plugin) -> None:
        def update(devices: list[Device]) -> None:
            resource.devices = {each.id: each for each in devices}
            self._save()
            self._changed()

        try:
            await plugin.watch(update)
        except Exception:  # whatever a plugin says, it counts as stopped, and may register again
            log.exception("device plugin %s", name)
        if resource.plugin is plugin:
            await plugin.close()
            self._stopped(name, resource)
            self._save()
            self._changed()

    def _stopped(self, name: str, resource: _Resource) -> None:
        resource.plugin = None
        resource.devices = {id: Device(id, False, each.nodes) for id, each in resource.devices.items()}
        resource.expiry = self._clock.call_later(STOP_GRACE_SECONDS, self._expire, name, resource)

    def _expire(self, name: str, resource: _Resource) -> None:
        if resource.plugin is None and self._resources.get(name) is resource:
            del self._resources[name]
            self._removed.add(name)
            self._save()
            self._changed()

    # allocation

    def _wanted(self, container: Container) -> dict[str, int]:
        """Resources of plugins that a container asks for. Limits: extended resources are not overcommitted."""
        limits = parsed(container.resources.limits if container.resources else None)
        ours = {*self._resources, *(key[2] for key in self._entries)}
        return {name: value.value() for name, value in limits.items() if name in ours and value}

    async def _allocate(self, uid: str, container: Container, reusable: dict[str, set[str]], *, lend: bool) -> None:
        for name, count in self._wanted(container).items():
            own = await self._allocate_resource(uid, container.name or "", name, count, reusable.get(name, set()))
            if lend:
                reusable.setdefault(name, set()).update(own)
            else:
                reusable.get(name, set()).difference_update(own)

    async def _allocate_resource(self, uid: str, container: str, name: str, count: int, reusable: set[str]) -> set[str]:
        entry = self._entries.get((uid, container, name))
        had = entry.ids if entry is not None else set()
        if entry is not None and len(had) != count:
            raise PluginError(
                f'pod "{uid}" container "{container}" changed request for resource "{name}" from {len(had)} to {count}'
            )
        if entry is not None and (uid, container) in self._running:
            return had
        resource = self._resources.get(name)
        if resource is None:
            raise PluginError(f"cannot allocate unregistered device {name}")
        healthy = resource.healthy()
        if not healthy:
            raise PluginError(f"no healthy devices present; cannot allocate unhealthy devices {name}")
        if not had <= healthy:
            raise PluginError(
                f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {name}"
            )
        if entry is not None:
            return had
        if resource.plugin is None:
            raise PluginError(f"endpoint {name} has been stopped")
        klog.info(
            log,
            3,
            "Need devices to allocate for pod",
            deviceNumber=count,
            resourceName=name,
            podUID=uid,
            containerName=container,
        )
        chosen = await self._choose(resource, resource.plugin, name, count, reusable)
        begin = time.monotonic()
        response = await resource.plugin.allocate(chosen)
        self.took(name, time.monotonic() - begin)
        by_node: dict[int, list[str]] = {}
        for id in sorted(chosen):
            for node in resource.devices[id].nodes or (NO_NODE,):
                by_node.setdefault(node, []).append(id)
        said = response.SerializeToString()
        self._entries[uid, container, name] = Entry(uid, container, name, by_node, said)
        try:
            self._write()
        except OSError as error:  # a restarted kubelet would take the devices for free
            del self._entries[uid, container, name]
            raise PluginError(f"failed to write checkpoint: {error}") from None
        return chosen

    async def _choose(self, resource: _Resource, plugin: Plugin, name: str, count: int, reusable: set[str]) -> set[str]:
        """Choose devices: first those the pod can reuse, then those the plugin prefers, then any."""
        chosen = set(sorted(reusable)[:count])
        if len(chosen) == count:
            return chosen
        used = {id for entry in self._entries.values() if entry.resource_name == name for id in entry.ids}
        available = resource.healthy() - used
        missing = count - len(chosen)
        if len(available) < missing:
            raise PluginError(
                f"requested number of devices unavailable for {name}. Requested: {missing}, Available: {len(available)}"
            )
        preferred = await plugin.preferred(available | chosen, chosen, count)
        for id in [*sorted(preferred & available), *sorted(available - preferred)][:missing]:
            chosen.add(id)
        return chosen

    def _save(self) -> None:
        try:
            self._write()
        except OSError as error:  # what is too much in the file is corrected by the next change
            log.error("device allocations cannot be written to %s: %s", self._folder / checkpoint.FILE, error)

    def _write(self) -> None:
        registered = {name: each.healthy() for name, each in self._resources.items()}
        checkpoint.save(self._folder, [entry for _, entry in sorted(self._entries.items())], registered)


def _merge(options: DeviceOptions, response: Any, entry: Entry) -> None:
    """Several plugins may say something about one container; the same path or name is taken once, the first counts."""
    for key, value in sorted(response.envs.items()):
        if options.envs.setdefault(key, value) != value:
            log.warning("devices of %s: environment variable %s has conflicting settings", entry.pod_uid, key)
    for key, value in sorted(response.annotations.items()):
        if options.annotations.setdefault(key, value) != value:
            log.warning("devices of %s: annotation %s has conflicting settings", entry.pod_uid, key)
    for mount in response.mounts:
        if mount.container_path not in {each[1] for each in options.mounts}:
            options.mounts.append((mount.host_path, mount.container_path, mount.read_only))
    for device in response.devices:
        if device.container_path not in {each[1] for each in options.devices}:
            options.devices.append((device.host_path, device.container_path, device.permissions))
    for each in response.cdi_devices:
        if each.name not in options.cdi_devices:
            options.cdi_devices.append(each.name)
