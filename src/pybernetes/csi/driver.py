"""For authors of drivers: a driver is one class with the specification's calls as methods, request in, response out.

What it can do follows from the methods it has: a class with `create_volume` announces CREATE_DELETE_VOLUME. Before a
method is called its request has been checked for the fields that the specification requires, and no other call for the
same volume or snapshot is under way: a second one is refused with `Aborted`, which the cluster repeats later.

    class Folders(Driver):
        name = "folders.example.com"

        async def node_publish_volume(self, request): ...
        async def node_unpublish_volume(self, request): ...

    async with serving(Folders(node_id="node-1"), Path("/var/lib/kubelet/plugins/folders/csi.sock")) as address: ...
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Final

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.cri.errors import CODES
from pybernetes.cri.remote import snake_case
from pybernetes.protofile import Method
from pybernetes.version import GIT_VERSION

from . import v1
from .client import OPTIONS
from .errors import CSIError, invalid
from .node.registrar import listening, registered

_STATUS: Final = {status.value[0]: status for status in grpc.StatusCode}

REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "CreateVolume": ("name", "volume_capabilities"),
    "DeleteVolume": ("volume_id",),
    "ControllerPublishVolume": ("volume_id", "node_id", "volume_capability"),
    "ControllerUnpublishVolume": ("volume_id",),
    "ValidateVolumeCapabilities": ("volume_id", "volume_capabilities"),
    "ControllerGetVolume": ("volume_id",),
    "ControllerModifyVolume": ("volume_id",),
    "CreateSnapshot": ("source_volume_id", "name"),
    "DeleteSnapshot": ("snapshot_id",),
    "GetSnapshot": ("snapshot_id",),
    "ControllerExpandVolume": ("volume_id", "capacity_range"),
    "NodeStageVolume": ("volume_id", "staging_target_path", "volume_capability"),
    "NodeUnstageVolume": ("volume_id", "staging_target_path"),
    "NodePublishVolume": ("volume_id", "target_path", "volume_capability"),
    "NodeUnpublishVolume": ("volume_id", "target_path"),
    "NodeGetVolumeStats": ("volume_id", "volume_path"),
    "NodeExpandVolume": ("volume_id", "volume_path"),
}
"""Fields that a request must have; the specification's."""
_ONE_AT_A_TIME: Final[dict[str, str]] = {
    "CreateVolume": "name",
    "CreateSnapshot": "name",
    "DeleteSnapshot": "snapshot_id",
    **dict.fromkeys(
        (
            "DeleteVolume",
            "ControllerPublishVolume",
            "ControllerUnpublishVolume",
            "ControllerExpandVolume",
            "ControllerModifyVolume",
            "NodeStageVolume",
            "NodeUnstageVolume",
            "NodePublishVolume",
            "NodeUnpublishVolume",
            "NodeExpandVolume",
        ),
        "volume_id",
    ),
}
"""Calls that change something, and the field that says what."""
_CONTROLLER: Final = {
    "create_volume": "CREATE_DELETE_VOLUME",
    "controller_publish_volume": "PUBLISH_UNPUBLISH_VOLUME",
    "list_volumes": "LIST_VOLUMES",
    "get_capacity": "GET_CAPACITY",
    "create_snapshot": "CREATE_DELETE_SNAPSHOT",
    "list_snapshots": "LIST_SNAPSHOTS",
    "get_snapshot": "GET_SNAPSHOT",
    "controller_expand_volume": "EXPAND_VOLUME",
    "controller_get_volume": "GET_VOLUME",
    "controller_modify_volume": "MODIFY_VOLUME",
}
_NODE: Final = {
    "node_stage_volume": "STAGE_UNSTAGE_VOLUME",
    "node_get_volume_stats": "GET_VOLUME_STATS",
    "node_expand_volume": "EXPAND_VOLUME",
}
log = logging.getLogger(__name__)


