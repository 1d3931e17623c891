"""Forwards ports of the node to a pod (`hostPort`), by rules in the nat table.

    PREROUTING, OUTPUT: to an address of this machine -j CNI-HOSTPORT-DNAT
    CNI-HOSTPORT-DNAT: --dports 8080,8081 -j CNI-DN-<container>
    CNI-DN-<container>: --dport 8080 -j DNAT --to-destination <pod>:80

Connections from the pod to itself and from the node's 127.0.0.1 are marked on the way (CNI-HOSTPORT-SETMARK) and
masqueraded at its end (CNI-HOSTPORT-MASQ), else the answers would not come back. A port is not reserved: of two pods
with the same one the last wins, as with Debian's plugin.

That is `backend: iptables`, the default where its programs are installed, so that Debian's plugin can take over; with
`backend: nftables`, and where there is no iptables, `portmap_nftables.py` does the same without any program.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from dataclasses import dataclass
from typing import Any

from pybernetes.net.netlink import conntrack
from pybernetes.network.nftables.objects import Element

from .. import owned_elements
from ..errors import INVALID_NETWORK_CONFIG, UNSUPPORTED_FIELD, CNIError
from ..fields import Interface, field, parse_cidr
from ..iptables import Chain, Nat, Rule, chain_name, comment, installed, missing
from ..netlink.namespace import sysctl
from ..netlink.rtnl import Netlink
from ..results import Result
from ..skel import Call, Plugin
from . import portmap_nftables

DNAT = "CNI-HOSTPORT-DNAT"
SETMARK = "CNI-HOSTPORT-SETMARK"
MASQ = "CNI-HOSTPORT-MASQ"
_MARK_BIT = 13  # Kubernetes uses 14 and 15
_PORTS_OF_MULTIPORT = 15  # what one rule takes


@dataclass(frozen=True)
class Mapping:
    """A port of the node that leads to one of the pod."""

    host_port: int
    container_port: int
    protocol: str
    host_ip: str = ""


@dataclass(frozen=True)
class Config:
    """The settings of the portmap plugin, and the pod's addresses."""

    mappings: list[Mapping]
    snat: bool
    mark_bit: int
    external_mark_chain: str
    conditions: dict[int, list[str]]
    pods: dict[int, Interface]  # by IP version
    network: str
    container_id: str
    nftables: bool = False

    @property
    def owner(self) -> str:
        return owned_elements.owner(self.network, self.container_id)

    def elements(self, pod: Interface) -> dict[str, list[Element]]:
        """The pod's elements in nftables' maps."""
        mappings = [(each.protocol, each.host_port, each.container_port, each.host_ip) for each in self.mappings]
        return portmap_nftables.elements(mappings, pod, self.snat)


def add(call: Call) -> Result:
    """Puts the rules for the pod's ports in; the result is that of the plugins before."""
    config = read_config(call)
    previous = call.prev_result
    if previous is None:
        raise CNIError("must be called as chained plugin")
    if config.mappings:
        for pod in config.pods.values():
            _forward(config, pod)
            _forget_connections(config, pod.version)
    return previous


def delete(call: Call) -> None:
    """Takes the container's rules out of the tables of both versions; none there is fine."""
    config = read_config(call)
    if not config.mappings:
        return
    for version in (4, 6):
        owned_elements.remove(portmap_nftables.layout(version), lambda comment: comment == config.owner)
    if not installed():
        return
    tables = [table for table in (Nat(4), Nat(6)) if table.usable()]
    if not tables:
        raise CNIError("neither iptables nor ip6tables usable")
    for table in tables:
        table.remove([chain_name(config.network, config.container_id, "DN-")])


def gc(call: Call) -> None:
    """Takes out the rules of containers that are gone."""
    valid = {container_id for container_id, _ in call.valid_attachments}
    for version in (4, 6):
        owned_elements.sweep(portmap_nftables.layout(version), call.network, valid)
    for table in (Nat(4), Nat(6)):
        if table.usable():
            table.sweep(call.network, "DN-", valid)


