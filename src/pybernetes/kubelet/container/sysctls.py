"""Which kernel parameters (`sysctls`) pods may set: the safe ones, and those that the node's owner allows.

Safe means: of the pod's own namespaces, and harmless to others. A parameter of a namespace that the pod shares with
the host is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from pybernetes.api.core.v1 import Pod
from pybernetes.api.gocompat.quote import quote

from ..pod.refusal import PodRefused

REASON: Final = "SysctlForbidden"
SAFE: Final[dict[str, tuple[int, int]]] = {
    "kernel.shm_rmid_forced": (0, 0),
    "net.ipv4.ip_local_port_range": (0, 0),
    "net.ipv4.tcp_syncookies": (0, 0),
    "net.ipv4.ping_group_range": (0, 0),
    "net.ipv4.ip_unprivileged_port_start": (0, 0),
    "net.ipv4.ip_local_reserved_ports": (3, 16),
    "net.ipv4.tcp_keepalive_time": (4, 5),
    "net.ipv4.tcp_fin_timeout": (4, 6),
    "net.ipv4.tcp_keepalive_intvl": (4, 5),
    "net.ipv4.tcp_keepalive_probes": (4, 5),
    "net.ipv4.tcp_rmem": (4, 15),
    "net.ipv4.tcp_wmem": (4, 15),
}
"""With the kernel from which on each network namespace has its own."""
_IPC: Final = frozenset(
    "kernel." + name
    for name in ("sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "shm", "msgmax", "msgmnb", "msgmni", "msg")
)


class SysctlPatternError(ValueError):
    """A wrong entry in `allowedUnsafeSysctls`."""


class SysctlAdmission:
    """Refuses pods with parameters that they may not set."""

    def __init__(self, allowed_unsafe: Sequence[str] = (), release: str | None = None) -> None:
        kernel = _kernel(os.uname().release if release is None else release)
        self._names: dict[str, str] = {}
        self._prefixes: dict[str, str] = {}
        for pattern in [*(name for name, since in SAFE.items() if kernel >= since), *allowed_unsafe]:
            name, star, _ = normalize(pattern).partition("*")
            namespace = namespace_of(name)
            if not namespace:
                raise SysctlPatternError(f"the sysctls {quote(name)} are not known to be namespaced")
            (self._prefixes if star else self._names)[name] = namespace

    def admit(self, pod: Pod) -> None:
        """Raises `PodRefused`."""
        spec = pod.spec
        if spec is None or spec.security_context is None:
            return
        for sysctl in spec.security_context.sysctls or ():
            name = normalize(sysctl.name or "")
            namespace = self._names.get(name) or next(
                (found for prefix, found in self._prefixes.items() if name.startswith(prefix)), None
            )
            why = None
            if namespace is None:
                why = f"{quote(name)} not allowlisted"
            elif (namespace == "IPC" and spec.host_ipc) or (namespace == "Net" and spec.host_network):
                why = f"{quote(name)} not allowed with host {namespace} enabled"
            if why:
                raise PodRefused(REASON, f"forbidden sysctl: {why}")


def normalize(name: str) -> str:
    """With dots between the parts: `net/ipv4/conf/eth0.1/rp_filter` keeps the dot of the interface as a slash."""
    first = re.search(r"[./]", name)
    if first is None or first[0] == ".":
        return name
    return name.translate(str.maketrans("./", "/."))


def namespace_of(name: str) -> str:
    """`IPC`, `Net`, or nothing for a parameter of the whole machine."""
    if name in _IPC or name.startswith("fs.mqueue."):
        return "IPC"
    return "Net" if name.startswith("net.") else ""


def _kernel(release: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", release)
    return (int(found[1]), int(found[2])) if found else (0, 0)
