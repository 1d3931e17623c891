"""Doing something inside another network namespace.

The kernel keeps the network namespace for each thread: the calling one enters the other namespace and comes back, and
the other threads are not affected. Files under /proc/sys/net are those of the thread's namespace as well.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from ..errors import INVALID_NETNS, CNIError, NamespaceNotFound, reason

P = ParamSpec("P")
T = TypeVar("T")

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_NS_GET_NSTYPE = 0xB703


class Namespace:
    """A network namespace, by the path of the file that stands for it; open until `close`."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NamespaceNotFound(f'failed to open netns "{path}": {reason(error)}', INVALID_NETNS) from None
        except OSError as error:
            raise CNIError(f'failed to open netns "{path}": {reason(error)}', INVALID_NETNS) from None
        try:
            kind = fcntl.ioctl(self.fd, _NS_GET_NSTYPE)
        except OSError:
            kind = 0
        if kind != _CLONE_NEWNET:
            os.close(self.fd)
            # A file that is left over from a namespace that is gone is an ordinary one: nothing is in there.
            raise NamespaceNotFound(f'failed to open netns "{path}": not a network namespace', INVALID_NETNS)

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> Namespace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function inside the namespace and answers what it returns or raises."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(own, self.path)  # changes nothing, but who may not do this could not come back
            _enter(self.fd, self.path)
            try:
                return function(*args, **kwargs)
            finally:
                _come_back(own)
        finally:
            os.close(own)


def _enter(fd: int, path: str) -> None:
    if _libc.setns(fd, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def _come_back(own: int) -> None:
    """A thread that cannot come back must not go on: its next work would be done in the wrong namespace."""
    try:
        _enter(own, "the network namespace of this process")
    except OSError as error:
        os.write(2, f"cannot leave a pod's network namespace: {error}\n".encode())
        os.abort()


def sysctl(name: str, value: str | None = None) -> str:
    """Reads or writes `net/ipv4/...` of this thread's namespace; slashes separate, so that links may have dots."""
    path = f"/proc/sys/{name}"
    if value is not None:
        with open(path, "w") as file:
            file.write(value)
        return value
    with open(path) as file:
        return file.read().strip()
