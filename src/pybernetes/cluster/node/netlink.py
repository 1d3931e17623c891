"""Links, addresses and routes by their names: the few requests a node needs, on the netlink client of CNI's plugins.

A socket belongs to the network namespace it was opened in, also after its process has gone into another one: that is
how a node's cable is plugged in at both ends.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from pybernetes.cni.netlink import rtnl

_STATIC = 4  # RTPROT_STATIC
_SCOPE_GLOBAL, _SCOPE_LINK = 0, 253


class Netlink:
    """The kernel's network configuration of the namespace it was made in. Errors are OSError, with the link's name."""

    def __init__(self) -> None:
        self._kernel = rtnl.Netlink()

    def __enter__(self) -> Netlink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._kernel.close()

    def index(self, name: str) -> int | None:
        """The number of a link, None if there is none of this name."""
        try:
            return self._kernel.link(name).index
        except rtnl.LinkNotFound:
            return None

    def add_bridge(self, name: str, mac: str) -> None:
        """Makes a bridge. Its MAC is given, else it would be that of whichever port came first."""
        with _about(name):
            self._kernel.add_bridge(name, mac=mac)

    def add_cable(self, name: str, master: str, pid: int, far_name: str, far_mac: str) -> None:
        """Makes a veth pair: one end here, a port of the bridge `master`, the other in the namespace of a process."""
        port = self._index(master)
        with _about(name):
            self._kernel.add_veth(name, far_name, peer_pid=pid, peer_mac=far_mac, master=port)

    def up(self, name: str) -> None:
        """Switches a link on."""
        with _about(name):
            self._kernel.set_link(self._index(name), up=True)

    def down(self, name: str) -> None:
        """Switches a link off: the cable is pulled."""
        with _about(name):
            self._kernel.set_link(self._index(name), up=False)

    def delete(self, name: str) -> bool:
        """Removes a link, and says whether there was one."""
        index = self.index(name)
        if index is None:
            return False
        with _about(name):
            self._kernel.delete_link(index)
        return True

    def add_address(self, name: str, address: str) -> None:
        """Gives a link an address, written as `10.0.0.1/24`."""
        with _about(name):
            self._kernel.add_address(self._index(name), ipaddress.ip_interface(address))

    def add_route(self, network: str, name: str, *, gateway: str | None = None, source: str | None = None) -> None:
        """Routes a network over a link; without a gateway all its addresses are on the link."""
        with _about(network):
            self._kernel.add_route(
                rtnl.Route(
                    ipaddress.ip_network(network),
                    ipaddress.ip_address(gateway) if gateway else None,
                    self._index(name),
                    scope=_SCOPE_GLOBAL if gateway else _SCOPE_LINK,
                    source=ipaddress.ip_address(source) if source else None,
                    protocol=_STATIC,
                )
            )

    def _index(self, name: str) -> int:
        index = self.index(name)
        if index is None:
            raise OSError(19, os.strerror(19), name)
        return index


@contextmanager
def _about(subject: str) -> Iterator[None]:
    """Names what an error is about."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, error.filename or subject) from None
