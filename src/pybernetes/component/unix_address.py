"""Addresses of unix sockets, also of those whose paths are longer than the 107 bytes that bind(2) and connect(2) take.

A kubelet's root can lie deep in a home directory, and a driver's name is part of its sockets' paths. Such a socket is
reached by a descriptor of its folder: `/proc/self/fd/N/NAME`. The address holds while the descriptor is open, and it
means that folder: one that is made anew under the same path needs a new address.
"""

from __future__ import annotations

import errno
import os
from types import TracebackType
from typing import Final

LONGEST: Final = 107
"""Bytes of sockaddr_un.sun_path without its end."""


class UnixAddress:
    """The path for the kernel, or for gRPC as `unix://PATH`, of a socket; raises OSError."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        """Good until `close`."""
        self._folder = -1
        if len(os.fsencode(self.path)) <= LONGEST:
            return
        folder, name = os.path.split(self.path)
        self._folder = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        short = f"/proc/self/fd/{self._folder}/{name}"
        if len(os.fsencode(short)) > LONGEST:
            self.close()
            raise OSError(errno.ENAMETOOLONG, "the name of a socket has too many bytes", name)
        self.path = short

    def close(self) -> None:
        """Give the descriptor back; connections stay."""
        folder, self._folder = self._folder, -1
        if folder >= 0:
            os.close(folder)

    def __enter__(self) -> UnixAddress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
