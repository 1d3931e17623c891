"""Shared by `macvlan`, `ipvlan` and `vlan`: a link of the pod that stands on another link, the master.

The master is a link of the node, or with `linkInContainer` one that an earlier plugin gave the pod. DEL removes the
pod's link; the master is never changed.
"""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import INVALID_NETWORK_CONFIG, CNIError, NamespaceNotFound, reason
from ..fields import field
from ..netlink.namespace import Namespace
from ..netlink.rtnl import Link, LinkNotFound, Netlink
from ..results import Result
from ..skel import Call
from . import pod_interface

T = TypeVar("T")


@dataclass(frozen=True)
class SubInterface:
    """The pod's link: its kind, the attributes of that kind, and what it stands on."""

    kind: str
    data: tuple[bytes, ...]
    master: str
    mtu: int
    link_in_container: bool
    ipam: str
    mac: str = ""


def read_common(call: Call, kind: str, data: tuple[bytes, ...], mac: str = "") -> SubInterface:
    """The fields that all of them have."""
    raw = call.config
    in_container = field(raw, "linkInContainer", False)
    master = field(raw, "master", "")
    if not master:
        if kind == "vlan" or in_container:
            raise CNIError('"master" field is required. It specifies the host interface name', INVALID_NETWORK_CONFIG)
        if call.command != "DEL":
            master = default_route_link()
    ipam = field(field(raw, "ipam", {}), "type", "")
    return SubInterface(kind, data, master, field(raw, "mtu", 0), in_container, ipam, mac)


def default_route_link() -> str:
    """The link of the node's default route."""
    with Netlink() as netlink:
        for version, everything in ((4, "0.0.0.0/0"), (6, "::/0")):
            for route in netlink.routes(version):
                if route.dst == ipaddress.ip_network(everything) and route.link:
                    return netlink.link(route.link).name
    raise CNIError("no default route interface found: name one in the field master", INVALID_NETWORK_CONFIG)


def add(call: Call, wanted: SubInterface) -> Result:
    """Makes the link in the pod and gives it the addresses that `ipam` chose; without `ipam` it is layer 2 alone."""
    with Namespace(call.netns) as netns:
        inside = netns.run if wanted.link_in_container else _here
        inside(_make, call.ifname, wanted, netns.fd)
        try:
            pod = netns.run(pod_interface.describe, call.ifname)
            result: Result = {
                "interfaces": [{"name": pod.name, "mac": pod.mac, "mtu": pod.mtu, "sandbox": call.netns}],
                "dns": field(call.config, "dns", {}),
            }
            if wanted.ipam:
                _add_addresses(call, wanted, netns, result)
            else:
                netns.run(pod_interface.bring_up, call.ifname)
        except BaseException:
            netns.run(pod_interface.remove, call.ifname)
            raise
    return result


def delete(call: Call, wanted: SubInterface) -> None:
    """Gives the addresses back and removes the pod's link; what is gone already is fine."""
    if wanted.ipam:
        call.delegate(wanted.ipam)
    if call.netns:
        try:
            with Namespace(call.netns) as netns:
                netns.run(pod_interface.remove, call.ifname)
        except NamespaceNotFound:
            pass


def check(call: Call, wanted: SubInterface, same: Callable[[bytes], str]) -> None:
    """Refuses if the link, its master, an address or a route is not as the result says. `same` compares the kind's own
    attributes: what differs, in words."""
    if wanted.ipam:
        call.delegate(wanted.ipam)
    previous = call.prev_result
    if previous is None:
        raise CNIError("Required prevResult missing")
    links: list[dict[str, Any]] = previous.get("interfaces", [])
    told = next((each for each in links if each.get("name") == call.ifname and each.get("sandbox")), None)
    if told is None or told["sandbox"] != call.netns:
        sandbox = told["sandbox"] if told else ""
        raise CNIError(f"Sandbox in prevResult {sandbox} doesn't match configured netns: {call.netns}")
    with Namespace(call.netns) as netns:
        inside = netns.run if wanted.link_in_container else _here
        master = inside(_master, wanted)
        netns.run(_check_inside, told, wanted, master.index, same, previous)


def status(call: Call) -> None:
    """Asks the plugin that gives addresses."""
    _delegate_ipam(call)


def gc(call: Call) -> None:
    """Lets the plugin that gives addresses sweep up; links go with their namespaces."""
    _delegate_ipam(call)


def _delegate_ipam(call: Call) -> None:
    ipam = field(field(call.config, "ipam", {}), "type", "")
    if ipam:
        call.delegate(ipam)


def _here(function: Callable[..., T], *args: Any) -> T:
    return function(*args)


def _master(wanted: SubInterface) -> Link:
    with Netlink() as netlink:
        try:
            return netlink.link(wanted.master)
        except LinkNotFound:
            raise CNIError(f'failed to lookup master "{wanted.master}": Link not found') from None


def _make(ifname: str, wanted: SubInterface, netns: int) -> None:
    master = _master(wanted)
    if not 0 <= wanted.mtu <= master.mtu:
        raise CNIError(f"invalid MTU {wanted.mtu}, must be [0, master MTU({master.mtu})]", INVALID_NETWORK_CONFIG)
    mtu = wanted.mtu or master.mtu
    with Netlink() as netlink:
        try:
            netlink.add_link(ifname, wanted.kind, *wanted.data, link=master.index, mac=wanted.mac, mtu=mtu, netns=netns)
        except FileExistsError:
            raise CNIError(f"failed to create {wanted.kind}: {ifname} already exists, or the master has one") from None
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                raise CNIError(f"failed to create {wanted.kind}: this kernel has no {wanted.kind}") from None
            raise CNIError(f"failed to create {wanted.kind}: {reason(error)}") from None


def _add_addresses(call: Call, wanted: SubInterface, netns: Namespace, result: Result) -> None:
    given = call.delegate(wanted.ipam)
    try:
        if not given or not given.get("ips"):
            raise CNIError("IPAM plugin returned missing IP config")
        result["ips"] = [{**ip, "interface": 0} for ip in given["ips"]]
        result["routes"] = given.get("routes", [])
        result["dns"] = result["dns"] or given.get("dns", {})
        netns.run(pod_interface.configure, call.ifname, result, False)
    except BaseException:
        call.delegate(wanted.ipam, "DEL")  # release the address
        raise


def _check_inside(
    told: dict[str, Any], wanted: SubInterface, master: int, same: Callable[[bytes], str], result: Result
) -> None:
    from .bridge_check import check_addresses_and_routes

    name = str(told["name"])
    with Netlink() as netlink:
        try:
            link, data = netlink.link_with_data(name)
        except LinkNotFound:
            raise CNIError(f"Interface name {name} not found") from None
    if link.kind != wanted.kind:
        raise CNIError(f"Container interface {name} not of type {wanted.kind}")
    if link.peer != master:
        raise CNIError(f"Container interface {name} is not on the master {wanted.master}")
    if told.get("mac") and told["mac"] != link.mac:
        raise CNIError(f"Interface {name} Mac {told['mac']} doesn't match container Mac: {link.mac}")
    if problem := same(data):
        raise CNIError(f"Container interface {name}: {problem}")
    check_addresses_and_routes(name, result)
