"""The pod's end of a link: addresses, routes and settings. All functions run inside the pod's namespace."""

from __future__ import annotations

import time

from ..errors import CNIError, reason
from ..fields import Address, Interface, field, parse_cidr, parse_ip
from ..netlink.namespace import sysctl
from ..netlink.rtnl import DAD_FAILED, MAIN_TABLE, TENTATIVE, Link, LinkNotFound, Netlink, Route
from ..results import Result

_SETTLED_WITHIN = 10.0  # seconds that duplicate address detection may take
_SETTLE_DELAY = 0.05


def describe(name: str) -> Link:
    """The link as it is."""
    with Netlink() as netlink:
        return netlink.link(name)


def bring_up(name: str) -> None:
    """Brings the link up, without addresses."""
    with Netlink() as netlink:
        netlink.set_link(netlink.link(name).index, up=True)


def configure(name: str, result: Result, dad: bool) -> None:
    """Gives the link the result's addresses, brings it up and adds the routes."""
    addresses = [parse_cidr(ip["address"], "ipam") for ip in result["ips"]]
    if any(address.version == 6 for address in addresses):
        _enable_ipv6(name)
    # The address is unique by IPAM, and duplicate detection would take a second.
    for setting, value in (("ipv6/conf/{}/accept_dad", "01"[dad]), ("ipv4/conf/{}/arp_notify", "1")):
        _try_sysctl(f"net/{setting.format(name)}", value)
    if dad:
        _try_sysctl(f"net/ipv6/conf/{name}/enhanced_dad", "1")
    with Netlink() as netlink:
        link = netlink.link(name)
        for address in addresses:
            try:
                netlink.add_address(link.index, address)
            except OSError as error:
                raise CNIError(f'failed to add IP addr {address} to "{name}": {reason(error)}') from None
        netlink.set_link(link.index, up=True)
        if 6 in _gateways(result):
            _settle(netlink, link)
        add_routes(netlink, link, result)


def add_routes(netlink: Netlink, link: Link, result: Result) -> None:
    """Adds the result's routes; one without a gateway leads through that of the addresses."""
    gateways = _gateways(result)
    for route in result.get("routes", ()):
        _add_route(netlink, link, route, gateways)


def _gateways(result: Result) -> dict[int, Address]:
    """The first gateway of each IP version."""
    found: dict[int, Address] = {}
    for ip in result["ips"]:
        if ip.get("gateway"):
            found.setdefault(parse_cidr(ip["address"], "ipam").version, parse_ip(ip["gateway"], "ipam"))
    return found


def remove(name: str) -> list[Interface]:
    """Removes the link, if it is there; the addresses it had."""
    with Netlink() as netlink:
        try:
            link = netlink.link(name)
        except LinkNotFound:
            return []
        addresses = [each.interface for each in netlink.addresses(link.index)]
        netlink.delete_link(link.index)
    return [address for address in addresses if not address.ip.is_link_local]


def _add_route(netlink: Netlink, link: Link, route: dict[str, object], gateways: dict[int, Address]) -> None:
    dst = parse_cidr(route.get("dst"), "routes").network
    gateway = parse_ip(route["gw"], "routes") if route.get("gw") else gateways.get(dst.version)
    made = Route(
        dst,
        gateway,
        link.index,
        mtu=field(route, "mtu", 0),
        advmss=field(route, "advmss", 0),
        priority=field(route, "priority", 0),
        table=field(route, "table", MAIN_TABLE),
        scope=field(route, "scope", 0),
    )
    try:
        netlink.add_route(made)
    except OSError as error:
        raise CNIError(f"failed to add route '{dst} via {gateway} dev {link.name}': {reason(error)}") from None


def _enable_ipv6(name: str) -> None:
    for link in ("lo", name):
        setting = f"net/ipv6/conf/{link}/disable_ipv6"
        try:
            if sysctl(setting) != "0":
                sysctl(setting, "0")
        except FileNotFoundError:
            continue  # no IPv6 in this kernel: adding the address will say so
        except OSError as error:
            raise CNIError(f'failed to enable IPv6 for interface "{link}" ({setting}): {reason(error)}') from None


def _settle(netlink: Netlink, link: Link) -> None:
    """Waits until no address is tentative any more: routes through such a one would not work."""
    deadline = time.monotonic() + _SETTLED_WITHIN
    while any(each.flags & (TENTATIVE | DAD_FAILED) for each in netlink.addresses(link.index)):
        if time.monotonic() > deadline:
            return  # as Debian's: the route that needs it says what is wrong
        time.sleep(_SETTLE_DELAY)


def _try_sysctl(name: str, value: str) -> None:
    try:
        sysctl(name, value)
    except OSError:
        pass
