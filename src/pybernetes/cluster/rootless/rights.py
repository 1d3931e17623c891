"""Finds out which namespaces this machine permits, and what follows for pods; said once by `up`, shown by `status`.

Found out by trying, in a process of its own: settings that forbid user namespaces (`user.max_user_namespaces`,
AppArmor, seccomp of containers) are many, and some of them let one be made in which nothing can be mounted.
"""

from __future__ import annotations

import errno
import os
from functools import cache
from typing import Final, Literal, NamedTuple

from pybernetes.cluster.node import syscalls
from pybernetes.cluster.rootless import machine, namespaces, wayout
from pybernetes.cri import capabilities

Level = Literal["root", "user-namespaces", "none"]
"""How pods are kept apart; the value of LABEL, but for root's."""
LABEL: Final = "pybernetes.io/isolation"
ANNOTATION: Final = "pybernetes.io/not-isolated"


class Rights(NamedTuple):
    """The permitted level; `why` is the reason for less than root's."""

    level: Level
    why: str = ""

    @property
    def root(self) -> bool:
        """Whether nodes can be as they are meant to be."""
        return self.level == "root"


@cache
def rights() -> Rights:
    """Ours."""
    if os.geteuid() == 0 and capabilities.has("NET_ADMIN", "SYS_ADMIN"):
        return Rights("root")
    problem = _try_namespaces()
    return Rights("none", problem) if problem else Rights("user-namespaces", "not root")


def differences(have: Rights, users: int) -> list[str]:
    """The differences to running with root, a sentence each; `users` is how many a user namespace has."""
    if have.root:
        return []
    if have.level == "none":
        return [
            f"there are no user namespaces ({have.why}), so containers are plain processes of yours:"
            " they see this machine's files, processes and network",
            "their root is a folder ($PYBERNETES_ROOT): words of a command that are paths in it are taken from there",
            "limits of CPU and memory are not enforced; users, capabilities and seccomp are not set",
            "Secrets are kept on disk",
        ]
    found = [
        "limits of CPU and memory are not enforced",
        f"pods reach other networks only through the proxy http://{machine.NETWORK.gateway}:{wayout.PORT},"
        " and this machine reaches them only by kubectl port-forward",
    ]
    if users == 1:
        found.append(
            "all users in containers are you: programs that change their user fail"
            " (Debian: apt-get install uidmap, and a range of yours in /etc/subuid and /etc/subgid)"
        )
    return found


def _try_namespaces() -> str:
    """Why user namespaces are of no use here; empty if they are."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            _attempt()
            os.write(writing, b"ok")
        except OSError as error:
            os.write(writing, _words(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    said = os.read(reading, 1000).decode()
    os.close(reading)
    os.waitpid(child, 0)
    return "" if said == "ok" else said or "a process that tried it was killed"


def _words(error: OSError) -> str:
    if error.errno == errno.ENOSPC:  # the kernel's way to say that there may be no more of them
        return "user.max_user_namespaces allows none"
    return error.strerror or str(error)


def _attempt() -> None:
    """Try the steps of a node in its namespaces that may fail."""
    user, group = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.NEWUSER)
    namespaces.map_self(user, group)
    syscalls.unshare(syscalls.NEWNS | syscalls.NEWNET | syscalls.NEWPID | syscalls.NEWIPC | syscalls.NEWUTS)
    child = os.fork()
    if not child:
        code = 1
        try:
            syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_SLAVE)
            syscalls.mount("proc", "/proc", "proc")
            syscalls.mount("sysfs", "/sys", "sysfs")
            syscalls.mount("tmpfs", "/run", "tmpfs")
            for name in ("lower", "upper", "work", "root"):
                os.mkdir(f"/run/{name}")
            layers = "lowerdir=/run/lower,upperdir=/run/upper,workdir=/run/work,userxattr"  # since Linux 5.11
            syscalls.mount("overlay", "/run/root", "overlay", options=layers)
            code = 0
        except OSError as error:
            code = error.errno or 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, f"nothing can be mounted in a user namespace ({os.strerror(code)})")
