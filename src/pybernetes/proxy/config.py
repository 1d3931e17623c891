"""KubeProxyConfiguration (`--config`): its types, defaults and checks.

Upstream's whole file is accepted; what has no effect here (other modes) is in `WITHOUT_EFFECT` and named in a message
when it is given.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from msgspec import field

from pybernetes.api import configfile
from pybernetes.api.configfile import ConfigError, Section
from pybernetes.api.times import parse_duration

GROUP_VERSION = "kubeproxy.config.k8s.io/v1alpha1"
KIND = "KubeProxyConfiguration"
_SCHEME = configfile.Scheme({(GROUP_VERSION, KIND)}, "k8s.io/kubernetes/pkg/proxy/apis/config/scheme/scheme.go")
DETECT_LOCAL_MODES = ("ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix")
PRIMARY = "primary"
WITHOUT_EFFECT = ("iptables", "ipvs", "winkernel", "oom_score_adj", "port_range", "windows_run_as_service")


class ClientConnection(Section):
    kubeconfig: str | None = None
    accept_content_types: str | None = None
    content_type: str | None = None
    qps: float | None = None
    burst: int | None = None


class NFTables(Section):
    masquerade_bit: int | None = None
    masquerade_all: bool | None = None
    sync_period: str | None = None
    min_sync_period: str | None = None


class Conntrack(Section):
    max_per_core: int | None = None
    min: int | None = None
    tcp_established_timeout: str | None = None
    tcp_close_wait_timeout: str | None = None
    tcp_be_liberal: bool | None = None
    udp_timeout: str | None = None
    udp_stream_timeout: str | None = None


class DetectLocal(Section):
    bridge_interface: str | None = None
    interface_name_prefix: str | None = None


class KubeProxyConfiguration(Section):
    """The content of the file; None for missing fields."""

    kind: str | None = None
    api_version: str | None = None
    feature_gates: dict[str, bool] | None = None
    client_connection: ClientConnection | None = None
    logging: dict[str, Any] | None = None
    hostname_override: str | None = None
    bind_address: str | None = None
    healthz_bind_address: str | None = None
    metrics_bind_address: str | None = None
    bind_address_hard_fail: bool | None = None
    enable_profiling: bool | None = None
    show_hidden_metrics_for_version: str | None = None
    mode: str | None = None
    iptables: dict[str, Any] | None = None
    ipvs: dict[str, Any] | None = None
    nftables: NFTables | None = None
    winkernel: dict[str, Any] | None = None
    detect_local_mode: str | None = None
    detect_local: DetectLocal | None = None
    cluster_cidr: str | None = field(default=None, name="clusterCIDR")
    node_port_addresses: list[str] | None = None
    oom_score_adj: int | None = None
    conntrack: Conntrack | None = None
    config_sync_period: str | None = None
    port_range: str | None = None
    windows_run_as_service: bool | None = None


def load(data: bytes) -> KubeProxyConfiguration:
    """The configuration in a file; `ConfigError` with upstream's words if it is none."""
    return configfile.load(data, KubeProxyConfiguration, _SCHEME)


def set_defaults(config: KubeProxyConfiguration) -> None:
    """Fills in what the file did not say."""
    config.kind, config.api_version = KIND, GROUP_VERSION
    config.client_connection = config.client_connection or ClientConnection()
    config.nftables = tables = config.nftables or NFTables()
    config.detect_local = config.detect_local or DetectLocal()
    config.conntrack = tracked = config.conntrack or Conntrack()
    tracked.max_per_core = 32 * 1024 if tracked.max_per_core is None else tracked.max_per_core
    tracked.min = 128 * 1024 if tracked.min is None else tracked.min
    tracked.tcp_established_timeout = tracked.tcp_established_timeout or "24h0m0s"
    tracked.tcp_close_wait_timeout = tracked.tcp_close_wait_timeout or "1h0m0s"
    tracked.udp_timeout = tracked.udp_timeout or "0s"
    tracked.udp_stream_timeout = tracked.udp_stream_timeout or "0s"
    tracked.tcp_be_liberal = bool(tracked.tcp_be_liberal)
    config.bind_address = config.bind_address or "0.0.0.0"
    config.healthz_bind_address = _with_port(config.healthz_bind_address, "0.0.0.0", 10256)
    config.metrics_bind_address = _with_port(config.metrics_bind_address, "127.0.0.1", 10249)
    config.detect_local_mode = config.detect_local_mode or "ClusterCIDR"
    tables.masquerade_bit = 14 if tables.masquerade_bit is None else tables.masquerade_bit
    tables.masquerade_all = bool(tables.masquerade_all)
    tables.sync_period = tables.sync_period or "30s"
    tables.min_sync_period = tables.min_sync_period or "0s"


