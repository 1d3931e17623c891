"""Connects a pod with the node by a pair of links and routes, without a bridge (`ptp`).

The pod's link has its address with the subnet's prefix, but all that the pod sends goes to the gateway, which is the
node's end: the subnet's connected route is replaced by one through the gateway. The node has a route to each address.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, replace

from ..errors import UNSUPPORTED_FIELD, CNIError, NamespaceNotFound, reason
from ..fields import Interface, field, parse_cidr, parse_ip
from ..netlink.namespace import Namespace, sysctl
from ..netlink.rtnl import Link, LinkNotFound, Netlink, Route
from ..results import Result
from ..skel import Call, Plugin
from . import ipmasq, pod_interface

_VETH_TRIES = 10
_HOST_SCOPE, _LINK_SCOPE = 254, 253


@dataclass(frozen=True)
class Config:
    """The settings of the ptp plugin."""

    ip_masq: bool
    ip_masq_backend: str
    mtu: int
    ipam: str


def read_config(call: Call) -> Config:
    """The configuration, checked."""
    raw = call.config
    backend = field(raw, "ipMasqBackend", "")
    if backend not in ("iptables", "nftables", ""):
        raise CNIError(f"ipMasqBackend: {backend} is not supported", UNSUPPORTED_FIELD)
    ipam = field(field(raw, "ipam", {}), "type", "")
    return Config(field(raw, "ipMasq", False), backend, field(raw, "mtu", 0), ipam)


def add(call: Call) -> Result:
    """Connects the pod and gives it the addresses that `ipam` chose."""
    config = read_config(call)
    if not config.ipam:
        raise CNIError("ptp needs a plugin that gives addresses: ipam.type is missing")
    given = call.delegate(config.ipam)
    try:
        if not given or not given.get("ips"):
            raise CNIError("IPAM plugin returned missing IP config")
        _enable_forwarding({parse_cidr(ip["address"], "ipam").version for ip in given["ips"]})
        with Netlink() as netlink, Namespace(call.netns) as netns:
            host = _connect(netlink, netns, call.ifname, config.mtu)
            pod = netns.run(pod_interface.describe, call.ifname)
            result: Result = {
                "interfaces": [
                    {"name": host.name, "mac": host.mac, "mtu": host.mtu},
                    {"name": pod.name, "mac": pod.mac, "mtu": pod.mtu, "sandbox": call.netns},
                ],
                "ips": [{**ip, "interface": 1} for ip in given["ips"]],
                "routes": given.get("routes", []),
                "dns": field(call.config, "dns", {}) or given.get("dns", {}),
            }
            try:
                netns.run(_configure_pod, call.ifname, result)
                _configure_node(netlink, host, result)
            except BaseException:
                netlink.delete_link(host.index)
                raise
            if config.ip_masq:
                for ip in result["ips"]:
                    address = parse_cidr(ip["address"], "ipam")
                    ipmasq.ensure(call.network, call.container_id, address, config.ip_masq_backend)
    except BaseException:
        call.delegate(config.ipam, "DEL")  # release the address
        raise
    return result


def delete(call: Call) -> None:
    """Removes the pair of links and gives the addresses back; what is gone already is fine."""
    config = read_config(call)
    if config.ipam:
        call.delegate(config.ipam)
    addresses: list[Interface] = []
    if call.netns:
        try:
            with Namespace(call.netns) as netns:
                addresses = netns.run(pod_interface.remove, call.ifname)
        except NamespaceNotFound:
            pass
    if config.ip_masq:
        for version in {each.version for each in addresses} or {4, 6}:
            ipmasq.remove(call.network, call.container_id, version)


def check(call: Call) -> None:
    """Refuses if the pod's link, an address or a route is not as the result says."""
    from .bridge_check import check_addresses_and_routes

    config = read_config(call)
    if config.ipam:
        call.delegate(config.ipam)
    previous = call.prev_result
    if previous is None:
        raise CNIError("Required prevResult missing")
    told = next((each for each in previous.get("interfaces", ()) if each.get("sandbox") == call.netns), None)
    if told is None:
        raise CNIError(f"Sandbox in prevResult doesn't match configured netns: {call.netns}")
    with Namespace(call.netns) as netns:
        try:
            pod = netns.run(pod_interface.describe, call.ifname)
        except LinkNotFound:
            raise CNIError(f"Interface name {call.ifname} not found") from None
        if pod.kind != "veth":
            raise CNIError(f"Error: Container interface {pod.name} not of type veth")
        if told.get("mac") and told["mac"] != pod.mac:
            raise CNIError(f"Interface {pod.name} Mac {told['mac']} doesn't match container Mac: {pod.mac}")
        netns.run(check_addresses_and_routes, call.ifname, previous)


