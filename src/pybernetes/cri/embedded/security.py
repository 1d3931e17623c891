"""Refuses what this runtime cannot enforce: kernel parameters of the node, AppArmor, user namespaces. Pure.

The kubelet has looked at most of it before. A runtime looks again, because its client is not always a kubelet,
and what it sets wrongly is set for the whole node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

IPC = frozenset(
    f"kernel/{name}" for name in ("msgmax", "msgmnb", "msgmni", "sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced")
)
"""Parameters that each IPC namespace has; and all below fs/mqueue."""


def sysctl_files(sysctls: Mapping[str, str], *, own_network: bool, own_ipc: bool) -> dict[str, str]:
    """The files below /proc/sys that set a sandbox's parameters. Raises CRIError for one that is not its own."""
    found = {}
    for name, value in sysctls.items():
        path = sysctl_path(name)
        if path.startswith("net/"):
            kind, own = "network", own_network
        elif path in IPC or path.startswith("fs/mqueue/"):
            kind, own = "ipc", own_ipc
        else:
            raise CRIError("InvalidArgument", f'sysctl "{name}" is not in a separate kernel namespace')
        if not own:
            raise CRIError("InvalidArgument", f'sysctl "{name}" is not allowed in the hosts {kind} namespace')
        found[path] = value
    return found


def sysctl_path(name: str) -> str:
    """`net.ipv4.conf.eth0/1.rp_filter` as net/ipv4/conf/eth0.1/rp_filter: the first separator tells which one parts."""
    dot, slash = name.find("."), name.find("/")
    swapped = slash < 0 or 0 <= dot < slash
    path = name.translate(str.maketrans("./", "/.")) if swapped else name
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise CRIError("InvalidArgument", f'sysctl "{name}" is not the name of a kernel parameter')
    return path


def refuse_unsupported(context: Any) -> None:
    """Raises CRIError if a sandbox's or container's security context asks for something that would not be done."""
    if context.HasField("apparmor"):
        asked = context.apparmor.localhost_ref if context.apparmor.profile_type == cri.SecurityProfile.Localhost else ""
    else:
        old = getattr(context, "apparmor_profile", "")  # sandboxes never had the old field
        asked = "" if old in ("", "runtime/default", "unconfined") else old
    if asked:
        raise CRIError("Unknown", f"apparmor is not supported, but {asked} is specified")
    if context.namespace_options.userns_options.mode == cri.POD and context.namespace_options.HasField(
        "userns_options"
    ):
        raise CRIError("Unknown", "user namespaces are not supported by this runtime")