def check(call: Call) -> None:
    """Refuses if a rule is missing."""
    config = read_config(call)
    if call.prev_result is None:
        raise CNIError("Required prevResult missing")
    if not config.mappings:
        return
    for version, pod in config.pods.items():
        if config.nftables:
            layout = portmap_nftables.layout(version, config.mark_bit)
            problem = owned_elements.missing(layout, config.owner, config.elements(pod))
        else:
            problem = missing(Nat(version).read(), container_chain(config, pod))
        if problem:
            raise CNIError(f"could not check ipv{version} dnat: {problem}")


def container_chain(config: Config, pod: Interface) -> Chain:
    """The container's own chain: its ports to the pod's, and the marks for what must be masqueraded."""
    note = comment(f'dnat name: "{config.network}" id: "{config.container_id}"')
    conditions = tuple(config.conditions.get(pod.version, ()))
    entries: list[tuple[str, Rule]] = []
    for protocol in sorted({mapping.protocol for mapping in config.mappings}):
        ports = [str(mapping.host_port) for mapping in config.mappings if mapping.protocol == protocol]
        for start in range(0, len(ports), _PORTS_OF_MULTIPORT):
            some = ",".join(ports[start : start + _PORTS_OF_MULTIPORT])
            match = ("-m", "comment", "--comment", note, "-m", "multiport", "-p", protocol, "--destination-ports", some)
            entries.append((DNAT, match + conditions))
    rules: list[Rule] = []
    mark = config.external_mark_chain or SETMARK
    for mapping in config.mappings:
        host = ipaddress.ip_address(mapping.host_ip) if mapping.host_ip else None
        if host is not None and host.version != pod.version:
            continue
        base: Rule = ("-p", mapping.protocol, "--dport", str(mapping.host_port))
        if host is not None and not host.is_unspecified:
            base += ("-d", mapping.host_ip)
        if config.snat:
            rules.append((*base, "-s", str(pod), "-j", mark))
            if pod.version == 4:
                rules.append((*base, "-s", "127.0.0.1", "-j", mark))
        address = f"[{pod.ip}]" if pod.version == 6 else str(pod.ip)
        rules.append((*base, "-j", "DNAT", "--to-destination", f"{address}:{mapping.container_port}"))
    return Chain(chain_name(config.network, config.container_id, "DN-"), rules, entries, own=True)


def common_chains(config: Config) -> list[Chain]:
    """The chains that all containers share."""
    local: Rule = ("-m", "addrtype", "--dst-type", "LOCAL")
    chains = [Chain(DNAT, entries=[("PREROUTING", local), ("OUTPUT", local)])]
    if config.snat and not config.external_mark_chain:
        bit = 1 << config.mark_bit
        value = f"{bit:#x}/{bit:#x}"
        marking: Rule = (
            "-m",
            "comment",
            "--comment",
            "CNI portfwd masquerade mark",
            "-j",
            "MARK",
            "--set-xmark",
            value,
        )
        note: Rule = ("-m", "comment", "--comment", "CNI portfwd requiring masquerade")
        chains = [
            Chain(SETMARK, [marking]),
            # In front: what bridges masquerade would else go past this chain.
            Chain(MASQ, [("-m", "mark", "--mark", value, "-j", "MASQUERADE")], [("POSTROUTING", note)], prepend=True),
            *chains,
        ]
    return chains


def _forward(config: Config, pod: Interface) -> None:
    if config.snat and pod.version == 4:
        _allow_localhost(pod)
    if config.nftables:
        layout = portmap_nftables.layout(pod.version, config.mark_bit)
        owned_elements.put(layout, config.owner, config.elements(pod))
        return
    Nat(pod.version).ensure([*common_chains(config), container_chain(config, pod)])


