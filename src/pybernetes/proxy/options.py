"""The flags of `pyb proxy`, with kube-proxy's names. What is typed wins over the configuration file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from pybernetes.flags import boolean, go_text, words

from .config import ClientConnection, Conntrack, DetectLocal, KubeProxyConfiguration, NFTables

WITHOUT_EFFECT = (
    "config-sync-period",
    "feature-gates",
    "init-only",
    "iptables-localhost-nodeports",
    "iptables-masquerade-bit",
    "iptables-min-sync-period",
    "iptables-sync-period",
    "ipvs-exclude-cidrs",
    "ipvs-min-sync-period",
    "ipvs-scheduler",
    "ipvs-strict-arp",
    "ipvs-sync-period",
    "ipvs-tcp-timeout",
    "ipvs-tcpfin-timeout",
    "ipvs-udp-timeout",
    "kube-api-content-type",
    "log-flush-frequency",
    "logging-format",
    "nftables-sync-period",
    "oom-score-adj",
    "profiling",
    "show-hidden-metrics-for-version",
    "vmodule",
)
"""Upstream's flags that are accepted and change nothing here; the proxy says so when one is given."""


@dataclass(slots=True)
class Options:
    """The proxy's command line, parsed; None = not given."""

    config: str = ""
    write_config_to: str = ""
    cleanup: bool = False
    master: str = ""
    kubeconfig: str | None = None
    hostname_override: str | None = None
    bind_address: str | None = None
    bind_address_hard_fail: bool | None = None
    healthz_bind_address: str | None = None
    metrics_bind_address: str | None = None
    proxy_mode: str | None = None
    cluster_cidr: str | None = None
    detect_local_mode: str | None = None
    pod_bridge_interface: str | None = None
    pod_interface_name_prefix: str | None = None
    nodeport_addresses: list[str] | None = None
    masquerade_all: bool | None = None
    nftables_masquerade_bit: int | None = None
    nftables_min_sync_period: str | None = None
    conntrack_max_per_core: int | None = None
    conntrack_min: int | None = None
    conntrack_tcp_timeout_established: str | None = None
    conntrack_tcp_timeout_close_wait: str | None = None
    conntrack_tcp_be_liberal: bool | None = None
    conntrack_udp_timeout: str | None = None
    conntrack_udp_timeout_stream: str | None = None
    kube_api_qps: float | None = None
    kube_api_burst: int | None = None
    v: int = 0

    def apply(self, config: KubeProxyConfiguration) -> None:
        """Puts what was typed over what the file says."""
        config.client_connection = connection = config.client_connection or ClientConnection()
        config.nftables = tables = config.nftables or NFTables()
        config.detect_local = detect = config.detect_local or DetectLocal()
        config.conntrack = tracked = config.conntrack or Conntrack()
        for section, name, value in (
            (connection, "kubeconfig", self.kubeconfig),
            (connection, "qps", self.kube_api_qps),
            (connection, "burst", self.kube_api_burst),
            (config, "hostname_override", self.hostname_override),
            (config, "bind_address", self.bind_address),
            (config, "bind_address_hard_fail", self.bind_address_hard_fail),
            (config, "healthz_bind_address", self.healthz_bind_address),
            (config, "metrics_bind_address", self.metrics_bind_address),
            (config, "mode", self.proxy_mode),
            (config, "cluster_cidr", self.cluster_cidr),
            (config, "detect_local_mode", self.detect_local_mode),
            (detect, "bridge_interface", self.pod_bridge_interface),
            (detect, "interface_name_prefix", self.pod_interface_name_prefix),
            (config, "node_port_addresses", self.nodeport_addresses),
            (tables, "masquerade_all", self.masquerade_all),
            (tables, "masquerade_bit", self.nftables_masquerade_bit),
            (tables, "min_sync_period", self.nftables_min_sync_period),
            (tracked, "max_per_core", self.conntrack_max_per_core),
            (tracked, "min", self.conntrack_min),
            (tracked, "tcp_established_timeout", self.conntrack_tcp_timeout_established),
            (tracked, "tcp_close_wait_timeout", self.conntrack_tcp_timeout_close_wait),
            (tracked, "tcp_be_liberal", self.conntrack_tcp_be_liberal),
            (tracked, "udp_timeout", self.conntrack_udp_timeout),
            (tracked, "udp_stream_timeout", self.conntrack_udp_timeout_stream),
        ):
            if value is not None:
                setattr(section, name, value)


