"""From a pod to what the runtime is asked for: `PodSandboxConfig` and `ContainerConfig`.

`ConfigBuilder` gathers what a container needs (environment, mounts, security context, resources) from its parts;
`sandbox_config` and `container_config` only put together what has been worked out, and read nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybernetes.api.core.v1 import Pod, Service
from pybernetes.api.quantity import Quantity

from .types import AnyContainer
from .volumes.base import Volumes

if TYPE_CHECKING:
    from pybernetes.cri import v1 as cri


class ConfigError(Exception):
    """A container cannot be described; its status says CreateContainerConfigError with this text."""


@dataclass(slots=True)
class NodeFacts:
    """What containers may ask about their node. One object, kept up to date by the kubelet."""

    name: str
    ips: Sequence[str] = ()
    """The node's addresses, the one of the preferred family first (`status.hostIPs`)."""
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)
    memory_capacity: int = 0
    """Bytes, for the oom score."""


@dataclass(slots=True)
class Settings:
    """The KubeletConfiguration's fields that matter here, under its names."""

    cluster_domain: str = "cluster.local"
    cluster_dns: Sequence[str] = ()
    resolv_conf: str = "/etc/resolv.conf"
    pod_logs_dir: Path = Path("/var/log/pods")
    seccomp_default: bool = False
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period_us: int = 100_000
    allowed_unsafe_sysctls: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ImageUser:
    """Who an image runs as, from the CRI's ImageStatus: a number, else a name, else nobody in particular (root)."""

    uid: int | None = None
    username: str = ""


@dataclass(frozen=True, slots=True)
class ContainerExtras:
    """What device plugins and the CPU manager add to a container."""

    devices: Sequence[cri.Device] = ()
    mounts: Sequence[cri.Mount] = ()
    envs: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: Sequence[str] = ()
    cpuset_cpus: str = ""
    exclusive_cpus: bool = False


class ConfigBuilder:
    """Makes configs for the pods of one node.

    `objects` finds ConfigMaps and Secrets (`objects.Objects`); `services` gives all Services, or None while they have
    not been read; `event(pod, type, reason, message)` tells users (DNS limits, missing cluster DNS).
    """

    def __init__(
        self,
        root: Path,
        facts: NodeFacts,
        settings: Settings,
        objects: Any,
        services: Callable[[], Collection[Service] | None],
        event: Callable[[Pod, str, str, str], None],
    ) -> None:
        raise NotImplementedError

    def sandbox(self, pod: Pod, attempt: int, *, cgroup_parent: str) -> cri.PodSandboxConfig:
        """What RunPodSandbox wants; the log directory is made. Raises `ConfigError`."""
        raise NotImplementedError

    async def container(
        self,
        pod: Pod,
        container: AnyContainer,
        *,
        restart_count: int,
        hash: str,
        image_ref: str,
        image_user: ImageUser,
        pod_ips: Sequence[str],
        volumes: Volumes,
        image_refs: Mapping[str, str] | None = None,
        target_id: str = "",
        extras: ContainerExtras | None = None,
    ) -> cri.ContainerConfig:
        """What CreateContainer wants: folders, hosts file, termination message file and subpaths are made.

        `hash` is written to the annotations; `image_refs` are the pulled images of image volumes by volume name;
        `target_id` is the container whose processes an ephemeral container wants to see. Raises `ConfigError`.
        """
        raise NotImplementedError
