"""Connects a pod to a bridge of the node by a pair of links, with addresses from another plugin (`ipam`).

The bridge is made when the first pod comes; with `isGateway` it gets the gateway's address, so that pods reach the node
and, through it, the world (`ipMasq` hides their addresses there). DEL takes the pod's end away, and with it goes ours.
"""

from __future__ import annotations

import ipaddress
import os
import time
from dataclasses import dataclass
from typing import Any

from ..errors import INVALID_NETWORK_CONFIG, UNSUPPORTED_FIELD, CNIError, NamespaceNotFound, reason
from ..fields import Interface, Network, field, parse_cidr, requested_mac
from ..netlink.namespace import Namespace, sysctl
from ..netlink.rtnl import OPERATIONAL, Link, LinkNotFound, Netlink
from ..results import Result
from ..skel import Call, Plugin
from . import bridge_check, ipmasq, pod_interface

# Of newer plugins than Debian's; ignoring a setting would be worse than refusing it.
_UNSUPPORTED = ("macspoofchk", "vlanTrunk", "disableContainerInterface", "portIsolation")
_VETH_TRIES = 10
_PORT_DELAYS = (0, 0.005, 0.05, 0.5, 1.0, 1.0)  # seconds between looks at whether the bridge's port works


@dataclass(frozen=True)
class Config:
    """The settings of the bridge plugin."""

    bridge: str
    gateway: bool
    default_gateway: bool
    force_address: bool
    ip_masq: bool
    ip_masq_backend: str
    mtu: int
    hairpin: bool
    promisc: bool
    vlan: int
    dad: bool
    address_check: bool
    """Our own word, which Debian's plugin passes over."""
    ipam: str
    mac: str


def add(call: Call) -> Result:
    """Makes the bridge if there is none, connects the pod, and gives it the addresses that `ipam` chose."""
    config = read_config(call)
    with Netlink() as netlink, Namespace(call.netns) as netns:
        _ensure_bridge(netlink, config)
        host = _connect(netlink, netns, call.ifname, config.bridge, config)
        pod = netns.run(pod_interface.describe, call.ifname)
        result: Result = {
            "interfaces": [
                {},
                {"name": host.name, "mac": host.mac, "mtu": host.mtu},
                {"name": pod.name, "mac": pod.mac, "mtu": pod.mtu, "sandbox": call.netns},
            ]
        }
        if config.ipam:
            _add_addresses(call, config, netlink, netns, result)
        else:
            netns.run(pod_interface.bring_up, call.ifname)
        # Read again: its address changes when the first port comes.
        bridge = netlink.link(config.bridge)
        result["interfaces"][0] = {"name": bridge.name, "mac": bridge.mac, "mtu": bridge.mtu}
    result["dns"] = field(call.config, "dns", {})
    return result


def delete(call: Call) -> None:
    """Takes the pod's end away and gives its addresses back; what is gone already is fine."""
    config = read_config(call)
    addresses: list[Interface] = []
    if call.netns:
        try:
            with Namespace(call.netns) as netns:
                addresses = netns.run(pod_interface.remove, call.ifname)
        except NamespaceNotFound:
            pass
    if config.ipam:
        call.delegate(config.ipam)
    if config.ipam and config.ip_masq:
        for version in {address.version for address in addresses} or _versions(call):
            ipmasq.remove(call.network, call.container_id, version)


def check(call: Call) -> None:
    """Refuses if the bridge, the pair of links, an address or a route is not as the result says."""
    config = read_config(call)
    if config.ipam:
        call.delegate(config.ipam)
    previous = call.prev_result
    if previous is None:
        raise CNIError("Required prevResult missing")
    bridge_check.check(previous, config.bridge, config.promisc, call.ifname, call.netns)


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


