"""Container Device Interface: what a CDI device such as `vendor.com/gpu=0` adds to a container.

Drivers write specification files (JSON or YAML) to `/etc/cdi` and `/var/run/cdi`; a file in the second folder goes
before one in the first. `apply` puts the edits of named devices into a CRI ContainerConfig: environment, device nodes,
mounts, groups. Used by the embedded runtime, and by the kubelet for a runtime that has no CDI of its own. What CRI
cannot say (hooks, mounts that are not bind mounts) is refused by name, because a device without it would not work.
Reads files that drivers control: call it in a thread with a deadline.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pybernetes.cri import v1 as cri

FOLDERS: Final = (Path("/etc/cdi"), Path("/var/run/cdi"))
MAX_FILE: Final = 8 << 20
"""Bytes of a specification file that are read; those of real drivers have some kilobytes."""
MAX_FILES: Final = 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*=[A-Za-z0-9][A-Za-z0-9._:-]*")
_EDITS: Final = {"env", "deviceNodes", "mounts", "hooks", "additionalGids", "additionalGIDs"}


class CDIError(Exception):
    """Devices that cannot be given to a container."""


@dataclass(slots=True)
class Edits:
    """The edits that devices make to a container; later entries for the same target replace earlier ones."""

    env: dict[str, str] = field(default_factory=dict)
    devices: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By path in the container: path on the node, permissions."""
    mounts: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """By path in the container: path on the node, whether read-only."""
    groups: list[int] = field(default_factory=list)


def apply(config: Any, names: Iterable[str], folders: Sequence[Path] = FOLDERS) -> None:
    """Put the edits of devices into a ContainerConfig. Raises `CDIError`, which changes nothing."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return
    edits = resolve(wanted, folders)
    kept = [each for each in config.envs if each.key not in edits.env]
    del config.envs[:]
    config.envs.extend(kept)
    config.envs.extend(
        cri.KeyValue(key=key, value=value.encode(errors="surrogateescape")) for key, value in edits.env.items()
    )
    for inside, (outside, permissions) in edits.devices.items():
        config.devices.append(cri.Device(container_path=inside, host_path=outside, permissions=permissions))
    for inside, (outside, readonly) in edits.mounts.items():
        config.mounts.append(cri.Mount(container_path=inside, host_path=outside, readonly=readonly))
    groups = config.linux.security_context.supplemental_groups
    groups.extend(each for each in edits.groups if each not in groups)


def resolve(names: Sequence[str], folders: Sequence[Path] = FOLDERS) -> Edits:
    """The edits of devices, those that their files make for all devices first."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise CDIError(f"unresolvable CDI devices {name}: not of the form VENDOR/CLASS=NAME")
    specs = _Specs(folders)
    missing = [name for name in names if not specs.has(name)]
    if missing:
        why = f" ({'; '.join(specs.problems[:3])})" if specs.problems else ""
        raise CDIError(f"unresolvable CDI devices {', '.join(missing)}{why}")
    edits, used = Edits(), set()
    for name in names:
        spec, device = specs.find(name)
        if id(spec) not in used:
            used.add(id(spec))
            _add(edits, spec.get("containerEdits"), f"CDI kind {spec['kind']}")
        _add(edits, device.get("containerEdits"), f"CDI device {name}")
    return edits


class _Specs:
    """All devices of the folders. A file that cannot be read costs only its own devices."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.problems: list[str] = []
        self._found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        for folder in folders:
            in_folder: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
            twice = set()
            for path in _files(folder):
                try:
                    spec = _read(path)
                    for name, device in _devices(spec):
                        twice |= {name} & in_folder.keys()
                        in_folder[name] = (spec, device)
                except (OSError, ValueError, RecursionError) as error:
                    self.problems.append(f"{path}: {error}")
            for name in sorted(twice):
                self.problems.append(f"{folder}: several files declare {name}")
                del in_folder[name]
            self._found |= in_folder

    def has(self, name: str) -> bool:
        return name in self._found

    def find(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._found[name]


def _files(folder: Path) -> list[Path]:
    try:
        names = sorted(each for each in os.listdir(folder) if each.endswith((".json", ".yaml", ".yml")))
    except OSError:
        return []
    return [folder / name for name in names[:MAX_FILES]]


def _read(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        text = file.read(MAX_FILE + 1)
    if len(text) > MAX_FILE:
        raise ValueError(f"larger than {MAX_FILE} bytes")
    if path.suffix == ".json":
        found = json.loads(text)
    else:
        import yaml

        try:
            found = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.YAMLError as error:
            raise ValueError(f"not YAML: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str) or "/" not in found["kind"]:
        raise ValueError("no CDI specification: its kind is not VENDOR/CLASS")
    return found


def _devices(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for device in _list(spec, "devices"):
        if not isinstance(device.get("name"), str):
            raise ValueError("a device has no name")
        yield f"{spec['kind']}={device['name']}", device


def _add(edits: Edits, found: Any, of: str) -> None:
    if found is None:
        return
    if not isinstance(found, dict):
        raise CDIError(f"{of}: containerEdits is not an object")
    unknown = [key for key in found if key not in _EDITS and found[key]]
    if found.get("hooks"):
        unknown.append("hooks")
    if unknown:
        raise CDIError(f"{of} needs {', '.join(unknown)}, which this runtime cannot do")
    try:
        for each in found.get("env") or ():
            key, equals, value = str(each).partition("=")
            if not key or not equals:
                raise ValueError(f"env {each!r} is not NAME=VALUE")
            edits.env[key] = value
        for each in _list(found, "deviceNodes"):
            path = _path(each, "path")
            edits.devices[path] = (_path(each, "hostPath") if each.get("hostPath") else path, _permissions(each))
        for each in _list(found, "mounts"):
            if each.get("type") not in (None, "", "bind", "none"):
                raise ValueError(f"a mount of type {each['type']} is not possible")
            options = each.get("options") or ()
            edits.mounts[_path(each, "containerPath")] = (_path(each, "hostPath"), "ro" in options)
        for group in found.get("additionalGids") or found.get("additionalGIDs") or ():
            if isinstance(group, bool) or not isinstance(group, int) or not 0 <= group < 1 << 32:
                raise ValueError(f"additionalGids: {group!r} is not a group")
            if group:  # 0 is ignored, as the specification says
                edits.groups.append(group)
    except (ValueError, TypeError) as error:
        raise CDIError(f"{of}: {error}") from None


def _list(found: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = found.get(key) or []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError(f"{key} is not a list of objects")
    return value


def _path(found: dict[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise ValueError(f"{key} {value!r} is not an absolute path")
    return value


def _permissions(device: dict[str, Any]) -> str:
    value = device.get("permissions") or "rwm"
    if not isinstance(value, str) or not set(value) <= set("rwm"):
        raise ValueError(f"permissions {value!r} are not some of r, w, m")
    return value