def _allow_localhost(pod: Interface) -> None:
    """Lets packets from 127.0.0.1 leave through the link that leads to the pod."""
    with Netlink() as netlink:
        try:
            link = netlink.link(netlink.route_to(pod.ip).link)
        except (OSError, CNIError):
            return  # no way to the pod now: nothing to allow
    try:
        sysctl(f"net/ipv4/conf/{link.name}/route_localnet", "1")
    except OSError as error:
        raise CNIError(f"unable to enable route_localnet: {error}") from None


def _forget_connections(config: Config, version: int) -> None:
    """UDP has no end of a connection: what the kernel remembers would send packets where they went before."""
    for mapping in config.mappings:
        if mapping.protocol == "udp":
            try:
                conntrack.forget(version, socket.IPPROTO_UDP, mapping.host_port)
            except OSError as error:
                # The rules are in place: new connections work, so this is no reason to fail.
                print(f"failed to delete stale UDP conntrack entries: {error}", file=sys.stderr)


def read_config(call: Call) -> Config:
    raw = call.config
    if raw.get("masqAll", False):
        raise CNIError(f"masqAll: {raw['masqAll']} is not supported", UNSUPPORTED_FIELD)
    backend = field(raw, "backend", "")
    if backend not in ("", "iptables", "nftables"):
        raise CNIError(f"backend: {backend} is not supported", UNSUPPORTED_FIELD)
    nftables = backend == "nftables" or (not backend and not installed())
    if nftables and (raw.get("conditionsV4") or raw.get("conditionsV6") or raw.get("externalSetMarkChain")):
        raise CNIError("conditionsV4, conditionsV6 and externalSetMarkChain need iptables", UNSUPPORTED_FIELD)
    external = field(raw, "externalSetMarkChain", "")
    if external and raw.get("markMasqBit") is not None:
        raise _invalid("Cannot specify externalSetMarkChain and markMasqBit")
    bit = field(raw, "markMasqBit", _MARK_BIT)
    if not 0 <= bit <= 31:
        raise _invalid("MasqMarkBit must be between 0 and 31")
    mappings = field(field(raw, "runtimeConfig", {}), "portMappings", [])
    return Config(
        [_mapping(entry) for entry in mappings],
        field(raw, "snat", True),
        bit,
        external,
        {4: field(raw, "conditionsV4", []), 6: field(raw, "conditionsV6", [])},
        _pods(call.prev_result or {}, call.ifname),
        call.network,
        call.container_id,
        nftables,
    )


def _mapping(raw: Any) -> Mapping:
    if not isinstance(raw, dict):
        raise _invalid("portMappings: must be a list of objects")
    container_port, host_port = field(raw, "containerPort", 0), field(raw, "hostPort", 0)
    for words, port in (("container", container_port), ("host", host_port)):
        if not 0 < port < 65536:
            raise _invalid(f"Invalid {words} port number: {port}")
    protocol = field(raw, "protocol", "").lower()
    if protocol not in ("tcp", "udp", "sctp"):
        raise _invalid(f"Invalid protocol: {raw.get('protocol')}")
    host_ip = field(raw, "hostIP", "")
    try:
        _ = host_ip and ipaddress.ip_address(host_ip)
    except ValueError:
        raise _invalid(f"Invalid host IP: {host_ip}") from None
    return Mapping(host_port, container_port, protocol, host_ip)


def _pods(result: Result, ifname: str) -> dict[int, Interface]:
    """The first address of each IP version that is on the pod's interface."""
    found: dict[int, Interface] = {}
    links = result.get("interfaces", [])
    for ip in result.get("ips", ()):
        index = ip.get("interface")
        if isinstance(index, int) and 0 <= index < len(links):
            link = links[index]
            if link.get("name") != ifname or not link.get("sandbox"):
                continue
        address = parse_cidr(ip["address"], "prevResult")
        found.setdefault(address.version, address)
    return found


def _invalid(text: str) -> CNIError:
    return CNIError(text, INVALID_NETWORK_CONFIG)


PLUGIN = Plugin("portmap", add, delete, check, gc=gc)
