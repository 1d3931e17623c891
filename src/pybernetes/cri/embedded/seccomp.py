"""Which system calls a container may make: RuntimeDefault, or a profile of the node (Localhost), as a BPF program.

RuntimeDefault is in effect containerd's: calls that are dangerous in a shared kernel fail with EPERM, unless a
capability that the container has been given makes them reasonable. It is written the other way round, as what is
withheld: a call of the table that is not named here is allowed, one that is newer than the table does not exist
(ENOSYS), so that programs fall back to older ones.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pybernetes.cri import capabilities
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

from . import bpf
from .bpf import Condition, Rule, Table

EPERM = bpf.ERRNO | errno.EPERM
ENOSYS = bpf.ERRNO | errno.ENOSYS
LARGEST = 1 << 20  # bytes of a profile

BY_CAPABILITY = {
    "BPF": "bpf",
    "DAC_READ_SEARCH": "open_by_handle_at",
    "PERFMON": "perf_event_open",
    "SYS_ADMIN": "bpf clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr "
    "move_mount open_tree open_tree_attr perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog "
    "umount umount2 unshare",
    "SYS_BOOT": "reboot",
    "SYS_CHROOT": "chroot",
    "SYS_MODULE": "delete_module finit_module init_module query_module",
    "SYS_NICE": "get_mempolicy mbind set_mempolicy set_mempolicy_home_node",
    "SYS_PACCT": "acct",
    "SYS_PTRACE": "kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev",
    "SYS_RAWIO": "ioperm iopl",
    "SYS_TIME": "clock_settime clock_settime64 settimeofday stime",
    "SYS_TTY_CONFIG": "vhangup",
    "SYSLOG": "syslog",
}
"""Calls that are withheld from containers without one of the capabilities."""
NEVER = (
    "_sysctl add_key afs_syscall bdflush break create_module ftime get_kernel_syms getpmsg gtty idle io_uring_enter "
    "io_uring_register io_uring_setup kexec_file_load kexec_load keyctl lock migrate_pages move_pages mpx "
    "nfsservctl nice oldfstat oldlstat oldolduname oldstat olduname pivot_root prof profil putpmsg request_key "
    "security sgetmask ssetmask stty swapoff swapon sysfs tuxcall ulimit uselib userfaultfd ustat vm86 vm86old "
    "vserver"
)
"""Calls that no container makes: keys that are not in a namespace, the whole machine's memory and disks, history."""
PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
NEW_NAMESPACES = 0x7E020000  # the flags of clone(2) that make them, all seven
AF_VSOCK = 40  # sockets to the machine's hypervisor, which are in no namespace

ARCHITECTURES = {"x86_64": 0xC000003E, "i386": 0x40000003, "aarch64": 0xC00000B7}
"""AUDIT_ARCH numbers, by the columns of the table of numbers."""
OF_MACHINE = {"x86_64": ("x86_64", "i386"), "aarch64": ("aarch64",)}
NAMES = {"SCMP_ARCH_X86_64": "x86_64", "SCMP_ARCH_X86": "i386", "SCMP_ARCH_AARCH64": "aarch64"}
X32 = 0x40000000  # from there on calls of x86_64 are those of a mode that no distribution has switched on

ACTIONS = {
    "SCMP_ACT_ALLOW": bpf.ALLOW,
    "SCMP_ACT_LOG": bpf.LOG,
    "SCMP_ACT_KILL": bpf.KILL_THREAD,
    "SCMP_ACT_KILL_THREAD": bpf.KILL_THREAD,
    "SCMP_ACT_KILL_PROCESS": bpf.KILL_PROCESS,
    "SCMP_ACT_TRAP": bpf.TRAP,
    "SCMP_ACT_ERRNO": bpf.ERRNO,
    "SCMP_ACT_TRACE": bpf.TRACE,
}
OPERATORS = ("EQ", "NE", "LT", "LE", "GT", "GE", "MASKED_EQ")


class ProfileError(ValueError):
    """A profile that cannot be used."""