_HELP: dict[str, str] = {
    "config": "file with a KubeProxyConfiguration",
    "write_config_to": "write the configuration with its defaults to this file, and exit",
    "cleanup": "remove the rules of the proxy, and exit",
    "master": "address of the API server, instead of the kubeconfig's",
    "kubeconfig": "kubeconfig with the server's address and our credentials; empty = inside of a pod",
    "hostname_override": "name of the node, instead of the machine's",
    "bind_address": "accepted for compatibility: the proxy itself listens on no address",
    "bind_address_hard_fail": "end if the ports of --healthz-bind-address or --metrics-bind-address are taken",
    "healthz_bind_address": "address and port of /healthz, empty = none (default 0.0.0.0:10256)",
    "metrics_bind_address": "address and port of /metrics, empty = none (default 127.0.0.1:10249)",
    "proxy_mode": "nftables; iptables is accepted and means the same here",
    "cluster_cidr": "ranges of the pods' addresses; packets from elsewhere to cluster IPs are masqueraded",
    "detect_local_mode": "how packets of pods are known: ClusterCIDR, NodeCIDR, BridgeInterface, InterfaceNamePrefix",
    "pod_bridge_interface": "with BridgeInterface: the bridge",
    "pod_interface_name_prefix": "with InterfaceNamePrefix: how the interfaces' names begin",
    "nodeport_addresses": "ranges of the node's addresses that have node ports, or primary (default: all addresses)",
    "masquerade_all": "masquerade all packets to cluster IPs",
    "nftables_masquerade_bit": "bit of the packet mark that means masquerade (default 14)",
    "nftables_min_sync_period": "set rules at most so often (default 0s: at once)",
    "conntrack_max_per_core": "tracked connections for each core, 0 = leave the kernel's limit (default 32768)",
    "conntrack_min": "tracked connections at least, where --conntrack-max-per-core is not 0 (default 131072)",
    "conntrack_tcp_timeout_established": "how long an idle TCP connection is tracked, 0 = as it is (default 24h)",
    "conntrack_tcp_timeout_close_wait": "the same in the state CLOSE_WAIT (default 1h)",
    "conntrack_tcp_be_liberal": "take only out of window RST packets for invalid",
    "conntrack_udp_timeout": "how long an UDP connection without answer is tracked (default 0s: as it is)",
    "conntrack_udp_timeout_stream": "the same for one with answers (default 0s: as it is)",
    "kube_api_qps": "requests per second, 0 = no limit",
    "kube_api_burst": "requests at once, where there is a limit",
    "v": "how much to log",
}


def parse(argv: Sequence[str], program: str = "pyb proxy") -> Options:
    """The flags; exits with a message on a bad one."""
    parser = argparse.ArgumentParser(prog=program, description="Serves Services on this node.", allow_abbrev=False)
    add_flags(parser)
    found = vars(parser.parse_args(argv))
    for name in [each for each in found if each.startswith("without effect: ")]:
        del found[name]
        print(f"{program}: --{name.partition(': ')[2]} has no effect", file=sys.stderr)
    return Options(**found)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the proxy's flags to a parser."""
    kinds = {each.name: str(each.type) for each in fields(Options)}
    for name, help in _HELP.items():
        flags = ["-v", "--v"] if name == "v" else ["--" + name.replace("_", "-")]
        options: dict[str, Any] = {"dest": name, "help": help, "default": argparse.SUPPRESS}
        kind = kinds[name]
        if "bool" in kind:
            parser.add_argument(*flags, type=boolean, nargs="?", const=True, **options)
        elif "list" in kind:
            parser.add_argument(*flags, type=words, **options)
        else:
            parser.add_argument(*flags, type=float if "float" in kind else int if "int" in kind else str, **options)
    for name in WITHOUT_EFFECT:
        parser.add_argument(
            f"--{name}", nargs="?", dest=f"without effect: {name}", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )


def flag_values(options: Options) -> dict[str, str]:
    """The flags by name with their values in Go's forms."""
    return {name.replace("_", "-"): go_text(getattr(options, name)) for name in _HELP}
