"""What a container gets beside what its spec says: devices of plugins, and CPUs of its own."""

from __future__ import annotations

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.v1 import Container, Pod
from pybernetes.client.keys import uid_of
from pybernetes.cri import v1 as cri

from .container_config import ContainerExtras
from .cpumanager.manager import CPUManager
from .devices.manager import DeviceManager


async def container_extras(
    pod: Pod, container: AnyContainer, devices: DeviceManager, cpus: CPUManager
) -> ContainerExtras:
    """Ask the managers."""
    uid, name = uid_of(pod), container.name or ""
    cpuset, exclusive = cpus.cpuset(uid, name), cpus.exclusive(uid, name)
    options = await devices.options(pod, container) if isinstance(container, Container) else None
    if options is None:
        return ContainerExtras(cpuset_cpus=cpuset, exclusive_cpus=exclusive)
    return ContainerExtras(
        devices=[
            cri.Device(host_path=host, container_path=inside, permissions=permissions)
            for host, inside, permissions in options.devices
        ],
        mounts=[
            cri.Mount(host_path=host, container_path=inside, readonly=read_only)
            for host, inside, read_only in options.mounts
        ],
        envs=options.envs,
        annotations=options.annotations,
        cdi_devices=options.cdi_devices,
        cpuset_cpus=cpuset,
        exclusive_cpus=exclusive,
    )