def filter_of(context: Any, granted: int, machine: str = "") -> bytes:
    """The program for a LinuxContainerSecurityContext; empty = unconfined. Raises CRIError.

    `granted` are the container's capabilities. A privileged container is never confined.
    """
    if context.privileged:
        return b""
    machine = machine or os.uname().machine
    profile, path = _wanted(context)
    if profile == cri.SecurityProfile.Unconfined:
        return b""
    try:
        if machine not in OF_MACHINE:
            raise ProfileError(f"seccomp is not supported on {machine}, only on {' and '.join(OF_MACHINE)}")
        if profile == cri.SecurityProfile.RuntimeDefault:
            return runtime_default(granted, machine)
        return localhost(_read(path), machine)
    except ProfileError as error:
        where = f' "{path}"' if path else ""
        raise CRIError("InvalidArgument", f"failed to load seccomp profile{where}: {error}") from None


def _wanted(context: Any) -> tuple[int, str]:
    if context.HasField("seccomp"):
        return context.seccomp.profile_type, context.seccomp.localhost_ref
    path = context.seccomp_profile_path
    if path in ("runtime/default", "docker/default"):
        return cri.SecurityProfile.RuntimeDefault, ""
    if path.startswith("localhost/"):
        return cri.SecurityProfile.Localhost, path.removeprefix("localhost/")
    if path not in ("", "unconfined"):
        raise CRIError("InvalidArgument", f'unknown seccomp profile "{path}"')
    return cri.SecurityProfile.Unconfined, ""


def _read(path: str) -> bytes:
    if not path.startswith("/"):
        raise ProfileError("the path of a profile must be absolute")
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ProfileError((error.strerror or str(error)).lower()) from None
    if len(data) > LARGEST:
        raise ProfileError(f"it is larger than {LARGEST} bytes")
    return data


@lru_cache(maxsize=8)
def runtime_default(granted: int, machine: str) -> bytes:
    """The program of RuntimeDefault for a container with these capabilities."""
    held = {name for number, name in enumerate(capabilities.NAMES) if granted >> number & 1}
    given = {call for name in held for call in BY_CAPABILITY.get(name, "").split()}
    withheld = {call for calls in BY_CAPABILITY.values() for call in calls.split()} - given
    withheld |= set(NEVER.split())
    answers: dict[str, list[Rule]] = {call: [Rule((), EPERM)] for call in withheld}
    if "clone3" in withheld:
        answers["clone3"] = [Rule((), ENOSYS)]  # its flags are in memory, where no filter sees them; clone is taken
        answers["clone"] = [Rule((Condition(0, "MASKED_EQ", NEW_NAMESPACES, 0),), bpf.ALLOW), Rule((), EPERM)]
    allowed = [Rule((Condition(0, "EQ", value),), bpf.ALLOW) for value in PERSONALITIES]
    answers["personality"] = [*allowed, Rule((), EPERM)]
    answers["socket"] = [Rule((Condition(0, "EQ", AF_VSOCK),), EPERM)]
    tables = []
    for column in OF_MACHINE[machine]:
        known = numbers(column)
        rules = {number: [Rule((), bpf.ALLOW)] for number in known.values()}
        for call, found in answers.items():
            if call in known:
                rules[known[call]] = [*found, Rule((), bpf.ALLOW)]
        tables.append(Table(ARCHITECTURES[column], rules, EPERM, max(known.values()) + 1, ENOSYS))
    return bpf.program(tables)


