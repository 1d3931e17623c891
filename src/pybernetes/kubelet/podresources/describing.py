"""Builds the responses of the pod-resources socket about pods and the node from the managers' state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Container, Pod, PodSpec
from pybernetes.client.keys import uid_of
from pybernetes.protofile import Proto, read

from ..cpumanager.manager import CPUManager
from ..devices.manager import DeviceInUse, DeviceManager
from ..dra.checkpoint import Claim, Device
from ..dra.manager import DRAManager


@dataclass(frozen=True, slots=True)
class Managers:
    """Those who know which container has what of the node."""

    devices: DeviceManager
    cpus: CPUManager
    dra: DRAManager


@cache
def proto() -> Proto:
    """Messages and calls of podresources/v1."""
    return read(Path(__file__).with_name("v1.proto"))


def pod_resources(pod: Pod, managers: Managers) -> Any:
    """A `PodResources`: sidecars, then containers. Init containers that end are not shown."""
    spec, meta = pod.spec or PodSpec(), pod.metadata
    sidecars = [each for each in spec.init_containers or () if is_sidecar(each)]
    return proto().names["PodResources"](
        name=(meta.name if meta else None) or "",
        namespace=(meta.namespace if meta else None) or "",
        containers=[_container(pod, each, managers) for each in (*sidecars, *(spec.containers or ()))],
    )


def allocatable(managers: Managers) -> Any:
    """An `AllocatableResourcesResponse`."""
    return proto().names["AllocatableResourcesResponse"](
        devices=_devices(managers.devices.allocatable()), cpu_ids=sorted(managers.cpus.allocatable())
    )


def _container(pod: Pod, container: Container, managers: Managers) -> Any:
    uid, name = uid_of(pod), container.name or ""
    return proto().names["ContainerResources"](
        name=name,
        devices=_devices(managers.devices.in_use(uid, name)),
        cpu_ids=sorted(managers.cpus.exclusive_cpus(uid, name)),
        dynamic_resources=_claims(managers.dra.container_devices(pod, container)),
    )


def _devices(found: Iterable[DeviceInUse]) -> list[Any]:
    names = proto().names
    made = []
    for resource, id, nodes in found:
        one = names["ContainerDevices"](resource_name=resource, device_ids=[id])
        if nodes:
            one.topology.nodes.extend(names["NUMANode"](ID=each) for each in nodes)
        made.append(one)
    return made


def _claims(found: Iterable[tuple[Claim, str, Device]]) -> list[Any]:
    names = proto().names
    by_claim: dict[str, Any] = {}
    for claim, driver, device in found:
        one = by_claim.get(claim.claim_uid)
        if one is None:
            one = names["DynamicResource"](claim_name=claim.claim_name, claim_namespace=claim.namespace)
            by_claim[claim.claim_uid] = one
        one.claim_resources.add(
            driver_name=driver,
            pool_name=device.pool_name,
            device_name=device.device_name,
            share_id=device.share_id or "",
            cdi_devices=[names["CDIDevice"](name=each) for each in device.cdi_device_ids or ()],
        )
    return list(by_claim.values())
