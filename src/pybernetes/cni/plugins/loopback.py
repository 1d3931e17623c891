"""Brings a namespace's `lo` up; whatever interface the caller names, this is about `lo`."""

from __future__ import annotations

from ..errors import CNIError, NamespaceNotFound
from ..netlink.namespace import Namespace
from ..netlink.rtnl import Netlink
from ..results import Result
from ..skel import Call, Plugin


def add(call: Call) -> Result:
    """Brings `lo` up and returns its addresses, or the previous result if there is one."""
    previous = call.prev_result
    with Namespace(call.netns) as netns:
        addresses = netns.run(_up)
    if previous is not None:
        return previous
    interface = {"name": "lo", "mac": "00:00:00:00:00:00", "sandbox": call.netns}
    return {"interfaces": [interface], "ips": [{"interface": 0, "address": address} for address in addresses]}


def delete(call: Call) -> None:
    """Takes `lo` down, if there still is one."""
    if not call.netns:
        return
    try:
        with Namespace(call.netns) as netns:
            netns.run(_down)
    except NamespaceNotFound:
        pass


def check(call: Call) -> None:
    """Refuses a `lo` that is down."""
    with Namespace(call.netns) as netns:
        if not netns.run(_is_up):
            raise CNIError("loopback interface is down")


def _up() -> list[str]:
    with Netlink() as netlink:
        link = netlink.link("lo")
        netlink.set_link(link.index, up=True)
        addresses = [address.interface for address in netlink.addresses(link.index)]
    for address in addresses:
        if not address.ip.is_loopback:
            raise CNIError(f'loopback interface found with non-loopback address "{address.ip}"')
    firsts = {address.version: address for address in reversed(addresses)}
    return [str(firsts[version]) for version in sorted(firsts)]


def _down() -> None:
    with Netlink() as netlink:
        netlink.set_link(netlink.link("lo").index, up=False)


def _is_up() -> bool:
    with Netlink() as netlink:
        return netlink.link("lo").up


PLUGIN = Plugin("loopback", add, delete, check)
