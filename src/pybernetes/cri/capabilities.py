"""Capabilities by name: what a container has by default, what is added and dropped, as masks."""

from __future__ import annotations

from collections.abc import Iterable

NAMES = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
]
"""By their numbers."""
DEFAULT = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
]
"""The default capabilities of a container: containerd's and docker's."""


def mask(names: Iterable[str], everything: int) -> int:
    """The mask of names, with or without `CAP_`; `ALL` is `everything`. ValueError for one that is unknown."""
    found = 0
    for name in names:
        short = name.upper().removeprefix("CAP_")
        if short == "ALL":
            found |= everything
        elif short in NAMES:
            found |= 1 << NAMES.index(short)
        else:
            raise ValueError(f'unknown capability "CAP_{short}"')
    return found


def wanted(add: Iterable[str], drop: Iterable[str], everything: int) -> int:
    """The default with names added and dropped. A name that is both is kept, `ALL` goes before any other name."""
    add, drop = list(add), list(drop)
    plain_add = [name for name in add if name.upper().removeprefix("CAP_") != "ALL"]
    plain_drop = [name for name in drop if name.upper().removeprefix("CAP_") != "ALL"]
    found = mask(DEFAULT, everything)
    if len(plain_add) < len(add):
        found = everything
    if len(plain_drop) < len(drop):
        found = 0
    found &= ~mask(plain_drop, everything)
    return found | mask(plain_add, everything)


def current() -> int:
    """The capabilities of this process: no container can have more."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))


def has(*names: str) -> bool:
    """Whether this process has all of these."""
    have = current()
    return all(have >> NAMES.index(name) & 1 for name in names)
