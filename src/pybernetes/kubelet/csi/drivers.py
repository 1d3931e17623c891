"""CSI drivers that have registered with this kubelet (`plugins.registry.Handler` for plugins of type CSIPlugin).

A driver is taken when it has said which node this is (NodeGetInfo) and the CSINode says so too. Of two with one name
the one that registered last is used.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

from pybernetes.api import errors
from pybernetes.component import offload
from pybernetes.csi.client import CSIClient
from pybernetes.csi.errors import CSIError

from ..plugins.registry import RegistrationError

TYPE: Final = "CSIPlugin"
INFO_SECONDS: Final = 30.0
"""How long a driver may take to say which node this is, before it is asked again."""
LOOK_WITHIN: Final = 5.0
log = logging.getLogger(__name__)

Took = Callable[[str, str, str, float], None]
"""Driver, method, gRPC code, seconds."""


class NodeInfo(Protocol):
    """Keeps what drivers say about the node (`csi_node.CSINodeKeeper`)."""

    async def install(self, driver: str, node_id: str, max_volumes: int, topology: dict[str, str]) -> None:
        """Note a driver; raises ValueError, APIError or OSError."""
        ...

    async def uninstall(self, driver: str) -> None:
        """Forget a driver."""
        ...


class NotRegistered(Exception):
    """There is no driver of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"driver name {name} not found in the list of registered CSI drivers")


class _Driver:
    """A driver that is registered, or is about to be."""

    def __init__(self, name: str, endpoint: str, took: Took) -> None:
        self.endpoint = endpoint
        self.client = CSIClient(endpoint, took=lambda method, code, seconds: took(name, method, code, seconds))


class Drivers:
    """The registered drivers by their names."""

    def __init__(self, node: NodeInfo, changed: Callable[[str], None], took: Took = lambda *_: None) -> None:
        """`changed(name)` is called when a driver has come."""
        self._node, self._changed, self._took = node, changed, took
        self._drivers: dict[str, list[_Driver]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def register(self, name: str, endpoint: str, versions: Sequence[str]) -> None:
        """Take a driver; raises `RegistrationError`."""
        _check_versions(name, endpoint, versions)
        await _check_socket(name, endpoint)
        driver = _Driver(name, endpoint, self._took)
        try:
            await self._install(name, driver.client)
        except (CSIError, errors.APIError, OSError, ValueError) as error:
            await driver.client.close()
            raise RegistrationError(f"error registering CSI driver {name} at {endpoint}: {error}") from None
        except BaseException:
            await driver.client.close()
            raise
        self._drivers.setdefault(name, []).append(driver)
        log.info("Register new plugin with name: %s at endpoint: %s", name, endpoint)
        self._changed(name)

    def unregister(self, name: str, endpoint: str) -> None:
        """A driver has gone. Its CSINode entry goes with the last of that name."""
        present = self._drivers.get(name, [])
        driver = next((each for each in reversed(present) if each.endpoint == endpoint), None)
        if driver is None:
            return
        present.remove(driver)
        log.info("registrationHandler.DeRegisterPlugin request for plugin %s at %s", name, endpoint)
        self._later(driver.client.close())
        if not present:
            del self._drivers[name]
            self._later(self._uninstall(name))

    def get(self, name: str) -> CSIClient:
        """A connection to the driver; `NotRegistered` if there is none."""
        present = self._drivers.get(name)
        if not present:
            raise NotRegistered(name)
        return present[-1].client

    def names(self) -> set[str]:
        """The registered drivers."""
        return set(self._drivers)

    async def close(self) -> None:
        """Disconnect from all drivers; the CSINode stays as it is."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for present in self._drivers.values():
            for driver in present:
                await driver.client.close()
        self._drivers.clear()

    async def _uninstall(self, name: str) -> None:
        try:
            await self._node.uninstall(name)
            if name in self._drivers:  # it came back while its entry was being removed
                await self._install(name, self._drivers[name][-1].client)
        except (CSIError, errors.APIError, OSError, ValueError) as error:
            log.warning("CSINode is wrong about the driver %s: %s", name, error)

    async def _install(self, name: str, client: CSIClient) -> None:
        info = await client.call("NodeGetInfo", within=INFO_SECONDS)
        topology = dict(info.accessible_topology.segments)
        await self._node.install(name, info.node_id, info.max_volumes_per_node, topology)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _check_versions(name: str, endpoint: str, versions: Sequence[str]) -> None:
    """The registration of a driver names the versions of CSI that it speaks; one of them must be a 1.x."""
    if not versions:
        raise RegistrationError(f"CSI driver {name} at {endpoint}: registration has no supported versions")
    for version in versions:
        if version.removeprefix("v").partition(".")[0] == "1":
            return
    raise RegistrationError(
        f"CSI driver {name} at {endpoint}: none of the supported versions ({', '.join(versions)}) is known here (1.x)"
    )


async def _check_socket(name: str, endpoint: str) -> None:
    """The endpoint must be a socket itself: behind a link there could be another one at each call."""
    path = endpoint.removeprefix("unix://")
    try:
        mode = (await offload.run(f"CSI driver {name}", LOOK_WITHIN, os.lstat, path)).st_mode
    except (OSError, ValueError) as error:
        raise RegistrationError(f"CSI driver {name}: endpoint {endpoint}: {error}") from None
    if stat.S_ISLNK(mode):
        raise RegistrationError(f"CSI driver {name}: endpoint {endpoint} is a symbolic link: name the socket itself")
    if not stat.S_ISSOCK(mode):
        raise RegistrationError(f"CSI driver {name}: endpoint {endpoint} is not a socket")
