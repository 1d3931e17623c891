"""Flags and configuration file of the proxy."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest

from pybernetes.api.configfile import ConfigError
from pybernetes.proxy import sysctls
from pybernetes.proxy.command import configuration, main, settings
from pybernetes.proxy.config import split_address
from pybernetes.proxy.options import parse

FILE = """
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 10.1.0.0/16,fd00:1::/64
hostnameOverride: Node-1
nodePortAddresses: [192.0.2.0/24]
healthzBindAddress: 192.0.2.1
nftables: {masqueradeBit: 15, minSyncPeriod: 2s}
clientConnection: {kubeconfig: /a}
"""


def test_a_file_is_read_and_flags_win_over_it(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    config = configuration(parse([f"--config={path}", "--kubeconfig=/b", "--masquerade-all"]))
    assert config.client_connection is not None
    assert config.client_connection.kubeconfig == "/b"
    assert config.healthz_bind_address == "192.0.2.1:10256"
    assert config.metrics_bind_address == "127.0.0.1:10249"
    made = settings(config)
    assert made.node_name == "node-1"
    assert made.min_sync_period == 2.0
    assert made.table.masquerade_all
    assert made.table.mark == 1 << 15
    assert made.table.cluster_cidrs == tuple(map(ipaddress.ip_network, ("10.1.0.0/16", "fd00:1::/64")))
    assert made.table.node_port_networks == (ipaddress.ip_network("192.0.2.0/24"),)


@pytest.mark.parametrize(
    ("flags", "interface", "node_cidrs"),
    [
        (["--detect-local-mode=BridgeInterface", "--pod-bridge-interface=cni0"], "cni0", False),
        (["--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix=veth"], "veth*", False),
        (["--detect-local-mode=NodeCIDR"], "", True),
    ],
)
def test_packets_of_pods_are_known_in_several_ways(flags: list[str], interface: str, node_cidrs: bool) -> None:
    made = settings(configuration(parse([*flags, "--cluster-cidr=10.1.0.0/16"])))
    assert (made.table.local_interface, made.detect_node_cidrs) == (interface, node_cidrs)
    assert made.table.cluster_cidrs == ()


def test_node_ports_on_the_primary_addresses() -> None:
    made = settings(configuration(parse(["--nodeport-addresses=primary"])))
    assert made.primary_node_ports
    assert made.table.node_port_networks is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--proxy-mode=ipvs"], 'mode: Unsupported value: "ipvs"'),
        (["--cluster-cidr=pods"], 'clusterCIDR: Invalid value: "pods"'),
        (["--nodeport-addresses=primary,10.0.0.0/8"], "nodePortAddresses"),
        (["--detect-local-mode=BridgeInterface"], "detectLocal.bridgeInterface: Required value"),
        (["--nftables-masquerade-bit=32"], "nftables.masqueradeBit"),
        (["--healthz-bind-address=here:1"], "healthzBindAddress"),
        (["--nftables-min-sync-period=soon"], "nftables.minSyncPeriod"),
    ],
)
def test_what_makes_no_sense_is_refused(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        configuration(parse(flags))


def test_an_unknown_field_of_the_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(FILE + "colour: red\n")
    assert main([f"--config={path}"]) == 1
    assert 'unknown field "colour"' in capsys.readouterr().err


def test_flags_without_effect_are_accepted_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    parse(["--ipvs-scheduler=rr", "--iptables-sync-period", "30s"])
    said = capsys.readouterr().err
    assert "pyb proxy: --ipvs-scheduler has no effect" in said
    assert "--iptables-sync-period" in said


def test_the_configuration_can_be_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    assert main(["--cluster-cidr=10.1.0.0/16", f"--write-config-to={path}"]) == 0
    assert json.loads(path.read_text())["clusterCIDR"] == "10.1.0.0/16"
    assert configuration(parse([f"--config={path}"])).cluster_cidr == "10.1.0.0/16"


def test_addresses_with_ports() -> None:
    assert split_address("0.0.0.0:10256") == ("0.0.0.0", 10256)
    assert split_address("[::1]:80") == ("::1", 80)
    assert split_address("") == ("", 0)


def test_parameters_of_connection_tracking_are_set_and_what_the_kernel_refuses_stays(tmp_path: Path) -> None:
    flags = ["--conntrack-udp-timeout=30s", "--conntrack-tcp-timeout-close-wait=10m", "--conntrack-max-per-core=1"]
    config = configuration(parse([*flags, "--conntrack-min=7", "--conntrack-tcp-be-liberal"]))
    assert config.conntrack is not None
    assert sysctls.parameters(config.conntrack, 2) == {
        "nf_conntrack_tcp_timeout_established": 86400,
        "nf_conntrack_tcp_timeout_close_wait": 600,
        "nf_conntrack_udp_timeout": 30,
        "nf_conntrack_tcp_be_liberal": 1,
        "nf_conntrack_max": 7,
    }
    for name, value in (("tcp_timeout_established", 432000), ("udp_timeout", 10), ("max", 1000)):
        (tmp_path / f"nf_conntrack_{name}").write_text(f"{value}\n")
    sysctls.apply(config.conntrack, tmp_path)
    found = {file.name.removeprefix("nf_conntrack_"): file.read_text().strip() for file in tmp_path.iterdir()}
    assert (found["tcp_timeout_established"], found["udp_timeout"], found["max"]) == ("86400", "30", "1000")
    with pytest.raises(ConfigError, match=r"conntrack\.udpTimeout"):
        configuration(parse(["--conntrack-udp-timeout=-1s"]))
