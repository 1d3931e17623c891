"""System calls that Python lacks: namespaces, mounts (the old and the new calls), capabilities and prctl.

Imported by the launcher, which every process of a pod is forked from: nothing but ctypes, and what the launcher has
anyway, may be imported here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal

NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWPID, NEWNET = 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
NEWUSER = 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC = 1, 2, 4, 8, 32, 4096, 16384
MS_PRIVATE, MS_SLAVE, MS_SHARED = 1 << 18, 1 << 19, 1 << 20
MNT_DETACH = 2
PROC_SUPER_MAGIC = 0x9FA0

PR_CAPBSET_DROP, PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_SET_SECCOMP = 24, 8, 38, 47, 22
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_CLEAR_ALL = 2, 4
SECCOMP_MODE_FILTER = 2

# The numbers of calls from 424 on are the same on all processors.
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CLONE = {"x86_64": 56, "aarch64": 220}
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_CLONE_PARENT = 0x8000
_KEYCTL_JOIN_SESSION_KEYRING = 1
_FSCONFIG_CMD_CREATE = 6
_CLOEXEC = 1
"""Of fsopen and fsmount."""
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH = -100, 0x8000, 0x1000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
_RESOLVE_NO_XDEV, _RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH, _RESOLVE_IN_ROOT = 1, 2, 4, 8, 16
_TIMES = 1000
"""openat2 gives up (EAGAIN) if anything is renamed or mounted on the machine while it goes through a `..`."""
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_long = ctypes.c_long


def unshare(flags: int) -> None:
    """Leaves namespaces for new ones; a new PID namespace is for the children."""
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, flags: int) -> None:
    """Enters namespaces, by a pid descriptor or by a file of /proc/PID/ns."""
    _check(_libc.setns(descriptor, flags), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mounts; OSError names the target."""
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode() or None, ctypes.c_ulong(flags), os.fsencode(options)
    )
    _check(result, target)


def escaped(path: str) -> str:
    """A path among overlayfs's options, where commas and colons would end it."""
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def umount(target: str, flags: int = MNT_DETACH) -> None:
    """Takes a mount away."""
    _check(_libc.umount2(os.fsencode(target), flags), target)


def open_tree(path: str) -> int:
    """A copy of what is at a path with all that is mounted below, not yet anywhere; a descriptor."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    return _check(_libc.syscall(_long(_OPEN_TREE), _long(_AT_FDCWD), os.fsencode(path), ctypes.c_uint(flags)), path)


def move_mount(descriptor: int, target: str) -> None:
    """Puts a copy that `open_tree` made to its place."""
    result = _libc.syscall(
        _long(_MOVE_MOUNT),
        _long(descriptor),
        b"",
        _long(_AT_FDCWD),
        os.fsencode(target),
        _long(_MOVE_MOUNT_F_EMPTY_PATH),
    )
    _check(result, target)


def make_read_only(target: str, *, recursive: bool, more: int = 0) -> None:
    """Makes a mount read-only (and `more`), or it and all below. What it cannot do already stays so."""
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY | more, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    result = _libc.syscall(
        _long(_MOUNT_SETATTR), _long(_AT_FDCWD), os.fsencode(target), ctypes.c_uint(flags), attributes, _long(32)
    )
    _check(result, target)


def open_in_root(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Opens a path as a process would whose root is `root`: neither `..` nor links lead out of it."""
    return _openat2(root, path, flags, mode, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)


def open_no_links(folder: int, path: str, flags: int, mode: int = 0, *, mounts: bool = True) -> int:
    """Opens a path below a folder; OSError if any part of it is a symbolic link (ELOOP) or, without `mounts`, a mount
    point (EXDEV): the kernel does not ask what is mounted there."""
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | (0 if mounts else _RESOLVE_NO_XDEV)
    return _openat2(folder, path, flags, mode, resolve)


def _openat2(root: int, path: str, flags: int, mode: int, resolve: int) -> int:
    how = (ctypes.c_uint64 * 3)(flags | os.O_CLOEXEC, mode, resolve)
    for _ in range(_TIMES):
        try:
            return _check(_libc.syscall(_long(_OPENAT2), _long(root), os.fsencode(path), how, _long(24)), path)
        except BlockingIOError:
            continue
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)


