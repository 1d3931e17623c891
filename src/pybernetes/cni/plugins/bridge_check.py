"""Whether a pod's connection to a bridge is still as the result of its ADD says."""

from __future__ import annotations

import ipaddress
from typing import Any

from ..errors import CNIError
from ..fields import parse_cidr, parse_ip
from ..netlink.namespace import Namespace
from ..netlink.rtnl import Link, LinkNotFound, Netlink
from ..results import Result


def check(result: Result, bridge: str, promisc: bool, ifname: str, netns: str) -> None:
    """Refuses with what is different: bridge, links, addresses, routes."""
    links: list[dict[str, Any]] = result.get("interfaces", [])
    told = {bool(link.get("sandbox")): link for link in links if link.get("name") in (bridge, ifname)}
    inside = next((link for link in links if link.get("name") == ifname and link.get("sandbox") == netns), None)
    if inside is None:
        sandbox = told.get(True, {}).get("sandbox", "")
        raise CNIError(f"Sandbox in prevResult {sandbox} doesn't match configured netns: {netns}")
    with Netlink() as netlink, Namespace(netns) as namespace:
        outer = _bridge(netlink, next((link for link in links if link.get("name") == bridge), {}), bridge, promisc)
        pod = namespace.run(_pod_link, inside)
        for link in links:
            if link is inside or link.get("name") == bridge or link.get("sandbox"):
                continue
            if _is_other_end(netlink, link, outer, pod):
                break
        else:
            raise CNIError(f"CNI veth created for bridge {bridge} was not found")
        namespace.run(check_addresses_and_routes, ifname, result)


def _find(netlink: Netlink, name: str) -> Link:
    try:
        return netlink.link(name)
    except LinkNotFound:
        raise CNIError(f"Interface name {name} not found") from None


def _bridge(netlink: Netlink, told: dict[str, Any], name: str, promisc: bool) -> Link:
    if not told:
        raise CNIError("Interface name missing")
    link = _find(netlink, name)
    if link.kind != "bridge":
        raise CNIError(f"Interface {name} does not have link type of bridge")
    if told.get("mac") and told["mac"] != link.mac:
        raise CNIError(f"Bridge interface {name} Mac doesn't match: {told['mac']}")
    if promisc != (link.promiscuity != 0):
        state = str(link.promiscuity != 0).lower()
        wanted = str(promisc).lower()
        problem = f"configured Promisc Mode {wanted} doesn't match current state: {state}"
        raise CNIError(f"Bridge interface {name} {problem}")
    return link


def _pod_link(told: dict[str, Any]) -> Link:
    with Netlink() as netlink:
        link = _find(netlink, told["name"])
    if link.kind != "veth":
        raise CNIError(f"Error: Container interface {link.name} not of type veth")
    if told.get("mac") and told["mac"] != link.mac:
        raise CNIError(f"Interface {link.name} Mac {told['mac']} doesn't match container Mac: {link.mac}")
    return link


def _is_other_end(netlink: Netlink, told: dict[str, Any], bridge: Link, pod: Link) -> bool:
    link = _find(netlink, str(told.get("name", "")))
    if link.kind != "veth" or link.master != bridge.index or (link.index, link.peer) != (pod.peer, pod.index):
        return False
    if told.get("mac") and told["mac"] != link.mac:
        raise CNIError(f"Interface {link.name} Mac doesn't match: {told['mac']} not found")
    return True


def check_addresses_and_routes(ifname: str, result: Result) -> None:
    """Refuses if an address or a route of the result is not in the caller's namespace."""
    with Netlink() as netlink:
        there = {each.interface for each in netlink.addresses(netlink.link(ifname).index)}
        routes = {version: netlink.routes(version) for version in (4, 6)}
    for ip in result.get("ips", ()):
        address = parse_cidr(ip["address"], "prevResult")
        if address not in there:
            raise CNIError(f"Failed to match addr {address} on interface {ifname}")
        if not any(route.dst == address.network for route in routes[address.version]):
            raise CNIError(f"Failed to find Gateway {ip.get('gateway')} for interface {ifname}")
    for told in result.get("routes", ()):
        dst = ipaddress.ip_network(told["dst"], strict=False)
        gateway = parse_ip(told["gw"], "prevResult") if told.get("gw") else None
        found = [route for route in routes[dst.version] if route.dst == dst]
        # For a default route any gateway will do, as the plugin may have filled one in.
        if not any(not dst.prefixlen or gateway is None or route.gateway == gateway for route in found):
            raise CNIError(f"Expected Route {told} not found in routing table")
