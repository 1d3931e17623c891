"""Parses and validates the flags about address ranges. No IO."""

from __future__ import annotations

from dataclasses import dataclass

from pybernetes.api.addresses import IPNetwork, parse_cidr

from ..options import Options
from .cidrset import CIDRError

DEFAULT_PREFIX = {4: 24, 6: 64}


@dataclass(frozen=True, slots=True)
class Settings:
    """The ranges of the cluster with the size of a node's part of each, and the ranges that are not for pods."""

    ranges: tuple[tuple[IPNetwork, int], ...]
    services: tuple[IPNetwork, ...]


def settings(options: Options) -> Settings:
    """Read the flags; `CIDRError` in upstream's words if they contradict each other."""
    check_allocator(options.cidr_allocator_type)
    if not options.cluster_cidr.strip():
        raise CIDRError("Controller: Must specify --cluster-cidr if --allocate-node-cidrs is set")
    networks = _networks(options.cluster_cidr)
    families: set[int] = {network.version for network in networks}
    if len(networks) > 1 and len(families) == 1:
        raise CIDRError(
            f"len of ClusterCIDRs=={len(networks)} and they are not configured as dual stack "
            "(at least one from each IPFamily"
        )
    if len(networks) > 2:
        raise CIDRError(f"length of clusterCIDRs is:{len(networks)} more than max allowed of 2")
    prefixes = _prefixes(options, families)
    services = _networks(options.service_cluster_ip_range) if options.service_cluster_ip_range.strip() else ()
    if len(services) > 1 and services[0].version == services[1].version:
        raise CIDRError("serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)")
    return Settings(tuple((network, prefixes[network.version]) for network in networks), services)


def check_allocator(type: str) -> None:
    """`CIDRError` if there is no such allocator, whether or not it is to be used."""
    if type == "CloudAllocator":
        raise CIDRError("--cidr-allocator-type is set to 'CloudAllocator' but cloud provider is not configured")
    if type != "RangeAllocator":
        raise CIDRError(f"invalid CIDR allocator type: {type}")


def _networks(text: str) -> tuple[IPNetwork, ...]:
    found = []
    for part in text.strip().split(","):
        parsed = parse_cidr(part.strip())
        if parsed is None:
            raise CIDRError(f"invalid CIDR address: {part}")
        found.append(parsed[1])
    return tuple(found)


def _prefixes(options: Options, families: set[int]) -> dict[int, int]:
    """The size of a node's range, by family."""
    both, four, six = options.node_cidr_mask_size, options.node_cidr_mask_size_ipv4, options.node_cidr_mask_size_ipv6
    if len(families) > 1 and both:
        raise CIDRError("usage of --node-cidr-mask-size is not allowed with dual-stack clusters")
    if both and (four or six):
        raise CIDRError(
            "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if "
            "--node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags"
        )
    if families == {6} and four:
        raise CIDRError("usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster")
    if families == {4} and six:
        raise CIDRError("usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster")
    return {4: both or four or DEFAULT_PREFIX[4], 6: both or six or DEFAULT_PREFIX[6]}