def check(config: KubeProxyConfiguration) -> None:
    """`ConfigError` for values that make no sense."""
    problems = []
    tables, detect = config.nftables or NFTables(), config.detect_local or DetectLocal()
    if config.mode not in (None, "", "nftables", "iptables"):
        problems.append(f'mode: Unsupported value: "{config.mode}": supported values: "nftables", "iptables"')
    if not 0 <= (tables.masquerade_bit or 0) <= 31:
        problems.append(
            f"nftables.masqueradeBit: Invalid value: {tables.masquerade_bit}: must be within the range [0, 31]"
        )
    if config.detect_local_mode not in DETECT_LOCAL_MODES:
        wanted = ", ".join(f'"{each}"' for each in DETECT_LOCAL_MODES)
        problems.append(f'detectLocalMode: Unsupported value: "{config.detect_local_mode}": supported values: {wanted}')
    if config.detect_local_mode == "BridgeInterface" and not detect.bridge_interface:
        problems.append("detectLocal.bridgeInterface: Required value")
    if config.detect_local_mode == "InterfaceNamePrefix" and not detect.interface_name_prefix:
        problems.append("detectLocal.interfaceNamePrefix: Required value")
    for name, texts in (
        ("clusterCIDR", [each for each in (config.cluster_cidr or "").split(",") if each]),
        ("nodePortAddresses", [each for each in config.node_port_addresses or () if each != PRIMARY]),
    ):
        for text in texts:
            try:
                ipaddress.ip_network(text, strict=False)
            except ValueError:
                problems.append(f'{name}: Invalid value: "{text}": must be a valid CIDR block (e.g. 10.100.0.0/16)')
    if PRIMARY in (config.node_port_addresses or ()) and len(config.node_port_addresses or ()) > 1:
        problems.append('nodePortAddresses: Invalid value: "primary": can\'t use both "primary" and a CIDR')
    tracked = config.conntrack or Conntrack()
    for name, period in (
        ("nftables.syncPeriod", tables.sync_period),
        ("nftables.minSyncPeriod", tables.min_sync_period),
        ("conntrack.tcpEstablishedTimeout", tracked.tcp_established_timeout),
        ("conntrack.tcpCloseWaitTimeout", tracked.tcp_close_wait_timeout),
        ("conntrack.udpTimeout", tracked.udp_timeout),
        ("conntrack.udpStreamTimeout", tracked.udp_stream_timeout),
    ):
        try:
            if parse_duration(period or "0s") < 0:
                problems.append(f'{name}: Invalid value: "{period}": must be greater than or equal to 0')
        except ValueError as error:
            problems.append(f"{name}: {error}")
    for name, number in (("maxPerCore", tracked.max_per_core), ("min", tracked.min)):
        if (number or 0) < 0:
            problems.append(f"conntrack.{name}: Invalid value: {number}: must be greater than or equal to 0")
    for name, where in (
        ("healthzBindAddress", config.healthz_bind_address),
        ("metricsBindAddress", config.metrics_bind_address),
    ):
        try:
            split_address(where or "")
        except ValueError:
            problems.append(f'{name}: Invalid value: "{where}": must be IP:port')
    if problems:
        raise ConfigError("\n".join(problems))


def split_address(text: str) -> tuple[str, int]:
    """Address and port of `10.0.0.1:80` or `[::1]:80`; port 0 for no text."""
    if not text:
        return "", 0
    address, _, port = text.rpartition(":")
    address = address.strip("[]")
    ipaddress.ip_address(address)
    number = int(port)
    if not 0 <= number < 65536:
        raise ValueError(text)
    return address, number


def _with_port(text: str | None, address: str, port: int) -> str:
    """An address with a port; an empty text in the file stays empty: no listener then."""
    if text is None:
        return f"{address}:{port}"
    if not text or text.startswith("[") or text.count(":") == 1:
        return text
    return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"
