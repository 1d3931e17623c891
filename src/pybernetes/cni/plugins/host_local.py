"""Gives out addresses of ranges, kept in files of this machine: one file for each address that is in use.

Each set of ranges gives one address, so two sets make a pod dual-stack. Addresses go round: the search begins behind
the last one given out, so that a pod that comes and goes does not get the address its predecessor just had.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

from ..errors import INVALID_NETWORK_CONFIG, CNIError, reason
from ..fields import Address, field, parse_cidr, parse_ip, plugin_args
from ..results import Result
from ..skel import Call, Plugin
from ..versions import at_least
from .host_local_ranges import RangeSet
from .host_local_store import Store


@dataclass(frozen=True)
class Config:
    """The address settings of the network's configuration."""

    ranges: list[RangeSet]
    requested: list[Address]
    routes: list[dict[str, Any]]
    data_dir: str
    resolv_conf: str


def add(call: Call) -> Result:
    """Reserves an address of each set of ranges; all or none."""
    config = _config(call)
    result: Result = {"ips": []}
    if config.resolv_conf:
        result["dns"] = resolv_conf(config.resolv_conf)
    requested = list(config.requested)
    with Store(call.network, config.data_dir) as store:
        try:
            for index, ranges in enumerate(config.ranges):
                wanted = next((ip for ip in requested if ranges.contains(ip)), None)
                if wanted is not None:
                    requested.remove(wanted)
                result["ips"].append(_allocate(store, ranges, index, call, wanted))
            if requested:
                raise CNIError("failed to allocate all requested IPs: " + " ".join(map(str, requested)))
        except CNIError:
            if result["ips"]:
                store.release(call.container_id, call.ifname)
            raise
    if config.routes:
        result["routes"] = config.routes
    return result


def delete(call: Call) -> None:
    """Gives back all that the container's interface has; nothing is fine as well."""
    config = _config(call)
    with Store(call.network, config.data_dir) as store:
        store.release(call.container_id, call.ifname)


def check(call: Call) -> None:
    """Refuses if the container's interface has no address."""
    config = _config(call)
    with Store(call.network, config.data_dir) as store:
        if not store.addresses(call.container_id, call.ifname):
            raise CNIError(f"host-local: Failed to find address added by container {call.container_id}")


def status(call: Call) -> None:
    """Refuses a configuration that no address could be given out from, or a folder that cannot be used."""
    config = _config(call)
    with Store(call.network, config.data_dir):
        pass


def gc(call: Call) -> None:
    """Gives back what belongs to attachments that are no longer valid."""
    config = _config(call)
    valid = call.valid_attachments
    known = valid | {(container_id, "") for container_id, _ in valid}  # as written before there were interfaces
    with Store(call.network, config.data_dir) as store:
        for owner in store.owners() - known:
            store.release(*owner)


def resolv_conf(path: str) -> dict[str, Any]:
    """The DNS part of a result from a file in the form of resolv.conf."""
    dns: dict[str, Any] = {}
    try:
        with open(path) as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise CNIError(f"open {path}: {reason(error)}") from None
    lists = {"nameserver": "nameservers", "search": "search", "options": "options"}
    for line in lines:
        word, *values = line.split() or [""]
        if not values or word.startswith(("#", ";")):
            continue
        if word == "domain":
            dns["domain"] = values[0]
        elif word in lists:
            dns.setdefault(lists[word], []).extend(values[:1] if word == "nameserver" else values)
    return dns


def _allocate(store: Store, ranges: RangeSet, index: int, call: Call, wanted: Address | None) -> dict[str, Any]:
    try:
        if wanted is not None:
            within = ranges.range_for(wanted)
            if wanted == within.gateway:
                raise CNIError(f"requested ip {wanted} is subnet's gateway")
            if not store.reserve(call.container_id, call.ifname, wanted, index):
                raise CNIError(f"requested IP address {wanted} is not available in range set {ranges}")
            return _ip(wanted, within.subnet.prefixlen, within.gateway)
        for given in store.addresses(call.container_id, call.ifname):
            if ranges.contains(given):
                raise CNIError(
                    f"{given} has been allocated to {call.container_id}, duplicate allocation is not allowed"
                )
        for address, within in ranges.after(store.last_reserved(index)):
            if store.reserve(call.container_id, call.ifname, address, index):
                return _ip(address, within.subnet.prefixlen, within.gateway)
        raise CNIError(f"no IP addresses available in range set: {ranges}")
    except CNIError as error:
        raise error.within(f"failed to allocate for range {index}") from None


def _ip(address: Address, prefix: int, gateway: Address) -> dict[str, Any]:
    return {"address": f"{address}/{prefix}", "gateway": str(gateway)}


def _config(call: Call) -> Config:
    if not isinstance(call.config.get("ipam"), dict):
        raise CNIError("IPAM config missing 'ipam' key", INVALID_NETWORK_CONFIG)
    ipam = call.config["ipam"]
    runtime = field(call.config, "runtimeConfig", {})
    listed = field(ipam, "ranges", [])
    if field(ipam, "subnet", ""):  # the form from before there were sets of ranges
        listed = [[{key: ipam[key] for key in ("subnet", "rangeStart", "rangeEnd", "gateway") if key in ipam}], *listed]
    listed = [*field(runtime, "ipRanges", []), *listed]
    if not listed:
        raise CNIError("no IP ranges specified", INVALID_NETWORK_CONFIG)
    ranges = []
    for index, entry in enumerate(listed):
        try:
            ranges.append(RangeSet.from_json(entry))
        except CNIError as error:
            raise error.within(f"invalid range set {index}") from None
    _check_together(ranges, call.version)
    routes = field(ipam, "routes", [])
    for route in routes:
        if not isinstance(route, dict):
            raise CNIError("ipam.routes: must be a list of objects", INVALID_NETWORK_CONFIG)
        parse_cidr(route.get("dst"), "ipam.routes")
        if route.get("gw"):
            parse_ip(route["gw"], "ipam.routes")
    return Config(
        ranges,
        _requested(call, runtime),
        routes,
        field(ipam, "dataDir", ""),
        field(ipam, "resolvConf", ""),
    )


def _check_together(ranges: list[RangeSet], version: str) -> None:
    versions = [each.version for each in ranges]
    if max(versions.count(4), versions.count(6)) > 1 and not at_least(version, "0.3.0"):
        raise CNIError(f"CNI version {version} does not support more than 1 address per family", INVALID_NETWORK_CONFIG)
    for index, first in enumerate(ranges):
        for other, second in enumerate(ranges[index + 1 :], index + 1):
            if first.overlaps(second):
                raise CNIError(f"range set {index} overlaps with {other}", INVALID_NETWORK_CONFIG)


def _requested(call: Call, runtime: dict[str, Any]) -> list[Address]:
    """Requested addresses: by CNI_ARGS, by `args` in the configuration, or by the runtime (`ips`)."""
    texts: list[Any] = []
    arguments = plugin_args(call.args, {"IP"})
    if "IP" in arguments:
        texts.append(arguments["IP"])
    texts += field(field(field(call.config, "args", {}), "cni", {}), "ips", [])
    texts += field(runtime, "ips", [])
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_interface(text if isinstance(text, str) else "").ip)
        except ValueError:
            raise CNIError(f"cannot understand ip: {text}", INVALID_NETWORK_CONFIG) from None
    return found


PLUGIN = Plugin("host-local", add, delete, check, status, gc)
