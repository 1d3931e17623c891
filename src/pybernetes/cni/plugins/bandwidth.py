"""Limits how much a pod receives and sends (`bandwidth`), behind a plugin that connects it by a pair of links.

What the pod receives is what the node's end of the pair sends: a token bucket there limits it. What the pod sends is
redirected from that end to a link of kind ifb, which has a token bucket as well. The limits come from the runtime
(capability `bandwidth`: the pod's annotations `kubernetes.io/ingress-bandwidth` and `egress-bandwidth`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ..errors import INVALID_NETWORK_CONFIG, UNSUPPORTED_FIELD, CNIError, NamespaceNotFound, reason
from ..fields import field
from ..netlink.namespace import Namespace
from ..netlink.rtnl import Link, LinkNotFound
from ..netlink.traffic import TokenBucket, Traffic
from ..results import Result
from ..skel import Call, Plugin
from . import pod_interface

_LATENCY = 0.025
"""Seconds that a packet may wait in a token bucket, as with Debian's plugin."""
_LONGEST_NAME = 15
_LARGEST_BURST = 1 << 32


@dataclass(frozen=True)
class Config:
    """Bits a second and bits at once, in both directions as the pod sees them; 0 = no limit."""

    ingress: TokenBucket | None
    egress: TokenBucket | None


def read_config(call: Call) -> Config:
    """The limits: the runtime's, else those of the network."""
    for key in ("unshapedSubnets", "shapedSubnets"):
        if call.config.get(key):
            raise CNIError(f"{key} is not supported", UNSUPPORTED_FIELD)
    limits = field(field(call.config, "runtimeConfig", {}), "bandwidth", {}) or call.config
    return Config(*(_bucket(field(limits, f"{way}Rate", 0), field(limits, f"{way}Burst", 0)) for way in _WAYS))


_WAYS = ("ingress", "egress")


def _bucket(rate: int, burst: int) -> TokenBucket | None:
    if rate < 0 or burst < 0:
        raise CNIError("rate and burst must not be less than 0", INVALID_NETWORK_CONFIG)
    if bool(rate) != bool(burst):
        given, missing = ("rate", "burst") if rate else ("burst", "rate")
        raise CNIError(f"if {given} is set, {missing} must also be set", INVALID_NETWORK_CONFIG)
    if not rate:
        return None
    if burst // 8 >= _LARGEST_BURST:
        raise CNIError("burst cannot be more than 4GB", INVALID_NETWORK_CONFIG)
    at_once = burst // 8
    return TokenBucket(rate // 8, at_once, int(rate // 8 * _LATENCY) + at_once)


def add(call: Call) -> Result:
    """Puts the limits on the node's end of the pair; the result is that of the plugins before, and the new link."""
    config = read_config(call)
    previous = call.prev_result
    if previous is None:
        raise CNIError("must be called as chained plugin")
    if config.ingress is None and config.egress is None:
        return previous
    with Traffic() as traffic:
        host = _host_link(traffic, call)
        try:
            if config.ingress:
                traffic.set_token_bucket(host.index, config.ingress)
            if config.egress:
                made = _limit_sent(traffic, call, host, config.egress)
                previous.setdefault("interfaces", []).append({"name": made.name, "mac": made.mac, "mtu": made.mtu})
        except OSError as error:
            _remove_ifb(traffic, call)
            raise CNIError(f"failed to limit the bandwidth of {host.name}: {reason(error)}") from None
    return previous


def delete(call: Call) -> None:
    """Removes the link of kind ifb; the limits on the pair go with the pair."""
    with Traffic() as traffic:
        _remove_ifb(traffic, call)


def check(call: Call) -> None:
    """Refuses if a limit is missing or another one."""
    config = read_config(call)
    if call.prev_result is None:
        raise CNIError("must be called as chained plugin")
    with Traffic() as traffic:
        host = _host_link(traffic, call)
        if config.ingress:
            _check_bucket(traffic, host, config.ingress)
        if config.egress:
            try:
                _check_bucket(traffic, traffic.link(ifb_name(call)), config.egress)
            except LinkNotFound:
                raise CNIError(f"link {ifb_name(call)} not found") from None


def ifb_name(call: Call) -> str:
    """The name of the container's link of kind ifb, as Debian's plugin calls it."""
    return f"bwp{hashlib.sha512((call.network + call.container_id).encode()).hexdigest()}"[:_LONGEST_NAME]


def _host_link(traffic: Traffic, call: Call) -> Link:
    """The node's end of the pair whose other end is the pod's link."""
    try:
        with Namespace(call.netns) as netns:
            pod = netns.run(pod_interface.describe, call.ifname)
    except (NamespaceNotFound, LinkNotFound) as error:
        raise CNIError(f"the pod has no link {call.ifname}: {error}") from None
    named = {each.get("name") for each in (call.prev_result or {}).get("interfaces", ()) if not each.get("sandbox")}
    for link in traffic.links():
        if link.kind == "veth" and (link.index, link.peer) == (pod.peer, pod.index) and link.name in named:
            return link
    raise CNIError(f"no link of this node leads to {call.ifname} of the pod: bandwidth needs a plugin with a veth pair")


def _limit_sent(traffic: Traffic, call: Call, host: Link, bucket: TokenBucket) -> Link:
    name = ifb_name(call)
    traffic.add_link(name, "ifb", mtu=host.mtu)
    link = traffic.link(name)
    traffic.set_link(link.index, up=True)
    traffic.set_token_bucket(link.index, bucket)
    traffic.redirect_received(host.index, link.index)
    return link


def _remove_ifb(traffic: Traffic, call: Call) -> None:
    try:
        traffic.delete_link(traffic.link(ifb_name(call)).index)
    except LinkNotFound:
        pass


def _check_bucket(traffic: Traffic, link: Link, wanted: TokenBucket) -> None:
    found = traffic.token_bucket(link.index)
    if found is None or (found.rate, found.limit) != (wanted.rate, wanted.limit):
        raise CNIError(f"{link.name} does not have the token bucket of {wanted.rate} bytes/s")


PLUGIN = Plugin("bandwidth", add, delete, check)