def status(call: Call) -> None:
    """Asks the plugin that gives addresses."""
    config = read_config(call)
    if config.ipam:
        call.delegate(config.ipam)


def gc(call: Call) -> None:
    """Sweeps up what hid addresses, and lets the plugin that gives them do the same; links go with their namespaces."""
    config = read_config(call)
    if config.ip_masq:
        ipmasq.sweep(call.network, {container_id for container_id, _ in call.valid_attachments})
    if config.ipam:
        call.delegate(config.ipam)


def _enable_forwarding(versions: set[int]) -> None:
    for version in versions:
        name = "net/ipv6/conf/all/forwarding" if version == 6 else "net/ipv4/ip_forward"
        try:
            if sysctl(name) != "1":
                sysctl(name, "1")
        except OSError as error:
            raise CNIError(f"could not enable IP forwarding: {reason(error)}") from None


def _connect(netlink: Netlink, netns: Namespace, ifname: str, mtu: int) -> Link:
    for _ in range(_VETH_TRIES):
        name = f"veth{os.urandom(4).hex()}"
        try:
            netlink.add_veth(name, ifname, peer_netns=netns.fd, mtu=mtu)
            return netlink.link(name)
        except FileExistsError:
            try:
                netlink.link(name)
            except LinkNotFound:
                raise CNIError(f"container veth name provided ({ifname}) already exists") from None
        except OSError as error:
            raise CNIError(f"failed to make veth pair: {reason(error)}") from None
    raise CNIError("failed to find a unique veth name")


def _configure_pod(ifname: str, result: Result) -> None:
    # Routes of the result are added last: their gateways are reached by the routes that are made here.
    pod_interface.configure(ifname, {**result, "routes": []}, False)
    with Netlink() as netlink:
        link = netlink.link(ifname)
        for ip in result["ips"]:
            address = parse_cidr(ip["address"], "ipam")
            if not ip.get("gateway"):
                raise CNIError(f"IPAM plugin returned no gateway for {address}")
            gateway = parse_ip(ip["gateway"], "ipam")
            connected = [
                route
                for route in netlink.routes(address.version)
                if route.link == link.index and route.dst == address.network and route.gateway is None
            ]
            if address.network.prefixlen < address.max_prefixlen:
                for route in connected:
                    netlink.delete_route(replace(route, source=None))
            to_gateway = Route(ipaddress.ip_network(gateway), None, link.index, scope=_LINK_SCOPE, source=address.ip)
            _add(netlink, to_gateway)
            if address.network.prefixlen < address.max_prefixlen:
                _add(netlink, Route(address.network, gateway, link.index, source=address.ip))
        pod_interface.add_routes(netlink, link, result)


def _configure_node(netlink: Netlink, host: Link, result: Result) -> None:
    for ip in result["ips"]:
        address, gateway = parse_cidr(ip["address"], "ipam"), parse_ip(ip["gateway"], "ipam")
        if address.version == 6:
            try:  # the address is unique by IPAM, and routes wait for the end of detection
                sysctl(f"net/ipv6/conf/{host.name}/accept_dad", "0")
            except OSError:
                pass
        try:
            netlink.add_address(host.index, ipaddress.ip_interface(gateway))
        except FileExistsError:
            pass
        _add(netlink, Route(ipaddress.ip_network(address.ip), None, host.index, scope=_HOST_SCOPE))


def _add(netlink: Netlink, route: Route) -> None:
    try:
        netlink.add_route(route)
    except FileExistsError:
        pass
    except OSError as error:
        raise CNIError(f"failed to add route {route.dst} via {route.gateway}: {reason(error)}") from None


PLUGIN = Plugin("ptp", add, delete, check, status, gc)
