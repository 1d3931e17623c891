"""The addresses that are in use, on disk as host-local keeps them.

In `<dataDir>/<network>`: a file named after each address with the container's id and, on a second line, its interface
(CRLF between); `last_reserved_ip.<n>` with the last address given out of the n-th set of ranges; `lock`, held (flock)
by each reader and writer. Files written before there was a second line hold the id alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import os
from types import TracebackType

from ..errors import CNIError, reason
from ..fields import Address

DEFAULT = "/var/lib/cni/networks"
_BREAK = "\r\n"


class Store:
    """The addresses of one network, locked from `with` to its end."""

    def __init__(self, network: str, data_dir: str = "") -> None:
        self._folder = os.path.join(data_dir or DEFAULT, network)
        try:
            os.makedirs(self._folder, 0o755, exist_ok=True)
            self._lock = os.open(os.path.join(self._folder, "lock"), os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o750)
        except OSError as error:
            raise CNIError(f"cannot use {self._folder}: {reason(error)}") from None

    def __enter__(self) -> Store:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def reserve(self, container_id: str, ifname: str, address: Address, index: int) -> bool:
        """Takes an address of the set `index` for a container's interface; False if it is taken."""
        path = os.path.join(self._folder, str(address))
        if os.path.lexists(path):
            return False
        # It gets its name when the owner is in it: a crash in between would leak the address for ever.
        nameless = os.path.join(self._folder, ".reserving")
        try:
            with open(nameless, "wb") as file:
                file.write(f"{container_id.strip()}{_BREAK}{ifname}".encode())
            os.rename(nameless, path)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(nameless)
            raise
        with open(os.path.join(self._folder, f"last_reserved_ip.{index}"), "w") as file:
            file.write(str(address))
        return True

    def last_reserved(self, index: int) -> Address | None:
        """The last address that was taken of the set `index`; None if that is not known."""
        try:
            with open(os.path.join(self._folder, f"last_reserved_ip.{index}")) as file:
                return ipaddress.ip_address(file.read().strip())
        except (OSError, ValueError):
            return None

    def addresses(self, container_id: str, ifname: str) -> list[Address]:
        """The addresses of a container's interface."""
        return [address for address, owner in self._taken() if _is(owner, container_id, ifname)]

    def release(self, container_id: str, ifname: str) -> None:
        """Gives back what a container's interface has."""
        taken = self._taken()
        exact = [address for address, owner in taken if owner == (container_id, ifname)]
        # What was written without an interface is given back only if nothing names this one.
        for address in exact or [address for address, owner in taken if owner == (container_id, "")]:
            os.unlink(os.path.join(self._folder, str(address)))

    def owners(self) -> set[tuple[str, str]]:
        """Container and interface of everything that is taken; the interface is empty if that was not written."""
        return {owner for _, owner in self._taken()}

    def _taken(self) -> list[tuple[Address, tuple[str, str]]]:
        found = []
        for name in sorted(os.listdir(self._folder)):
            try:
                address = ipaddress.ip_address(name)
                with open(os.path.join(self._folder, name), newline="") as file:
                    lines = file.read().strip().split(_BREAK)
            except (ValueError, OSError):
                continue
            found.append((address, (lines[0], lines[1] if len(lines) > 1 else "")))
        return found


def _is(owner: tuple[str, str], container_id: str, ifname: str) -> bool:
    return owner in ((container_id, ifname), (container_id, ""))