def read_config(call: Call) -> Config:
    """The bridge's configuration, checked."""
    raw = call.config
    for key in _UNSUPPORTED:
        if raw.get(key):
            raise CNIError(f"{key} is not supported", UNSUPPORTED_FIELD)
    if raw.get("ipMasqBackend") not in ("iptables", "nftables", "", None):
        raise CNIError(f"ipMasqBackend: {raw['ipMasqBackend']} is not supported", UNSUPPORTED_FIELD)
    vlan = field(raw, "vlan", 0)
    if not 0 <= vlan <= 4094:
        raise CNIError(f"invalid VLAN ID {vlan} (must be between 0 and 4094)", INVALID_NETWORK_CONFIG)
    default_gateway = field(raw, "isDefaultGateway", False)
    config = Config(
        bridge=field(raw, "bridge", "") or "cni0",
        gateway=field(raw, "isGateway", False) or default_gateway,
        default_gateway=default_gateway,
        force_address=field(raw, "forceAddress", False),
        ip_masq=field(raw, "ipMasq", False),
        ip_masq_backend=field(raw, "ipMasqBackend", ""),
        mtu=field(raw, "mtu", 0),
        hairpin=field(raw, "hairpinMode", False),
        promisc=field(raw, "promiscMode", False),
        vlan=vlan,
        dad=field(raw, "enabledad", False),
        address_check=field(raw, "addressCheck", False),
        ipam=field(field(raw, "ipam", {}), "type", ""),
        mac=requested_mac(raw, call.args),
    )
    if config.hairpin and config.promisc:
        raise CNIError("cannot set hairpin mode and promiscuous mode at the same time.", INVALID_NETWORK_CONFIG)
    return config


def gateways(result: Result, config: Config) -> dict[int, list[Interface]]:
    """Fills in what the bridge adds to the addresses of `ipam` (gateways, a default route); the gateways' own addresses
    by IP version (pure)."""
    found: dict[int, list[Interface]] = {}
    for ip in result["ips"]:
        address = parse_cidr(ip["address"], "ipam")
        ip["interface"] = 2
        if not config.gateway:
            continue
        if not ip.get("gateway"):
            ip["gateway"] = str(address.network[1])
        everything = "::/0" if address.version == 6 else "0.0.0.0/0"
        routes = result.setdefault("routes", [])
        if config.default_gateway and not any(route["dst"] == everything and route.get("gw") for route in routes):
            routes.append({"dst": everything, "gw": ip["gateway"]})
        own = ipaddress.ip_interface(f"{ip['gateway']}/{address.network.prefixlen}")
        found.setdefault(address.version, []).append(own)
    return found


def _add_addresses(call: Call, config: Config, netlink: Netlink, netns: Namespace, result: Result) -> None:
    given = call.delegate(config.ipam)
    try:
        if not given or not given.get("ips"):
            raise CNIError("IPAM plugin returned missing IP config")
        result["ips"] = given["ips"]
        result["routes"] = given.get("routes", [])
        own = gateways(result, config)
        if config.address_check:
            _check_addresses(result)
        netns.run(pod_interface.configure, call.ifname, result, config.dad)
        _wait_for_port(netlink, result["interfaces"][1]["name"])
        for version, addresses in own.items():
            _become_gateway(netlink, config, version, addresses, result)
        if config.ip_masq:
            for ip in result["ips"]:
                pod = parse_cidr(ip["address"], "ipam")
                ipmasq.ensure(call.network, call.container_id, pod, config.ip_masq_backend)
    except BaseException:
        call.delegate(config.ipam, "DEL")  # release the address
        raise


def _check_addresses(result: Result) -> None:
    from . import address_check

    addresses = [parse_cidr(ip["address"], "ipam").ip for ip in result["ips"]]
    address_check.protect(result["interfaces"][1]["name"], result["interfaces"][2]["mac"], addresses)


def _ensure_bridge(netlink: Netlink, config: Config) -> Link:
    try:
        netlink.add_bridge(config.bridge, config.mtu, vlan_filtering=config.vlan != 0)
    except FileExistsError:
        pass
    except OSError as error:
        problem = f'failed to create bridge "{config.bridge}": could not add "{config.bridge}": {reason(error)}'
        raise CNIError(problem) from None
    bridge = netlink.link(config.bridge)
    if bridge.kind != "bridge":
        problem = f'"{config.bridge}" already exists but is not a bridge'
        raise CNIError(f'failed to create bridge "{config.bridge}": {problem}')
    _no_router_advertisements(config.bridge)
    if not bridge.up or config.promisc:
        netlink.set_link(bridge.index, up=True, promisc=config.promisc or None)
    return bridge


