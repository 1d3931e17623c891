"""`dra_manager_state`: which claims are prepared for which pods, in upstream's form.

Written before a driver is asked to prepare, so that a kubelet that is killed meanwhile knows what to unprepare.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from pybernetes.component import state_files

from ..checkpoints import CorruptCheckpoint

FILE: Final = "dra_manager_state"
KIND: Final = "DRACheckpoint"
VERSION: Final = "checkpoint.dra.kubelet.k8s.io/v1"


class Device(msgspec.Struct, rename="pascal"):
    """A device as its driver described it."""

    pool_name: str = ""
    device_name: str = ""
    share_id: str | None = msgspec.field(name="ShareID", default=None)
    request_names: list[str] | None = None
    cdi_device_ids: list[str] | None = msgspec.field(name="CDIDeviceIDs", default=None)


class DriverState(msgspec.Struct, rename="pascal"):
    """The devices of one driver in a claim."""

    devices: list[Device] | None = None


class Claim(msgspec.Struct, rename="pascal"):
    """A claim that some pods of this node use."""

    claim_uid: str = msgspec.field(name="ClaimUID")
    claim_name: str
    namespace: str
    pod_uids: dict[str, dict[str, str]] | None = msgspec.field(name="PodUIDs", default=None)
    driver_state: dict[str, DriverState] | None = None


class _Data(msgspec.Struct):
    kind: str = KIND
    api_version: str = msgspec.field(name="apiVersion", default=VERSION)
    claims: list[Claim] | None = msgspec.field(name="ClaimInfoStateList", default=None)


class _File(msgspec.Struct, rename="pascal"):
    data: str
    checksum: int


def save(folder: Path, claims: Iterable[Claim]) -> None:
    """Write it down; raises OSError."""
    data = msgspec.json.encode(_Data(claims=list(claims) or None))
    state_files.write(folder / FILE, msgspec.json.encode(_File(data.decode(), zlib.crc32(data))))


def load(folder: Path) -> list[Claim]:
    """The claims; none if the file had to be set aside."""
    return state_files.read(folder / FILE, _decode) or []


def _decode(content: bytes) -> list[Claim]:
    found = msgspec.json.decode(content, type=_File)
    if zlib.crc32(found.data.encode()) != found.checksum:
        raise CorruptCheckpoint("checkpoint is corrupted")
    return msgspec.json.decode(found.data, type=_Data).claims or []