class Driver:
    """The base of all drivers: identity, capabilities, and the calls that every driver must implement."""

    name: ClassVar[str]
    """Of the driver, as StorageClasses, PersistentVolumes and CSIDrivers call it: a DNS name."""
    vendor_version: ClassVar[str] = GIT_VERSION
    topology_keys: ClassVar[tuple[str, ...]] = ()
    """Labels of nodes that decide where a volume can be used; none if it can be used everywhere."""
    clones: ClassVar[bool] = False
    """`create_volume` takes a volume as its source."""
    single_node_multi_writer: ClassVar[bool] = True
    """The driver tells ReadWriteOncePod and ReadWriteOnce apart."""
    volume_mount_group: ClassVar[bool] = False
    """The driver itself gives a volume to the pod's group, when it is staged or published."""
    volume_condition: ClassVar[bool] = False
    """Statistics and lists of volumes say whether they are healthy."""
    expands_online: ClassVar[bool] = True
    """A volume can grow while a pod uses it."""

    def __init__(self, node_id: str = "", topology: dict[str, str] | None = None, max_volumes: int = 0) -> None:
        """`node_id` is this node in the driver's words; `topology` its values of `topology_keys`."""
        self.node_id = node_id
        self.topology = topology or {}
        self.max_volumes = max_volumes

    def has(self, method: str) -> bool:
        """Whether this driver has a method of the specification."""
        return getattr(self, method, None) is not None

    # Identity

    async def get_plugin_info(self, request: Any) -> Any:
        """The GetPluginInfo call."""
        return v1.GetPluginInfoResponse(name=self.name, vendor_version=self.vendor_version)

    async def get_plugin_capabilities(self, request: Any) -> Any:
        """The services that this driver has."""
        response = v1.GetPluginCapabilitiesResponse()
        kinds = v1.PluginService
        if any(self.has(each) for each in _CONTROLLER):
            response.capabilities.add(service=kinds(type=kinds.CONTROLLER_SERVICE))
        if self.topology_keys:
            response.capabilities.add(service=kinds(type=kinds.VOLUME_ACCESSIBILITY_CONSTRAINTS))
        if self.has("controller_expand_volume") or self.has("node_expand_volume"):
            when = v1.PluginVolumeExpansion.ONLINE if self.expands_online else v1.PluginVolumeExpansion.OFFLINE
            response.capabilities.add(volume_expansion=v1.PluginVolumeExpansion(type=when))
        return response

    async def probe(self, request: Any) -> Any:
        """Whether the driver can work; override it to look at what the driver needs."""
        return v1.ProbeResponse(ready=v1.BoolValue(value=True))

    # Controller

    async def controller_get_capabilities(self, request: Any) -> Any:
        """The capabilities of this driver's controller, by the methods it has."""
        names = [name for method, name in _CONTROLLER.items() if self.has(method)]
        if self.clones:
            names.append("CLONE_VOLUME")
        if self.volume_condition and (self.has("list_volumes") or self.has("controller_get_volume")):
            names.append("VOLUME_CONDITION")
        if names and self.single_node_multi_writer:
            names.append("SINGLE_NODE_MULTI_WRITER")
        response = v1.ControllerGetCapabilitiesResponse()
        for name in names:
            response.capabilities.add(rpc=v1.ControllerRPC(type=getattr(v1.ControllerRPC, name)))
        return response

    # Node

    async def node_get_info(self, request: Any) -> Any:
        """This node, as the driver knows it."""
        response = v1.NodeGetInfoResponse(node_id=self.node_id, max_volumes_per_node=self.max_volumes)
        if self.topology:
            response.accessible_topology.segments.update(self.topology)
        return response

    async def node_get_capabilities(self, request: Any) -> Any:
        """The capabilities of this driver on its node, by the methods it has."""
        names = [name for method, name in _NODE.items() if self.has(method)]
        if self.single_node_multi_writer:
            names.append("SINGLE_NODE_MULTI_WRITER")
        if self.volume_mount_group:
            names.append("VOLUME_MOUNT_GROUP")
        if self.volume_condition:
            names.append("VOLUME_CONDITION")
        response = v1.NodeGetCapabilitiesResponse()
        for name in names:
            response.capabilities.add(rpc=v1.NodeRPC(type=getattr(v1.NodeRPC, name)))
        return response