def localhost(document: bytes, machine: str) -> bytes:
    """The program of a profile, a JSON document as OCI and docker have it. Raises ProfileError."""
    try:
        profile = json.loads(document)
    except ValueError as error:
        raise ProfileError(f"it is no JSON: {error}") from None
    if not isinstance(profile, dict):
        raise ProfileError("it must be a JSON object")
    if profile.get("listenerPath"):
        raise ProfileError("listenerPath is not supported")
    default = _action(profile.get("defaultAction"), profile.get("defaultErrnoRet"), "defaultAction")
    rules: dict[str, list[Rule]] = {}
    for index, entry in enumerate(_objects(profile.get("syscalls"), "syscalls")):
        where = f"syscalls[{index}]"
        answer = _action(entry.get("action"), entry.get("errnoRet"), f"{where}.action")
        if answer == default:
            continue
        names = entry.get("names") or [entry.get("name")]
        if not isinstance(names, list) or not all(isinstance(each, str) and each for each in names):
            raise ProfileError(f"{where}.names must be a list of names")
        for name in names:
            rules.setdefault(name, []).extend(_alternatives(entry, answer, where))
    tables = []
    for column in _columns(profile, machine):
        known = numbers(column)
        own = {known[name]: rules[name] for name in rules if name in known}
        # A program that tries something newer than the profile is to fall back, not to give up.
        lenient = default in (bpf.ALLOW, bpf.LOG)
        newest = X32 if lenient else max(own, default=max(known.values())) + 1
        tables.append(Table(ARCHITECTURES[column], own, default, newest, ENOSYS))
    try:
        return bpf.program(tables)
    except bpf.TooLong as error:
        raise ProfileError(str(error)) from None


def _columns(profile: Mapping[str, Any], machine: str) -> list[str]:
    """The tables of the machine that a profile is for: its own one always."""
    listed = profile.get("architectures") or []
    for entry in _objects(profile.get("archMap"), "archMap"):
        if NAMES.get(str(entry.get("architecture"))) == machine:
            listed = [*listed, *(entry.get("subArchitectures") or [])]
    if not isinstance(listed, list):
        raise ProfileError("architectures must be a list of names")
    named = {NAMES.get(str(each)) for each in listed}
    return [each for each in OF_MACHINE[machine] if each == machine or each in named]


def _objects(value: Any, where: str) -> Iterable[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ProfileError(f"{where} must be a list of objects")
    return value


def _action(name: Any, errno_ret: Any, where: str) -> int:
    if name == "SCMP_ACT_NOTIFY":
        raise ProfileError(f"{where}: SCMP_ACT_NOTIFY is not supported")
    if not isinstance(name, str) or name not in ACTIONS:
        raise ProfileError(f"{where}: unknown action {json.dumps(name)}")
    answer = ACTIONS[name]
    if answer not in (bpf.ERRNO, bpf.TRACE):
        if errno_ret is not None:
            raise ProfileError(f"{where}: {name} has no errnoRet")
        return answer
    code = errno.EPERM if errno_ret is None else errno_ret
    if not _is_number(code, 0xFFFF):
        raise ProfileError(f"{where}: errnoRet must be a number from 0 to 65535")
    return answer | int(code)


def _alternatives(entry: Mapping[str, Any], answer: int, where: str) -> list[Rule]:
    """The rules of an entry: all its conditions must hold, but of several for one argument, any (as runc reads it)."""
    conditions = []
    for index, argument in enumerate(_objects(entry.get("args"), f"{where}.args")):
        at = f"{where}.args[{index}]"
        operator = str(argument.get("op")).removeprefix("SCMP_CMP_")
        if operator not in OPERATORS:
            raise ProfileError(f"{at}.op: unknown operator {json.dumps(argument.get('op'))}")
        number, value, second = argument.get("index", 0), argument.get("value", 0), argument.get("valueTwo", 0)
        if not _is_number(number, 5):
            raise ProfileError(f"{at}.index must be a number from 0 to 5")
        if not _is_number(value, (1 << 64) - 1) or not _is_number(second, (1 << 64) - 1):
            raise ProfileError(f"{at}: values must be numbers of 64 bits")
        conditions.append(Condition(number, operator, value, second))
    if len({each.argument for each in conditions}) < len(conditions):
        return [Rule((each,), answer) for each in conditions]
    return [Rule(tuple(conditions), answer)]


def _is_number(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


@lru_cache(maxsize=4)
def numbers(column: str) -> dict[str, int]:
    """The numbers of all calls in a mode of the processor."""
    place = list(ARCHITECTURES).index(column) + 1
    lines = Path(__file__).with_name("syscall_numbers.txt").read_text().splitlines()
    rows = (line.split() for line in lines if not line.startswith("#"))
    return {row[0]: int(row[place]) for row in rows if row[place] != "-"}
