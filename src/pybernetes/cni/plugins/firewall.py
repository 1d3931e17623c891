"""Lets packets from and to a pod pass a firewall that drops what is forwarded (`firewall`), behind other plugins.

Chains and rules are those of Debian's plugin, so that either can take down what the other set up:

    FORWARD: -j CNI-FORWARD
    CNI-FORWARD: -j CNI-ADMIN (the administrator's own rules), then for each pod's address
                 answers to it, and all that comes from it, are accepted

`ingressPolicy: same-bridge` drops what comes from another bridge. It needs iptables: a rule of nftables cannot accept
what another table drops.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UNSUPPORTED_FIELD, CNIError
from ..fields import Interface, field, parse_cidr
from ..iptables import Chain, Filter, Rule, installed
from ..results import Result
from ..skel import Call, Plugin

FORWARD, ADMIN = "CNI-FORWARD", "CNI-ADMIN"
STAGE_1, STAGE_2 = "CNI-ISOLATION-STAGE-1", "CNI-ISOLATION-STAGE-2"
_OPEN, _SAME_BRIDGE = "open", "same-bridge"


@dataclass(frozen=True)
class Config:
    """The settings of the firewall plugin, and the pod's addresses."""

    admin_chain: str
    bridge: str
    """The bridge whose pods are apart from others; empty with `ingressPolicy: open`."""
    pods: list[Interface]


def read_config(call: Call) -> Config:
    """The configuration, checked."""
    raw = call.config
    backend = field(raw, "backend", "")
    if backend not in ("", "iptables"):
        raise CNIError(f"backend: {backend} is not supported", UNSUPPORTED_FIELD)
    policy = field(raw, "ingressPolicy", "") or _OPEN
    if policy not in (_OPEN, _SAME_BRIDGE):
        raise CNIError(f"ingressPolicy: {policy} is not supported", UNSUPPORTED_FIELD)
    previous = call.prev_result or {}
    bridge = ""
    if policy == _SAME_BRIDGE and call.command != "DEL":
        bridge = _bridge(previous)
    pods = [parse_cidr(ip["address"], "prevResult") for ip in previous.get("ips", ())]
    return Config(field(raw, "iptablesAdminChainName", "") or ADMIN, bridge, pods)


def add(call: Call) -> Result:
    """Puts the rules for the pod's addresses in; the result is that of the plugins before."""
    config = read_config(call)
    if call.prev_result is None:
        raise CNIError("missing prevResult from earlier plugin")
    if not installed():
        raise CNIError("firewall needs iptables, which is not installed")
    for pod in config.pods:
        Filter(pod.version).ensure(_chains(config, pod))
    return call.prev_result


def delete(call: Call) -> None:
    """Takes the rules for the pod's addresses out; none there is fine."""
    config = read_config(call)
    if not installed():
        return
    for pod in config.pods:
        table = Filter(pod.version)
        if table.usable():
            table.remove_rules(FORWARD, _of_pod(pod))


def check(call: Call) -> None:
    """Refuses if a rule is missing."""
    config = read_config(call)
    if call.prev_result is None:
        raise CNIError("missing prevResult from earlier plugin")
    for pod in config.pods:
        table = Filter(pod.version).read()
        for chain in _chains(config, pod):
            entries = [(entry, (*match, "-j", chain.name)) for entry, match in chain.entries]
            for of, rule in [*((chain.name, rule) for rule in chain.rules), *entries]:
                if not table.has(of, rule):
                    raise CNIError(f"rule {' '.join(rule)} of chain {of} not found in table filter")


def _of_pod(pod: Interface) -> list[Rule]:
    host = f"{pod.ip}/{pod.max_prefixlen}"
    return [
        ("-d", host, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"),
        ("-s", host, "-j", "ACCEPT"),
    ]


def _chains(config: Config, pod: Interface) -> list[Chain]:
    """The chains that all pods share, with the rules of one of them."""
    note = ("-m", "comment", "--comment", "CNI firewall plugin rules")
    admin = ("-m", "comment", "--comment", "CNI firewall plugin admin overrides")
    chains = [
        Chain(FORWARD, _of_pod(pod), [("FORWARD", note)], prepend=True),
        Chain(config.admin_chain, entries=[(FORWARD, admin)], prepend=True),
    ]
    if config.bridge:
        why = ("-m", "comment", "--comment", "CNI firewall plugin rules (ingressPolicy: same-bridge)")
        leaves = ("-i", config.bridge, "!", "-o", config.bridge, *why, "-j", STAGE_2)
        chains += [
            Chain(STAGE_2, [("-o", config.bridge, *why, "-j", "DROP"), (*why, "-j", "RETURN")]),
            Chain(STAGE_1, [leaves, (*why, "-j", "RETURN")], entries=[("FORWARD", why)], prepend=True),
        ]
    return chains


def _bridge(previous: Result) -> str:
    """The first link of the node: with the plugin `bridge` that is the bridge."""
    for link in previous.get("interfaces", ()):
        if not link.get("sandbox"):
            return str(link["name"])
    raise CNIError("ingressPolicy: same-bridge needs the plugin bridge before this one")


PLUGIN = Plugin("firewall", add, delete, check)
