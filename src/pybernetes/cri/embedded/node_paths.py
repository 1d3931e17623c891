"""Looks up the node's files for a container: sources of its mounts, and devices.

All of this looks at paths that users and plugins name, and that may lie on a file system that does not answer. So
`look` is one blocking function, called in a thread with a deadline before a container is made.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pybernetes.component import offload
from pybernetes.cri import cdi
from pybernetes.cri.errors import CRIError

from . import propagation

LOOK_WITHIN = 10.0
"""Seconds; a healthy node answers within milliseconds."""
NOT_GIVEN = ("pts", "shm", "mqueue", "fd", "hugepages")
"""Folders of the node's /dev that a privileged container does not get: it has its own."""


@dataclass(frozen=True)
class NodePaths:
    """The result of the lookup."""

    devices: Sequence[dict[str, str]]
    """Device nodes that the container gets beyond the usual ones."""
    device_rules: Sequence[str] | None
    """The rules of the devices' cgroup; None allows everything."""


async def add_cdi_devices(config: Any, pod: str) -> None:
    """Put what a container's CDI devices need into its config. Raises CRIError."""
    names = [each.name for each in config.CDI_devices]
    if not names:
        return
    try:
        await offload.run(f"pod {pod}", LOOK_WITHIN, cdi.apply, config, names)
    except (cdi.CDIError, offload.Overdue) as error:
        raise CRIError("Unknown", f"failed to create container: CDI device injection failed: {error}") from None


async def found(config: Any, pod: str) -> NodePaths:
    """Look up the node's files in a container's config; `pod` is the uid of its pod. Raises CRIError."""
    try:
        return await offload.run(f"pod {pod}", LOOK_WITHIN, look, config)
    except offload.Overdue:
        paths = [each.host_path for each in (*config.mounts, *config.devices) if each.host_path]
        text = f"a path of the node did not answer within {LOOK_WITHIN:g} s, it is one of {', '.join(paths)}"
        raise CRIError("DeadlineExceeded", f"failed to create container: {text}") from None


def look(config: Any) -> NodePaths:
    """Check the sources of mounts and find the devices; a missing folder is made, as docker began it."""
    for each in config.mounts:
        if each.HasField("image") and each.image.image:
            continue
        if not os.path.exists(each.host_path):
            os.makedirs(each.host_path, 0o755, exist_ok=True)
        propagation.check(each.host_path, each.propagation)
    privileged = config.linux.security_context.privileged
    return NodePaths(devices(config, privileged=privileged), None if privileged else device_rules(config))


def devices(config: Any, *, privileged: bool) -> list[dict[str, str]]:
    """Device nodes that a container gets beyond the usual ones; a privileged one gets all."""
    found = {}
    if privileged:
        for folder, names, files in os.walk("/dev"):
            if folder == "/dev":
                names[:] = [name for name in names if name not in NOT_GIVEN]
            for path in (f"{folder}/{name}" for name in files):
                mode = os.lstat(path).st_mode
                if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                    found[path] = {"path": path, "host_path": path}
    for each in config.devices:
        if not os.path.exists(each.host_path):
            raise CRIError("InvalidArgument", f"failed to stat device {each.host_path!r}: no such file or directory")
        found[each.container_path] = {"path": each.container_path, "host_path": os.path.realpath(each.host_path)}
    return list(found.values())


def device_rules(config: Any) -> list[str]:
    """The rules of the devices' cgroup beyond the usual ones."""
    rules = []
    for each in config.devices:
        found = os.stat(each.host_path)
        kind = "b" if stat.S_ISBLK(found.st_mode) else "c"
        rules.append(f"{kind} {os.major(found.st_rdev)}:{os.minor(found.st_rdev)} {each.permissions or 'rwm'}")
    return rules
