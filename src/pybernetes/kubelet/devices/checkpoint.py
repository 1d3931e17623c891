"""Which container has which devices, in `kubelet_internal_checkpoint`: upstream's form and checksum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from pybernetes.component import state_files

from ..checkpoints import CorruptCheckpoint, checksum, go_map

FILE: Final = "kubelet_internal_checkpoint"
NO_NODE: Final = -1
"""The NUMA node of devices that are near to none."""


class Entry(msgspec.Struct, frozen=True, rename="pascal"):
    """The devices of one resource that a container has, and what the plugin said about them."""

    pod_uid: str = msgspec.field(name="PodUID")
    container_name: str
    resource_name: str
    device_ids: dict[int, list[str]] | None = msgspec.field(name="DeviceIDs")
    """By NUMA node."""
    alloc_resp: bytes | None
    """A ContainerAllocateResponse."""

    @property
    def ids(self) -> set[str]:
        """All devices."""
        return {each for ids in (self.device_ids or {}).values() for each in ids}


class _Data(msgspec.Struct, rename="pascal"):
    pod_device_entries: list[Entry] | None
    registered_devices: dict[str, list[str]] | None


class _File(msgspec.Struct, rename="pascal"):
    data: _Data
    checksum: int


def save(folder: Path, entries: Iterable[Entry], registered: Mapping[str, Iterable[str]]) -> None:
    """Write it down; raises OSError."""
    data = _Data(list(entries) or None, {name: sorted(ids) for name, ids in sorted(registered.items())})
    state_files.write(folder / FILE, msgspec.json.encode(_File(data, _checksum(data))))


def load(folder: Path) -> tuple[list[Entry], dict[str, list[str]]]:
    """Entries, and resources with the devices that were registered; nothing if the file had to be set aside."""
    return state_files.read(folder / FILE, _decode) or ([], {})


def _decode(content: bytes) -> tuple[list[Entry], dict[str, list[str]]]:
    found = msgspec.json.decode(content, type=_File)
    if found.checksum != _checksum(found.data):
        raise CorruptCheckpoint("checkpoint is corrupted")
    return found.data.pod_device_entries or [], found.data.registered_devices or {}


def _checksum(data: _Data) -> int:
    """Of the struct as Go prints it."""
    entries = data.pod_device_entries
    shown = "<nil>" if entries is None else f"[{' '.join(map(_entry, entries))}]"
    devices = data.registered_devices
    registered = "<nil>" if devices is None else go_map({name: _list(ids) for name, ids in devices.items()})
    return checksum(
        f"(checkpoint.checkpointData){{PodDeviceEntries:([]checkpoint.PodDevicesEntry){shown} "
        f"RegisteredDevices:(map[string][]string){registered}}}"
    )


def _entry(entry: Entry) -> str:
    ids = entry.device_ids
    pairs = [f"{node}:{_list(ids[node])}" for node in sorted(ids)] if ids is not None else []
    shown = "<nil>" if ids is None else f"map[{' '.join(pairs)}]"
    said = "<nil>" if entry.alloc_resp is None else f"[{' '.join(map(str, entry.alloc_resp))}]"
    return (
        f"{{PodUID:(string){entry.pod_uid} ContainerName:(string){entry.container_name} "
        f"ResourceName:(string){entry.resource_name} DeviceIDs:(checkpoint.DevicesPerNUMA){shown} "
        f"AllocResp:([]uint8){said}}}"
    )


def _list(texts: Iterable[str]) -> str:
    return f"[{' '.join(texts)}]"
