"""Gathers what a container gets in addition to its spec: devices of plugins and claims, and exclusive CPUs."""

from __future__ import annotations

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.v1 import Container, Pod
from pybernetes.client.keys import uid_of
from pybernetes.cri import v1 as cri

from ..cpumanager.manager import CPUManager
from ..devices.manager import DeviceManager
from ..dra.claims import ClaimError
from ..dra.manager import DRAManager
from .config import ContainerExtras
from .config_error import ConfigError


async def container_extras(
    pod: Pod, container: AnyContainer, devices: DeviceManager, cpus: CPUManager, dra: DRAManager
) -> ContainerExtras:
    """Ask the managers. Raises `ConfigError` if the container's claims are not prepared."""
    uid, name = uid_of(pod), container.name or ""
    cpuset, exclusive = cpus.cpuset(uid, name), cpus.exclusive(uid, name)
    options, claimed = None, []
    if isinstance(container, Container):
        try:
            claimed = dra.cdi_devices(pod, container)
        except ClaimError as error:
            raise ConfigError(str(error)) from None
        options = await devices.options(pod, container)
    if options is None:
        return ContainerExtras(cdi_devices=claimed, cpuset_cpus=cpuset, exclusive_cpus=exclusive)
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
        cdi_devices=list(dict.fromkeys([*claimed, *options.cdi_devices])),
        cpuset_cpus=cpuset,
        exclusive_cpus=exclusive,
    )
