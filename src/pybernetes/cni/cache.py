"""Caches the result of ADD on disk in libcni's form, so that CHECK and DEL know it after a restart.

One file for each network, container and interface. Another runtime on libcni reads our files and we read its.
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import results
from .errors import CNIError, reason

DEFAULT = Path("/var/lib/cni")
_KIND = "cniCacheV1"


@dataclass(frozen=True)
class Attachment:
    """A container's interface on a network, as it was added."""

    network: str
    container_id: str
    ifname: str
    netns: str = ""
    args: tuple[tuple[str, str], ...] = ()
    capability_args: dict[str, Any] | None = None
    config: bytes = b""
    result: results.Result | None = None  # as the plugins printed it, in the version of the configuration


class Cache:
    """The folder of remembered attachments."""

    def __init__(self, folder: Path = DEFAULT) -> None:
        self.folder = folder / "results"

    def put(self, attachment: Attachment) -> None:
        """Remembers an attachment; a crash leaves the whole file or none."""
        entry: dict[str, Any] = {
            "kind": _KIND,
            "containerId": attachment.container_id,
            "config": base64.b64encode(attachment.config).decode(),
            "ifName": attachment.ifname,
            "networkName": attachment.network,
        }
        optional = {
            "netns": attachment.netns,
            "cniArgs": [list(pair) for pair in attachment.args],
            "capabilityArgs": attachment.capability_args,
            "result": attachment.result,
        }
        entry |= {key: value for key, value in optional.items() if value}
        path = self._path(attachment.network, attachment.container_id, attachment.ifname)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = _fresh(path)
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(entry, file)
            fresh.replace(path)
        except OSError as error:
            name = attachment.network
            raise CNIError(f'failed to set network "{name}" cached result: {reason(error)}') from None

    def get(self, network: str, container_id: str, ifname: str) -> Attachment | None:
        """The cached attachment; None if there is none, an error if the file is invalid."""
        try:
            entry = json.loads(self._path(network, container_id, ifname).read_bytes())
        except OSError:
            return None
        except ValueError as error:
            raise CNIError(f'failed to unmarshal cached network "{network}" config: {error}') from None
        if isinstance(entry, dict) and entry.get("kind") != _KIND and "cniVersion" in entry:
            return Attachment(network, container_id, ifname, result=entry)  # written before there was a kind
        attachment = _attachment(entry)
        if attachment is None:
            kind = entry.get("kind") if isinstance(entry, dict) else entry
            raise CNIError(f'read cached network "{network}" config has wrong kind: {kind}')
        return attachment

    def forget(self, network: str, container_id: str, ifname: str) -> None:
        """Removes what was remembered, if anything was."""
        if network and container_id and ifname:
            path = self._path(network, container_id, ifname)
            _fresh(path).unlink(missing_ok=True)
            path.unlink(missing_ok=True)

    def forget_broken(self) -> None:
        """Removes what a crash of libcni left half written: it would never remove what it cannot read."""
        for file in self.folder.iterdir() if self.folder.exists() else ():
            try:
                json.loads(file.read_bytes())
            except ValueError:
                file.unlink(missing_ok=True)

    def attachments(self, container_id: str = "") -> list[Attachment]:
        """All that is remembered, or what is of one container; files that are of no attachment are passed over."""
        found = []
        for file in sorted(self.folder.glob("[!.]*")):
            if container_id and f"-{container_id}-" not in file.name:
                continue
            try:
                attachment = _attachment(json.loads(file.read_bytes()))
            except (OSError, ValueError):
                continue
            if attachment and attachment.ifname and attachment.network:
                found.append(attachment)
        return [each for each in found if not container_id or each.container_id == container_id]

    def _path(self, network: str, container_id: str, ifname: str) -> Path:
        if not (network and container_id and ifname):
            raise CNIError(
                f'cache file path requires network name ("{network}"), container ID ("{container_id}"), '
                f'and interface name ("{ifname}")'
            )
        return self.folder / f"{network}-{container_id}-{ifname}"


def _fresh(path: Path) -> Path:
    """The temporary name of a file; only one process attaches a container at a time, so one name is enough."""
    return path.with_name(f".{path.name}")


def _attachment(entry: Any) -> Attachment | None:
    if not isinstance(entry, dict) or entry.get("kind") != _KIND:
        return None
    try:
        return Attachment(
            network=str(entry.get("networkName") or ""),
            container_id=str(entry.get("containerId") or ""),
            ifname=str(entry.get("ifName") or ""),
            netns=str(entry.get("netns") or ""),
            args=tuple((str(key), str(value)) for key, value in entry.get("cniArgs") or ()),
            capability_args=entry.get("capabilityArgs"),
            config=base64.b64decode(entry.get("config") or ""),
            result=entry.get("result"),
        )
    except (TypeError, ValueError):
        return None
