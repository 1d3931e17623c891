"""Whether mounts can pass between the node and a container at a volume: the node's own mount has to take part in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

MOUNTINFO = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")


def check(path: str, kind: int, mountinfo: Path = MOUNTINFO) -> None:
    """Refuses a propagation that would silently not happen, in containerd's words."""
    if kind == cri.PROPAGATION_PRIVATE:
        return
    where, options = _mount_of(os.path.realpath(path), mountinfo.read_text())
    shared = any(each.startswith("shared:") for each in options)
    slave = any(each.startswith("master:") for each in options)
    if kind == cri.PROPAGATION_BIDIRECTIONAL and not shared:
        raise CRIError("Unknown", f'path "{path}" is mounted on "{where}" but it is not a shared mount')
    if not shared and not slave:
        raise CRIError("Unknown", f'path "{path}" is mounted on "{where}" but it is not a shared or slave mount')


def _mount_of(path: str, mountinfo: str) -> tuple[str, list[str]]:
    """The mount point that a path is on, and the optional fields of its line; the last one of a place is seen."""
    found, options = "", [""]
    for line in mountinfo.splitlines():
        words = line.partition(" - ")[0].split(" ")
        point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), words[4])
        below = path == point or path.startswith(point.rstrip("/") + "/")
        if below and len(point) >= len(found):
            found, options = point, words[6:]
    return found, options
