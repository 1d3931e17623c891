"""From a pod to what the runtime is asked for: `PodSandboxConfig` and `ContainerConfig`.

`ConfigBuilder` gathers what they need from its parts (environment, mounts, security context, resources, DNS, names)
and makes the few files that must be there before. Everything that is wrong with a pod is a `ConfigError`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api import scheme
from pybernetes.api.core.v1 import Container, ContainerPort, Pod, PodSpec, Service
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.component import offload

from ..cgroups.container import ContainerSettings, linux_resources, overhead_resources, sandbox_resources
from ..error_text import why
from ..node.facts import NodeFacts
from ..runtime import labels
from ..runtime.types import AnyContainer
from ..volumes.base import Volumes
from ..volumes.image import ImageMounts
from ..watched_objects import Objects
from . import mounts, security
from .config_error import ConfigError
from .dns import ClusterDNS, DNSError, pod_dns
from .environment import Environments, check_size, string_size
from .expansion import MAX_STRING, TooLong, expand_known
from .hostname import HostnameError, kernel_hostname, pod_hostname

if TYPE_CHECKING:
    from pybernetes.cri import v1 as cri

FILES_WITHIN: Final = 10.0
"""Seconds for the folders and files of one container, and for opening and binding the parts of its volumes."""

Event = Callable[[Pod, str, str, str], None]
"""Pod, type, reason, message."""


@dataclass(slots=True)
class Settings:
    """The KubeletConfiguration's fields that matter here, under its names."""

    resources: ContainerSettings
    cluster_domain: str = "cluster.local"
    cluster_dns: Sequence[str] = ()
    resolv_conf: str = "/etc/resolv.conf"
    pod_logs_dir: Path = Path("/var/log/pods")
    seccomp_default: bool = False
    recursive_read_only: Callable[[], bool] = lambda: False
    """Whether the runtime can make mounts recursively read-only; it says so when it has answered."""
    runtime_has_cdi: Callable[[], bool] = lambda: True
    """Whether the runtime gives CDI devices to containers; else the kubelet puts what they need into the config."""


@dataclass(frozen=True, slots=True)
class ImageUser:
    """The user of an image, from the CRI's ImageStatus: a number, else a name.

    One that names neither runs as root: give 0.
    """

    uid: int | None = None
    username: str = ""


@dataclass(frozen=True, slots=True)
class ContainerExtras:
    """The devices, mounts and variables that device plugins and the CPU manager add to a container."""

    devices: Sequence[cri.Device] = ()
    mounts: Sequence[cri.Mount] = ()
    envs: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: Sequence[str] = ()
    cpuset_cpus: str = ""
    """The CPUs that it may run on; empty: any."""
    exclusive_cpus: bool = False
    """Whether they are this container's alone, so that it needs no quota."""


async def _apply_cdi(config: cri.ContainerConfig, uid: str) -> None:
    from pybernetes.cri import cdi

    names = [each.name for each in config.CDI_devices]
    del config.CDI_devices[:]
    try:
        await offload.run(f"pod {uid}", FILES_WITHIN, cdi.apply, config, names)
    except (cdi.CDIError, TimeoutError) as error:
        raise ConfigError(f"CDI device injection failed: {error}") from None