def _connect(netlink: Netlink, netns: Namespace | None, ifname: str, bridge: str, config: Config) -> Link:
    """Makes the pair of links, ours on the bridge; the other is `ifname` in the namespace (None: ours)."""
    port = netlink.link(bridge).index
    inside, mac = (netns.fd, config.mac) if netns else (None, "")
    for _ in range(_VETH_TRIES):
        name = f"veth{os.urandom(4).hex()}"
        try:
            netlink.add_veth(name, ifname, peer_netns=inside, peer_mac=mac, mtu=config.mtu, master=port)
            break
        except FileExistsError:
            if _exists(netlink, name):
                continue
            raise CNIError(f"container veth name provided ({ifname}) already exists") from None
        except OSError as error:
            raise CNIError(f"failed to make veth pair: {reason(error)}") from None
    else:
        raise CNIError("failed to find a unique veth name")
    host = netlink.link(name)
    try:
        _no_router_advertisements(name)
        netlink.set_hairpin(host.index, config.hairpin and netns is not None)
        if config.vlan:
            netlink.set_vlan(host.index, config.vlan)
    except OSError as error:
        netlink.delete_link(host.index)
        raise CNIError(f'failed to connect "{name}" to bridge {bridge}: {reason(error)}') from None
    return host


def _become_gateway(netlink: Netlink, config: Config, version: int, addresses: list[Interface], result: Result) -> None:
    """Puts the gateway's addresses on the bridge, or on the link that stands for the bridge's side of a VLAN."""
    holder = netlink.link(config.bridge)
    if config.vlan:
        name = f"{config.bridge}.{config.vlan}"
        if not _exists(netlink, name):
            _connect(netlink, None, name, config.bridge, config)
            netlink.set_link(netlink.link(name).index, up=True)
        holder = netlink.link(name)
        if not any(link.get("name") == name for link in result["interfaces"]):
            result["interfaces"].append({"name": name, "mac": holder.mac, "mtu": holder.mtu})
    for address in addresses:
        _ensure_address(netlink, holder, address, config.force_address)
    forward = "net/ipv6/conf/all/forwarding" if version == 6 else "net/ipv4/ip_forward"
    try:
        if sysctl(forward) != "1":
            sysctl(forward, "1")
    except OSError as error:
        raise CNIError(f"failed to enable forwarding: {reason(error)}") from None


def _ensure_address(netlink: Netlink, link: Link, wanted: Interface, force: bool) -> None:
    for each in netlink.addresses(link.index):
        there = each.interface
        if there == wanted:
            return
        if there.version != wanted.version or (there.version == 6 and not _overlap(there.network, wanted.network)):
            continue  # IPv6 may have several, as long as they are of different subnets
        if not force:
            problem = f'"{link.name}" already has an IP address different from {wanted}'
            raise CNIError(f"failed to set bridge addr: {problem}")
        netlink.delete_address(link.index, there)
    try:
        netlink.add_address(link.index, wanted)
    except FileExistsError:
        return  # another pod's plugin was faster
    except OSError as error:
        raise CNIError(
            f'failed to set bridge addr: could not add IP address to "{link.name}": {reason(error)}'
        ) from None
    # Set to what it is, it stays: else the bridge takes the lowest of its ports', which come and go.
    netlink.set_link(link.index, mac=netlink.link(link.index).mac)


def _wait_for_port(netlink: Netlink, name: str) -> None:
    for delay in _PORT_DELAYS:
        time.sleep(delay)
        state = netlink.link(name).state
        if state == OPERATIONAL:
            return
    raise CNIError(f"bridge port in error state: {state}")


def _no_router_advertisements(name: str) -> None:
    """The routes of this link are ours."""
    try:
        sysctl(f"net/ipv6/conf/{name}/accept_ra", "0")
    except OSError:
        pass  # no IPv6 in this kernel


def _exists(netlink: Netlink, name: str) -> bool:
    try:
        netlink.link(name)
    except LinkNotFound:
        return False
    return True


def _overlap(first: Network, second: Network) -> bool:
    return first.version == second.version and (first.network_address in second or second.network_address in first)


def _versions(call: Call) -> set[int]:
    """The IP versions of the addresses the pod had, from what is remembered of its ADD."""
    ips: list[dict[str, Any]] = (call.prev_result or {}).get("ips", [])
    return {parse_cidr(ip["address"], "prevResult").version for ip in ips}


PLUGIN = Plugin("bridge", add, delete, check, status, gc)
