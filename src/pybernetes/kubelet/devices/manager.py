"""Extended resources such as `example.com/gpu`, and who has which device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pybernetes.api.core.v1 import Container, ContainerStatus, Pod


@dataclass(slots=True)
class DeviceOptions:
    """What a container gets with its devices; to be put into its CRI config."""

    envs: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    mounts: list[tuple[str, str, bool]] = field(default_factory=list)
    """(host path, container path, read only)"""
    devices: list[tuple[str, str, str]] = field(default_factory=list)
    """(host path, container path, permissions such as `rw`)"""
    cdi_devices: list[str] = field(default_factory=list)


class DeviceManager:
    """Registration of plugins, their devices, and their allocation to containers."""

    def __init__(self, folder: Path, changed: Callable[[], None]) -> None:
        """`folder`: `device-plugins` in the kubelet's folder; `changed` is called when capacity is another."""
        raise NotImplementedError

    async def start(self, active: Iterable[tuple[str, str]] = ()) -> None:
        """Serve `kubelet.sock`; `active`: (pod uid, container name) of containers that run, after a restart."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Close all connections; what is allocated stays in the checkpoint."""
        raise NotImplementedError

    def capacity(self) -> tuple[dict[str, int], dict[str, int], set[str]]:
        """For the node's status: capacity, allocatable (the healthy ones), and resources that are gone."""
        raise NotImplementedError

    async def admit(self, pod: Pod, active: Iterable[str]) -> None:
        """Choose devices for all containers of a pod; `PodRefused` (UnexpectedAdmissionError) if there are none.

        `active` are the uids of pods that are not terminated: devices of others are free.
        """
        raise NotImplementedError

    async def options(self, pod: Pod, container: Container) -> DeviceOptions | None:
        """What the plugins said about the container's devices; calls PreStartContainer where plugins want it."""
        raise NotImplementedError

    def status(self, pod: Pod, statuses: Iterable[ContainerStatus]) -> None:
        """Put `allocatedResourcesStatus` (health of devices) into container statuses."""
        raise NotImplementedError

    def remove(self, uid: str) -> None:
        """Give the devices of a pod back."""
        raise NotImplementedError