def pivot_root(new: str) -> None:
    """Makes `new`, a mount point, the root, and takes the old one away."""
    os.chdir(new)
    # With both at one place no folder for the old root is needed: it lies on top of the new one and is taken off.
    _check(_libc.syscall(_long(_PIVOT_ROOT[os.uname().machine]), b".", b"."), new)
    mount("", ".", flags=MS_SLAVE | MS_REC)  # what happens to the old root here must not happen to the node
    umount(".", MNT_DETACH)
    os.chdir("/")


def file_system_type(descriptor: int) -> int:
    """The kernel's number for the kind of file system that a file is on."""
    found = (ctypes.c_long * 32)()
    _check(_libc.fstatfs(descriptor, found), "fstatfs")
    return int(found[0])


def private_mount(kind: str, **options: str) -> int:
    """A new file system that is mounted nowhere and is gone with the last descriptor; a descriptor of its root."""
    context = _check(_libc.syscall(_long(_FSOPEN), kind.encode(), ctypes.c_uint(_CLOEXEC)), kind)
    try:
        for name, value in options.items():
            _check(
                _libc.syscall(_long(_FSCONFIG), _long(context), _long(1), name.encode(), value.encode(), _long(0)), kind
            )
        create = _long(_FSCONFIG_CMD_CREATE)
        _check(_libc.syscall(_long(_FSCONFIG), _long(context), create, None, None, _long(0)), kind)
        return _check(_libc.syscall(_long(_FSMOUNT), _long(context), ctypes.c_uint(_CLOEXEC), ctypes.c_uint(0)), kind)
    finally:
        os.close(context)


def fork_sibling() -> int:
    """fork(2), but the new process is a child of our parent: a sibling. Only for what execs or exits next."""
    flags = _long(_CLONE_PARENT | signal.SIGCHLD)
    zero = _long(0)
    return _check(_libc.syscall(_long(_CLONE[os.uname().machine]), flags, zero, zero, zero, zero), "clone")


def new_session_keyring() -> None:
    """Leaves the session keyring that was inherited for an empty one of this process's own."""
    result = _libc.syscall(_long(_KEYCTL[os.uname().machine]), _long(_KEYCTL_JOIN_SESSION_KEYRING), None)
    if result < 0 and ctypes.get_errno() != errno.ENOSYS:  # a kernel without keyrings has none to inherit
        _check(result, "keyctl")


def users() -> int:
    """How many users there are in this user namespace: all there can be, unless it is one made without root."""
    with open("/proc/self/uid_map") as file:
        return sum(int(line.split()[2]) for line in file)


ALL_USERS = (1 << 32) - 1


def sethostname(name: str) -> None:
    """Names the machine of this UTS namespace."""
    _check(_libc.sethostname(name.encode(), ctypes.c_size_t(len(name.encode()))), name)


def prctl(option: int, argument: int = 0, third: int = 0) -> None:
    """prctl(2)."""
    result = _libc.prctl(option, ctypes.c_ulong(argument), ctypes.c_ulong(third), ctypes.c_ulong(0), ctypes.c_ulong(0))
    _check(result, "prctl")


def end_with_parent() -> None:
    """Lets the kernel kill this process when its parent has ended; to become another user undoes it."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def seccomp(program: bytes) -> None:
    """Filters the calls of this process from now on, by a BPF program."""

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    wanted = Filter(len(program) // 8, program)
    result = _libc.prctl(
        PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(wanted), ctypes.c_ulong(0), ctypes.c_ulong(0)
    )
    _check(result, "seccomp")


def capset(permitted: int, inheritable: int) -> None:
    """Gives this process these capabilities, in effect at once."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    low, high = permitted & 0xFFFFFFFF, permitted >> 32
    kept_low, kept_high = inheritable & 0xFFFFFFFF, inheritable >> 32
    data = (ctypes.c_uint32 * 6)(low, low, kept_low, high, high, kept_high)
    _check(_libc.capset(header, data), "capset")


def _check(result: int, subject: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), subject)
    return result