class ConfigBuilder:
    """Makes configs for the pods of one node.

    `objects` finds ConfigMaps and Secrets; `services` gives all Services, or None while they have not been read;
    `event` tells users (limits of DNS, missing cluster DNS); `images` mounts image volumes for a runtime that cannot.
    """

    def __init__(
        self,
        root: Path,
        facts: NodeFacts,
        settings: Settings,
        objects: Objects | None,
        services: Callable[[], Collection[Service] | None],
        event: Event,
        images: ImageMounts | None = None,
    ) -> None:
        self._root = root
        self._images = images
        self._facts = facts
        self._settings = settings
        self._environments = Environments(facts, objects, services)
        self._event = event

    async def sandbox(self, pod: Pod, attempt: int, *, cgroup_parent: str) -> cri.PodSandboxConfig:
        """Build the PodSandboxConfig for RunPodSandbox and make the log directory. Raises `ConfigError`."""
        from pybernetes.cri import v1 as cri

        metadata, spec, settings = pod.metadata or ObjectMeta(), pod.spec or PodSpec(), self._settings
        cluster = ClusterDNS(settings.cluster_dns, settings.cluster_domain, settings.resolv_conf, self._facts.ips)
        try:
            dns = pod_dns(pod, cluster, lambda reason, message: self._event(pod, "Warning", reason, message))
            hostname = kernel_hostname(pod, pod_hostname(pod, settings.cluster_domain))
        except (DNSError, HostnameError) as error:
            raise ConfigError(str(error)) from None
        sysctls = (spec.security_context.sysctls if spec.security_context else None) or ()
        folder = pod_logs_folder(settings.pod_logs_dir, pod)
        try:
            await offload.run(f"pod {metadata.uid}", FILES_WITHIN, _make, folder)
        except offload.Overdue as error:
            raise ConfigError(f"cannot create directory {folder}: {error}") from None
        return cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(
                name=metadata.name or "",
                namespace=metadata.namespace or "",
                uid=metadata.uid or "",
                attempt=attempt,
            ),
            labels=pod_labels(pod),
            annotations=metadata.annotations or {},
            dns_config=cri.DNSConfig(servers=dns.servers, searches=dns.searches, options=dns.options),
            hostname="" if spec.host_network else hostname,
            log_directory=str(folder),
            port_mappings=[
                cri.PortMapping(
                    host_ip=port.host_ip or "",
                    host_port=port.host_port or 0,
                    container_port=port.container_port or 0,
                    protocol=_protocol(port.protocol),
                )
                for container in spec.containers or ()
                for port in distinct_ports(container)
            ],
            linux=cri.LinuxPodSandboxConfig(
                cgroup_parent=cgroup_parent,
                security_context=security.sandbox_security(pod),
                sysctls={each.name or "": each.value or "" for each in sysctls},
                resources=cri.LinuxContainerResources(**sandbox_resources(pod, settings.resources)),
                overhead=cri.LinuxContainerResources(**overhead_resources(pod, settings.resources)),
            ),
        )

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
        """Build the ContainerConfig for CreateContainer; make folders, hosts file, termination message file and
        subpaths.

        `hash` is written to the annotations; `image_refs` are the pulled images of image volumes by volume name;
        `target_id` is the container whose processes an ephemeral container wants to see. Raises `ConfigError`.
        """
        from pybernetes.cri import v1 as cri

        extras = extras or ContainerExtras()
        settings = self._settings
        variables = dict(extras.envs) | await self._environments.of(pod, container, pod_ips, volumes)
        command, args = _expanded("command", container.command, variables), _expanded("args", container.args, variables)
        check_size(sum(map(string_size, (*command, *args, *variables, *variables.values()))))
        security.verify_non_root(pod, container, image_user.uid, image_user.username)
        context = security.container_security(
            pod,
            container,
            image_uid=image_user.uid,
            image_user=image_user.username,
            seccomp_root=str(self._root / "seccomp"),
            seccomp_default=settings.seccomp_default,
            target_id=target_id,
        )
        name = container.name or ""
        volumes = await self._with_images(pod, container, volumes, image_refs or {})
        mounted = await self._mounts(pod, container, pod_ips, volumes, variables, image_refs or {})
        resources = linux_resources(
            pod, container, settings.resources, cpuset=extras.cpuset_cpus, exclusive=extras.exclusive_cpus
        )
        config = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=name, attempt=restart_count),
            image=cri.ImageSpec(image=image_ref, user_specified_image=container.image or ""),
            command=command,
            args=args,
            working_dir=container.working_dir or "",
            envs=[
                cri.KeyValue(key=key, value=value.encode(errors="surrogateescape")) for key, value in variables.items()
            ],
            labels=container_labels(pod, name),
            annotations=dict(extras.annotations) | container_annotations(pod, container, restart_count, hash),
            devices=[*extras.devices, *mounts.block_devices(container, volumes)],
            CDI_devices=[cri.CDIDevice(name=each) for each in extras.cdi_devices],
            mounts=[*extras.mounts, *mounted],
            log_path=f"{name}/{restart_count}.log",
            stdin=bool(container.stdin),
            stdin_once=bool(container.stdin_once),
            tty=bool(container.tty),
            stop_signal=stop_signal(container),
            linux=cri.LinuxContainerConfig(
                resources=cri.LinuxContainerResources(**resources), security_context=context
            ),
        )
        if extras.cdi_devices and not settings.runtime_has_cdi():
            await _apply_cdi(config, (pod.metadata.uid if pod.metadata else None) or "")
        return config

    async def _with_images(
        self, pod: Pod, container: AnyContainer, volumes: Volumes, image_refs: Mapping[str, str]
    ) -> Volumes:
        if self._images is None:
            return volumes
        uid = (pod.metadata.uid if pod.metadata else None) or ""
        found = dict(volumes)
        for name in {each.name or "" for each in container.volume_mounts or ()}:
            volume = found.get(name)
            if volume is not None and volume.image:
                found[name] = await self._images.mount(uid, volume, image_refs.get(name, volume.image))
        return found

    async def _mounts(
        self,
        pod: Pod,
        container: AnyContainer,
        pod_ips: Sequence[str],
        volumes: Volumes,
        variables: Mapping[str, str],
        image_refs: Mapping[str, str],
    ) -> list[cri.Mount]:
        uid = (pod.metadata.uid if pod.metadata else None) or ""
        folder = self._root / "pods" / uid
        logs = pod_logs_folder(self._settings.pod_logs_dir, pod) / (container.name or "")
        try:
            hostname = pod_hostname(pod, self._settings.cluster_domain)
        except HostnameError as error:
            raise ConfigError(str(error)) from None
        recursive = self._settings.recursive_read_only()

        def make() -> list[cri.Mount]:
            _make(logs)
            _make(folder, 0o750)
            found = mounts.volume_mounts(
                folder, container, volumes, variables, image_refs=image_refs, recursive_read_only=recursive
            )
            return [
                *found,
                *mounts.hosts_mount(folder, pod, container, pod_ips, hostname),
                *mounts.termination_message_mount(folder, container),
            ]

        try:
            # In a thread: subPaths are in volumes, and a pod may have mounted something on the folders too.
            return await offload.run(f"pod {uid}", FILES_WITHIN, make)
        except offload.Overdue as error:
            name = quote(container.name or "")
            raise ConfigError(f"failed to prepare the files of container {name}: {error}") from None


