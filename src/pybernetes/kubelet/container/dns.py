"""The `resolv.conf` of containers, from `dnsPolicy` and `dnsConfig`.

ClusterFirst: the cluster's name servers, its search domains before the node's, `ndots:5`. Default: what the node has.
None: nothing but what `dnsConfig` says. What exceeds the limits that resolvers have is cut, and said in an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pybernetes.api.core.v1 import Pod, PodDNSConfigOption, PodSpec
from pybernetes.api.gocompat.quote import quote

from ..runtime.types import full_name

# the API's own limits (validation of dnsConfig)
MAX_NAMESERVERS: Final = 3
MAX_SEARCH_PATHS: Final = 32
MAX_SEARCH_CHARS: Final = 2048
MAX_SEARCH_PATH_CHARS: Final = 253  # glibc 2.28 aborts at longer ones
DEFAULT_OPTIONS: Final = ("ndots:5",)

Tell = Callable[[str, str], None]
"""Reason and message of a warning about the pod."""


class DNSError(ValueError):
    """The node's resolv.conf cannot be used."""


@dataclass(slots=True)
class DNSConfig:
    """The content of a resolv.conf: servers, search domains, options."""

    servers: list[str] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClusterDNS:
    """The kubelet's settings for DNS: cluster DNS servers, cluster domain, the node's resolv.conf."""

    servers: Sequence[str] = ()
    domain: str = ""
    resolv_conf: str = "/etc/resolv.conf"
    """The node's file; empty: pods of policy Default get a resolver that finds nothing."""
    node_ips: Sequence[str] = ()


def pod_dns(pod: Pod, cluster: ClusterDNS, tell: Tell) -> DNSConfig:
    """The DNS settings of a pod."""
    config = read_resolv_conf(cluster.resolv_conf)
    spec = pod.spec or PodSpec()
    namespace = (pod.metadata.namespace if pod.metadata else None) or ""
    policy = _policy(spec)
    if policy == "ClusterFirst" and not cluster.servers:
        tell(
            "MissingClusterDNS",
            f"pod: {quote(full_name(pod))}. kubelet does not have ClusterDNS IP configured and cannot create Pod using"
            ' "ClusterFirst" policy. Falling back to "Default" policy.',
        )
        policy = "Default"
    if policy == "None":
        config = DNSConfig()
    elif policy == "ClusterFirst":
        searches = [f"{namespace}.svc.{cluster.domain}", f"svc.{cluster.domain}", cluster.domain]
        config = DNSConfig(
            list(cluster.servers),
            _unique([*searches, *config.searches]) if cluster.domain else config.searches,
            list(DEFAULT_OPTIONS),
        )
    elif not cluster.resolv_conf:
        local = ["::1" if ":" in ip else "127.0.0.1" for ip in cluster.node_ips]
        config = DNSConfig(local or ["127.0.0.1"], ["."], config.options)
    if spec.dns_config is not None:
        more = spec.dns_config
        config.servers = _unique([*config.servers, *(more.nameservers or ())])
        config.searches = _unique([*config.searches, *(more.searches or ())])
        config.options = _merge_options(config.options, more.options or ())
    return _within_limits(config, tell)


def read_resolv_conf(path: str) -> DNSConfig:
    """Parse the node's resolv.conf; empty if it cannot be read."""
    if not path:
        return DNSConfig()
    try:
        text = Path(path).read_text(errors="replace")
    except OSError as error:
        raise DNSError(f"open {path}: {(error.strerror or str(error)).lower()}") from None
    return parse_resolv_conf(text)


def parse_resolv_conf(text: str) -> DNSConfig:
    """Name servers add up, the last search line holds, options replace those of the same name."""
    config = DNSConfig()
    options: dict[str, str] = {}
    for line in text.split("\n"):
        match line.split():
            case ["nameserver"]:
                raise DNSError(
                    "Encountered error while parsing resolv conf file. Error: nameserver list is empty "
                )  # the blank at the end is upstream's
            case ["nameserver", server, *_]:
                config.servers.append(server)
            case ["search", *searches]:
                config.searches = [each.removesuffix(".") for each in searches if each != "."]
            case ["options", *found]:
                options |= {each.split(":")[0]: each for each in found}
    config.options = list(options.values())
    return config


def _policy(spec: PodSpec) -> str:
    match spec.dns_policy:
        case "None" | "Default":
            return spec.dns_policy
        case "ClusterFirst" if spec.host_network:
            return "Default"
    return "ClusterFirst"


def _merge_options(options: Iterable[str], more: Iterable[PodDNSConfigOption]) -> list[str]:
    merged: dict[str, str] = {}
    for option in options:
        name, _, value = option.partition(":")
        merged[name] = value
    for each in more:
        merged[each.name or ""] = each.value or ""
    return [f"{name}:{value}" if value else name for name, value in merged.items()]


def _within_limits(config: DNSConfig, tell: Tell) -> DNSConfig:
    if len(config.servers) > MAX_NAMESERVERS:
        config.servers = config.servers[:MAX_NAMESERVERS]
        tell(
            "DNSConfigForming",
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
            + " ".join(config.servers),
        )
    searches = [each for each in config.searches[:MAX_SEARCH_PATHS] if len(each) <= MAX_SEARCH_PATH_CHARS]
    while searches and len(" ".join(searches)) > MAX_SEARCH_CHARS:
        searches.pop()
    if len(searches) < len(config.searches):
        config.searches = searches
        tell(
            "DNSConfigForming",
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "
            + " ".join(searches),
        )
    return config


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
