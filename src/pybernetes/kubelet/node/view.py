"""Gathers the node's facts from the kubelet's parts: for the Node's status, and for admission of pods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from pybernetes.api.core.podresources import Quantities
from pybernetes.api.core.v1 import Node, NodeStatus
from pybernetes.api.quantity import Quantity
from pybernetes.client.clock import Clock
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from ..devices.manager import DeviceManager
from ..runtime.state import RuntimeState
from ..settings import KubeletSettings
from .allocatable import Machine, allocatable, capacity, check_reservation, enforced, reservation
from .status import NodeFindings, status_images

IMAGES_EVERY: Final = 30.0
"""Seconds for which a list of images is good enough."""
PATIENCE: Final = 5.0
"""Seconds to wait for one: a runtime that hangs must not keep its node from saying so."""
log = logging.getLogger(__name__)


class NodeView:
    """The node as it sees itself. `problems` are more reasons for not being ready; `pressure` is the eviction's."""

    def __init__(
        self,
        settings: KubeletSettings,
        machine: Machine,
        runtime: Runtime,
        state: RuntimeState,
        devices: DeviceManager,
        clock: Clock,
        *,
        problems: Callable[[], Iterable[str]],
        pressure: Callable[[str], bool],
        volumes_in_use: Callable[[], list[str]],
    ) -> None:
        self._settings = settings
        self._machine = machine
        self._runtime = runtime
        self._state = state
        self._devices = devices
        self._clock = clock
        self._problems = problems
        self._pressure = pressure
        self._volumes_in_use = volumes_in_use
        self._images: list[Any] = []
        self._images_listed = float("-inf")
        config = settings.config
        self.machine_capacity = capacity(
            machine, max_pods=config.max_pods or 0, pods_per_core=config.pods_per_core or 0
        )
        reserved = {"kube_reserved": config.kube_reserved or {}, "system_reserved": config.system_reserved or {}}
        hard = config.eviction_hard or {}
        check_reservation(self.machine_capacity, reservation(self.machine_capacity, eviction_hard=hard, **reserved))
        self.machine_allocatable = allocatable(self.machine_capacity, eviction_hard=hard, **reserved)
        self.enforced = enforced(self.machine_capacity, **reserved)
        """The limits of all pods together."""
        left = allocatable(self.machine_capacity, **reserved)["cpu"]
        self.reserved_milli_cpu = self.machine_capacity["cpu"].milli_value() - left.milli_value()

    def capacity(self) -> Quantities:
        """All that the node has, devices included; resources whose plugin is gone are zero."""
        total, _, gone = self._devices.capacity()
        return {**self.machine_capacity, **_amounts(dict.fromkeys(gone, 0)), **_amounts(total)}

    def allocatable(self) -> Quantities:
        """The node's allocatable resources with those of device plugins."""
        _, healthy, gone = self._devices.capacity()
        return {**self.machine_allocatable, **_amounts(dict.fromkeys(gone, 0)), **_amounts(healthy)}

    def with_own_reckoning(self, node: Node) -> Node:
        """The Node with what it has as we know it now, which the server may not have heard yet.

        Devices that pods have count whether their plugin has come back or not: these pods shall be admitted again.
        """
        mine = {name: str(value) for name, value in self.allocatable().items()}
        _, healthy, _ = self._devices.capacity()
        for name, count in self._devices.allocated().items():
            mine[name] = str(max(count, healthy.get(name, 0)))
        status = node.status or NodeStatus()
        status = msgspec.structs.replace(status, allocatable={**(status.allocatable or {}), **mine})
        return msgspec.structs.replace(node, status=status)

    async def findings(self) -> NodeFindings:
        """For the node's status."""
        await self._list_images()
        state, settings = self._state, self._settings
        limit = settings.config.node_status_max_images
        problems = [state.runtime_problem(), state.network_problem(), *self._problems()]
        return NodeFindings(
            name=settings.node_name,
            machine=self._machine,
            capacity=self.capacity(),
            allocatable=self.allocatable(),
            addresses=settings.node_ips,
            hostname=settings.hostname,
            port=settings.config.port or 10250,
            runtime_version=state.node_version,
            images=status_images(
                [(each.repo_tags, each.repo_digests, each.size) for each in self._images],
                50 if limit is None else limit,
            ),
            handlers=state.handlers,
            supplemental_groups_policy=state.supplemental_groups_policy,
            pressures={each: self._pressure(each) for each in ("MemoryPressure", "DiskPressure", "PIDPressure")},
            problems=[each for each in problems if each],
            volumes_in_use=self._volumes_in_use(),
        )

    async def _list_images(self) -> None:
        now = self._clock.monotonic()
        if now - self._images_listed <= IMAGES_EVERY:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                self._images = list((await self._runtime.list_images()).images)
            self._images_listed = now
        except CRIError as error:
            log.info("images cannot be listed: %s", error)
        except TimeoutError:
            self._images_listed = now
            log.warning("images cannot be listed: the runtime does not answer")


def _amounts(numbers: Mapping[str, int]) -> Quantities:
    return {name: Quantity(value) for name, value in numbers.items()}