def _expanded(field: str, texts: Sequence[str] | None, variables: Mapping[str, str]) -> list[str]:
    """Arguments with their variables. Raises `ConfigError` for one that is longer than the kernel takes."""
    found = []
    for index, text in enumerate(texts or ()):
        try:
            found.append(expand_known(text, variables))
        except TooLong as error:
            raise ConfigError(f"{field}[{index}]: {error}") from None
        if len(found[-1]) > MAX_STRING // 4 and string_size(found[-1]) - 9 > MAX_STRING:
            raise ConfigError(f"{field}[{index}]: {string_size(found[-1]) - 9} bytes; the kernel takes {MAX_STRING}")
    return found


def pod_logs_folder(pod_logs_dir: Path, pod: Pod) -> Path:
    """Where the logs of a pod are."""
    metadata = pod.metadata or ObjectMeta()
    return pod_logs_dir / f"{metadata.namespace}_{metadata.name}_{metadata.uid}"


def pod_labels(pod: Pod) -> dict[str, str]:
    """The labels of a sandbox: the pod's own, and who it is."""
    metadata = pod.metadata or ObjectMeta()
    return {**(metadata.labels or {}), **_identity(metadata)}


def container_labels(pod: Pod, name: str) -> dict[str, str]:
    """The labels of a container."""
    return {**_identity(pod.metadata or ObjectMeta()), labels.CONTAINER_NAME: name}


def container_annotations(pod: Pod, container: AnyContainer, restart_count: int, hash: str) -> dict[str, str]:
    """The annotations from which a restarted kubelet learns a container's settings, even if its pod is gone by then."""
    metadata, spec = pod.metadata or ObjectMeta(), pod.spec or PodSpec()
    found = {
        labels.HASH: hash,
        labels.RESTART_COUNT: str(restart_count),
        labels.TERMINATION_MESSAGE_PATH: container.termination_message_path or "",
        labels.TERMINATION_MESSAGE_POLICY: container.termination_message_policy or "",
    }
    if metadata.deletion_grace_period_seconds is not None:
        found[labels.DELETION_GRACE_PERIOD] = str(metadata.deletion_grace_period_seconds)
    if spec.termination_grace_period_seconds is not None:
        found[labels.TERMINATION_GRACE_PERIOD] = str(spec.termination_grace_period_seconds)
    if container.lifecycle is not None and container.lifecycle.pre_stop is not None:
        found[labels.PRE_STOP_HANDLER] = _json(container.lifecycle.pre_stop)
    if container.ports:
        found[labels.PORTS] = _json(container.ports)
    return found


def distinct_ports(container: Container) -> list[ContainerPort]:
    """A container's ports; of those with one name, or without and equal, the first."""
    found: dict[str, ContainerPort] = {}
    for port in container.ports or ():
        family = "any" if not port.host_ip else "v6" if ":" in port.host_ip else "v4"
        usual = f"{family}-{port.protocol}-{port.host_ip}:{port.container_port}:{port.host_port}"
        found.setdefault(port.name or usual, port)
    return list(found.values())


def stop_signal(container: AnyContainer) -> int:
    """The signal that ends a container, if it names one; the image's otherwise."""
    from pybernetes.cri import v1 as cri

    name = container.lifecycle.stop_signal if container.lifecycle else None
    if not name:
        return int(cri.RUNTIME_DEFAULT)
    return int(getattr(cri, name.replace("+", "PLUS").replace("-", "MINUS")))


def _identity(metadata: ObjectMeta) -> dict[str, str]:
    return {
        labels.POD_NAME: metadata.name or "",
        labels.POD_NAMESPACE: metadata.namespace or "",
        labels.POD_UID: metadata.uid or "",
    }


def _protocol(name: str | None) -> int:
    from pybernetes.cri import v1 as cri

    return int({"UDP": cri.UDP, "SCTP": cri.SCTP}.get(name or "TCP", cri.TCP))


def _json(value: Any) -> str:
    return scheme.encoder.encode(value).decode()


def _make(folder: Path, mode: int = 0o755) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        raise ConfigError(f"cannot create directory {folder}: {why(error)}") from None