class Calls:
    """The way from the wire to a driver's methods: required fields, one call for each volume, errors as codes."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._busy: set[tuple[str, str]] = set()
        """(kind of key, key) of what a call works on."""

    def handlers(self) -> list[Any]:
        """All services that the driver has, for `grpc.aio.Server.add_generic_rpc_handlers`."""
        services: dict[str, dict[str, Any]] = {}
        for method in v1.methods().values():
            function = getattr(self._driver, snake_case(method.name), None)
            if function is not None:
                services.setdefault(method.service, {})[method.name] = self._handler(method, function)
        package = v1.proto().package
        return [grpc.method_handlers_generic_handler(f"{package}.{name}", calls) for name, calls in services.items()]

    def _handler(self, method: Method, function: Callable[[Any], Awaitable[Any]]) -> Any:
        async def unary(request: Any, context: Any) -> Any:
            try:
                check(method.name, request)
                with self._alone(method.name, request):
                    return await function(request)
            except CSIError as error:
                log.info("%s: %s", method.name, error)
                await context.abort(_STATUS[CODES[error.code]], error.message)
            except OSError as error:
                log.warning("%s: %s", method.name, error)
                await context.abort(grpc.StatusCode.INTERNAL, f"{error.strerror or error}: {error.filename or ''}")
            except Exception as error:  # a fault of one call must not end the driver
                log.exception("%s", method.name)
                await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}")

        return grpc.unary_unary_rpc_method_handler(
            unary, request_deserializer=method.request.FromString, response_serializer=method.response.SerializeToString
        )

    @contextmanager
    def _alone(self, name: str, request: Any) -> Iterator[None]:
        field = _ONE_AT_A_TIME.get(name)
        if field is None:
            yield
            return
        key = (f"{name} {field}" if field == "name" else field, getattr(request, field))
        if key in self._busy:
            raise CSIError("Aborted", f"an operation with the given {field} {key[1]} already exists")
        self._busy.add(key)
        try:
            yield
        finally:
            self._busy.discard(key)


def check(name: str, request: Any) -> None:
    """Raise `InvalidArgument` for a request that lacks a field that the specification requires."""
    for field in REQUIRED.get(name, ()):
        value = getattr(request, field)
        missing = not request.HasField(field) if hasattr(value, "DESCRIPTOR") else not value
        if missing:
            raise invalid(f"{name}: {field} missing in request")
    for capability in _capabilities(request):
        if capability.HasField("block") == capability.HasField("mount"):
            raise invalid(f"{name}: volume_capability needs one of block and mount")
        if not capability.access_mode.mode:
            raise invalid(f"{name}: volume_capability.access_mode missing in request")


def _capabilities(request: Any) -> list[Any]:
    found = list(getattr(request, "volume_capabilities", ()))
    if hasattr(request, "volume_capability") and request.HasField("volume_capability"):
        found.append(request.volume_capability)
    return found


@asynccontextmanager
async def serving(driver: Driver, socket: Path, registry: Path | None = None) -> AsyncIterator[str]:
    """Serve a driver at a unix socket; with `registry` (the kubelet's `plugins_registry`) also have it registered.

    Gives the address. A socket that an earlier process left is replaced; anything else in its place is refused.
    """
    address = prepare_socket(socket)
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers(Calls(driver).handlers())
    with listening(server, socket):
        await server.start()
        os.chmod(socket, 0o600)
        try:
            if registry is None:
                yield address
            else:
                async with registered(driver.name, socket, registry):
                    yield address
        finally:
            await server.stop(1.0)
            with suppress(FileNotFoundError):
                os.unlink(socket)


def prepare_socket(socket: Path) -> str:
    """Make the folder of a socket and remove an old socket; the address. Raises OSError if it is something else."""
    socket.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    address = f"unix://{socket.absolute()}"
    try:
        mode = os.lstat(socket).st_mode
    except FileNotFoundError:
        return address
    if not stat.S_ISSOCK(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "no socket"
        raise OSError(f"{socket} exists and is {kind}: remove it, or name another endpoint")
    socket.unlink()
    return address
