"""macvlan, vlan, ptp, bandwidth, tuning, firewall, ipvlan and noop against the kernel, and beside Debian's binaries.

`process` is ours inside this process, `files` ours as executables, `debian` the binaries of Debian.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from cni.conftest import Lab
from cni.test_plugins import DEBIAN, ask, runtimes, serve

from pybernetes.cni import config
from pybernetes.cni.errors import CNIError
from pybernetes.cni.invoke import Plugins
from pybernetes.cni.libcni import CNI, RuntimeConf
from pybernetes.cni.skel import BUILT_IN

needs_debian = pytest.mark.skipif(not os.path.exists(f"{DEBIAN}/ptp"), reason="Debian's plugins are not installed")
TUNING = {"sysctl": {"net.ipv4.conf.eth0.arp_filter": "1"}, "mtu": 1300, "promisc": True}
BANDWIDTH = {"ingressRate": 1_600_000, "ingressBurst": 800_000, "egressRate": 800_000, "egressBurst": 400_000}
"""Bits: 200 and 100 KB a second, 100 and 50 KB at once."""


def network(folder: Path, *plugins: dict[str, Any], version: str = "1.0.0") -> Any:
    document = {"cniVersion": version, "name": "pods", "plugins": plugins}
    return config.from_bytes(json.dumps(document).encode())


def ipam(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "type": "host-local",
        "dataDir": str(folder / "ipam"),
        "ranges": [[{"subnet": "10.77.1.0/24"}], [{"subnet": "fd00:77::/64"}]],
        **more,
    }


DEFAULT_ROUTES = [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]


def ptp(folder: Path, **more: Any) -> dict[str, Any]:
    return {"type": "ptp", "mtu": 1400, "ipam": ipam(folder, routes=DEFAULT_ROUTES), **more}


def lists(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The networks that are compared with Debian's plugins."""
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipam": ipam(folder)}
    return {
        "macvlan": [{"type": "macvlan", "master": "up0", "mode": "private", "mtu": 1300, "ipam": ipam(folder)}],
        "vlan": [{"type": "vlan", "master": "up0", "vlanId": 7, "ipam": ipam(folder)}],
        "ptp": [ptp(folder)],
        "tuning": [ptp(folder), {"type": "tuning", "dataDir": str(folder / "tuning"), **TUNING}],
        "firewall": [ptp(folder), {"type": "firewall"}],
        "same-bridge": [bridge, {"type": "firewall", "ingressPolicy": "same-bridge"}],
        "bandwidth": [ptp(folder), {"type": "bandwidth", **BANDWIDTH}],
    }


def runtime(lab: Lab, number: int = 0, **capabilities: Any) -> RuntimeConf:
    return RuntimeConf(f"container{number}", lab.pods[number], "eth0", (("IgnoreUnknown", "1"),), capabilities)


def skip_without(lab: Lab, kind: str) -> None:
    """Skips where the kernel has no links of this kind."""
    if not kernel_has(lab, kind):
        pytest.skip(f"this kernel has no {kind}")


def kernel_has(lab: Lab, kind: str) -> bool:
    """Whether the kernel makes links of a kind that stands on another link."""
    more = ["id", "7"] if kind == "vlan" else []
    add = ["ip", "-n", Path(lab.node).name, "link", "add", "probe", "link", "up0", "type", kind, *more]
    refused = b"Unknown device type" in subprocess.run(add, capture_output=True, check=False).stderr
    if not refused:
        lab.output(lab.node, "ip", "link", "delete", "probe")
    return not refused


def with_uplink(lab: Lab) -> None:
    """The node's link `up0`, whose other end is the node's `far0`."""
    lab.output(lab.node, "ip", "link", "add", "up0", "type", "veth", "peer", "name", "far0")
    for name in ("up0", "far0"):
        lab.output(lab.node, "ip", "link", "set", name, "up")


def comparable(text: str) -> Any:
    """JSON of ip and tc without what differs between two runs: numbers of links, hardware addresses, random names.

    Nor with what the kernel finds out a moment later: whether a link has a carrier.
    """
    text = re.sub(r"fe80::[0-9a-f:]+(?=\")", "fe80::1", re.sub(r"veth[0-9a-f]{8}", "veth", text))
    unequal = {"ifindex", "link_index", "address", "link_netnsid", "ifalias", "inet6_addr_gen_mode", "permaddr"}
    unequal.add("operstate")
    carrier = {"NO-CARRIER", "LOWER_UP", "linkdown", "dead"}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key not in unequal}
        if isinstance(value, list):
            return [plain(each) for each in value if not isinstance(each, str) or each not in carrier]
        return value

    return plain(json.loads(text or "[]"))


def kernel(lab: Lab) -> dict[str, Any]:
    """All that plugins could have changed on the node and in the pod."""
    found: dict[str, Any] = {}
    for name, where in (("node", lab.node), ("pod", lab.pods[0])):
        links = comparable(lab.output(where, "ip", "-d", "-j", "link"))
        kept = ("ifname", "mtu", "flags", "linkinfo", "link", "promiscuity")
        for each in links:  # of bridges and their ports most is timers
            each["linkinfo"] = {key: each.get("linkinfo", {}).get(key) for key in ("info_kind", "info_slave_kind")}
        found[f"{name} links"] = sorted(({k: v for k, v in each.items() if k in kept} for each in links), key=str)
        for version in ("-4", "-6"):
            routes = comparable(lab.output(where, "ip", version, "-j", "route", "show", "table", "all"))
            found[f"{name} routes {version}"] = sorted((each for each in routes if each["dst"] != "ff00::/8"), key=str)
        disciplines = lab.output(where, "tc", "-j", "-d", "qdisc").replace(
            '"linklayer":"ethernet"', '"linklayer":"unspec"'
        )
        found[f"{name} disciplines"] = comparable(disciplines)
        for program in ("iptables-save", "ip6tables-save"):
            lines = lab.output(where, program).splitlines()
            found[f"{name} {program}"] = [re.sub(r"\[\d+:\d+\]", "", line) for line in lines if line[0] in ":-"]
    filters = [lab.output(lab.node, "tc", "filter", "show", "dev", link, "ingress") for link in node_veths(lab)]
    # Debian's has the action twice; the second is never reached.
    once = re.sub(r"\taction order 2.*?bind 1\n", "", "".join(filters), flags=re.DOTALL)
    found["filters"] = re.sub(r"veth\w+|(installed|used|expires) \d+ sec|firstused \d+ sec|\s", "", once)
    return found


def node_veths(lab: Lab) -> list[str]:
    links = json.loads(lab.output(lab.node, "ip", "-j", "link"))
    return [link["ifname"] for link in links if link["ifname"].startswith("veth")]


def settled(lab: Lab) -> None:
    """No address of IPv6 is tentative any longer: until then routes differ."""
    for where in (lab.node, lab.pods[0]):
        lab.output(where, "sh", "-c", "while ip -6 address show tentative | grep -q inet6; do sleep 0.05; done")


NETWORKS = ["macvlan", "vlan", "ptp", "tuning", "firewall", "same-bridge", "bandwidth"]


@needs_debian
@pytest.mark.parametrize("name", NETWORKS)
def test_the_kernel_looks_as_after_debians_plugins_and_either_undoes_the_others_work(
    lab: Lab, tmp_path: Path, name: str
) -> None:
    with_uplink(lab)
    if name == "vlan":
        skip_without(lab, name)
    made = network(tmp_path, *lists(tmp_path)[name])
    ways = runtimes(tmp_path)
    seen: dict[str, Any] = {}
    for adder, other in (("debian", "process"), ("process", "debian")):
        result = lab.run(lab.node, ways[adder].add, made, runtime(lab))
        settled(lab)
        (tmp_path / "ipam/pods").mkdir(exist_ok=True)
        seen[adder] = (kernel(lab), plain_result(result))
        lab.run(lab.node, ways[other].check, made, runtime(lab))
        lab.run(lab.node, ways[other].delete, made, runtime(lab))
        lab.run(lab.node, ways[adder].delete, made, runtime(lab))
        for file in (tmp_path / "ipam/pods").iterdir():
            file.unlink()  # so that the second gets the same addresses
        seen[f"{adder} left"] = kernel(lab)
    for part, expected in seen["debian"][0].items():
        assert seen["process"][0][part] == expected, part
    assert seen["process"][1] == seen["debian"][1]
    assert seen["process left"] == seen["debian left"]
    assert [each["ifname"] for each in json.loads(lab.output(lab.pods[0], "ip", "-j", "link"))] == ["lo"]


def plain_result(result: dict[str, Any]) -> dict[str, Any]:
    text = re.sub(r"veth[0-9a-f]{8}", "veth", json.dumps(result))
    found: dict[str, Any] = json.loads(text)
    for link in found.get("interfaces", []):
        link.pop("mac", None)
        link.pop("mtu", None)
    return found


@pytest.mark.parametrize("who", ["process", "files"])
def test_pods_on_macvlan_reach_each_other_with_the_addresses_they_asked_for(lab: Lab, tmp_path: Path, who: str) -> None:
    with_uplink(lab)
    plugin = {"type": "macvlan", "master": "up0", "capabilities": {"mac": True}, "ipam": ipam(tmp_path)}
    made, cni = network(tmp_path, plugin), runtimes(tmp_path)[who]
    for number in (0, 1):
        result = lab.run(lab.node, cni.add, made, runtime(lab, number, mac=f"02:00:00:00:00:0{number}"))
        assert result["interfaces"][0]["mac"] == f"02:00:00:00:00:0{number}"
    with lab.run(lab.pods[0], serve, socket.SOCK_STREAM, 80):
        assert lab.run(lab.pods[1], ask, "10.77.1.2", 80) == "10.77.1.3"


def test_a_pod_of_ptp_is_reached_from_the_node_and_leaves_under_the_nodes_address(lab: Lab, tmp_path: Path) -> None:
    made, cni = network(tmp_path, ptp(tmp_path, ipMasq=True)), runtimes(tmp_path)["process"]
    lab.run(lab.node, cni.add, made, runtime(lab, 0))
    lab.run(lab.node, cni.add, made, runtime(lab, 1))
    with lab.run(lab.pods[0], serve, socket.SOCK_STREAM, 80), lab.run(lab.node, serve, socket.SOCK_STREAM, 81):
        assert lab.run(lab.pods[1], ask, "10.77.1.2", 80) == "10.77.1.3"
        assert lab.run(lab.node, ask, "10.77.1.2", 80) == "10.77.1.1"
        assert lab.run(lab.pods[0], ask, "192.0.2.1", 81) == "10.77.1.2"
    for number in (0, 1):
        lab.run(lab.node, cni.delete, made, runtime(lab, number))
    assert node_veths(lab) == []
    assert "container" not in lab.output(lab.node, "iptables-save")


def test_a_pod_cannot_send_or_receive_faster_than_its_bandwidth(lab: Lab, tmp_path: Path) -> None:
    plugins = ptp(tmp_path), {"type": "bandwidth", "capabilities": {"bandwidth": True}}
    made, cni = network(tmp_path, *plugins), runtimes(tmp_path)["process"]
    lab.run(lab.node, cni.add, made, runtime(lab, bandwidth=BANDWIDTH))
    for rate, server, client, host in (
        (200_000, lab.pods[0], lab.node, "10.77.1.2"),
        (100_000, lab.node, lab.pods[0], "192.0.2.1"),
    ):
        received, started = 0, time.monotonic()
        with lab.run(server, socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
            lab.run(server, receiver.bind, ("0.0.0.0", 9000))
            receiver.settimeout(0.1)
            lab.run(client, flood, host)
            try:
                while True:
                    received += len(receiver.recv(2000))
            except TimeoutError:
                pass
        seconds = time.monotonic() - started
        # Half a megabyte is sent as fast as it can: the bucket lets its burst pass, and its rate afterwards.
        assert rate / 4 < received < rate * (0.6 + 1.1 * seconds), seconds


def flood(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(500):
            try:
                sender.sendto(bytes(1000), (host, 9000))
            except BlockingIOError:
                pass
            except OSError:
                continue


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        ({"type": "macvlan", "master": "up0", "mode": "odd"}, "unknown macvlan mode"),
        ({"type": "macvlan", "master": "nothing"}, "failed to lookup master"),
        ({"type": "macvlan"}, "no default route interface found"),
        ({"type": "macvlan", "master": "up0", "mtu": 9000}, "invalid MTU 9000"),
        ({"type": "macvlan", "master": 7}, "master: must be a string"),
        ({"type": "vlan", "vlanId": 7}, '"master" field is required'),
        ({"type": "vlan", "master": "up0", "vlanId": 5000}, "invalid VLAN ID 5000"),
        ({"type": "ptp"}, "ipam.type is missing"),
        ({"type": "bandwidth", "ingressRate": 5}, "chained plugin|burst must also be set"),
        ({"type": "tuning"}, "Required prevResult missing"),
        ({"type": "firewall"}, "missing prevResult"),
        ({"type": "firewall", "backend": "firewalld"}, "backend: firewalld is not supported"),
        ({"type": "ipvlan", "master": "up0", "mode": "l9"}, "unknown ipvlan mode"),
    ],
)
def test_bad_configurations_are_refused_by_field_and_leave_nothing(
    lab: Lab, tmp_path: Path, plugin: dict[str, Any], message: str
) -> None:
    with_uplink(lab)
    with pytest.raises(CNIError, match=message):
        lab.run(lab.node, runtimes(tmp_path)["process"].add, network(tmp_path, plugin), runtime(lab))
    assert [each["ifname"] for each in json.loads(lab.output(lab.pods[0], "ip", "-j", "link"))] == ["lo"]
    assert not (tmp_path / "ipam/pods").exists()


@pytest.mark.parametrize(
    "parameters",
    [{"kernel.pid_max": "5"}, {"net/../kernel/pid_max": "5"}, {"net.ipv4.nothing": "1"}, {"net.ipv4.ip_forward": 1}],
)
def test_tuning_changes_nothing_outside_of_the_pods_network(
    lab: Lab, tmp_path: Path, parameters: dict[str, Any]
) -> None:
    made = network(tmp_path, ptp(tmp_path), {"type": "tuning", "sysctl": parameters})
    with pytest.raises(CNIError, match=r"sysctl|failed to set"):
        lab.run(lab.node, runtimes(tmp_path)["process"].add, made, runtime(lab))


@pytest.mark.parametrize("kind", ["ipvlan", "vlan"])
def test_a_kernel_without_ipvlan_or_vlan_says_so(lab: Lab, tmp_path: Path, kind: str) -> None:
    with_uplink(lab)
    if kernel_has(lab, kind):
        pytest.skip(f"this kernel has {kind}")
    made = network(tmp_path, {"type": kind, "master": "up0", "ipam": ipam(tmp_path)})
    cni = runtimes(tmp_path)["process"]
    with pytest.raises(CNIError, match=f"this kernel has no {kind}"):
        lab.run(lab.node, cni.add, made, runtime(lab))
    lab.run(lab.node, cni.delete, made, runtime(lab))


@pytest.mark.parametrize("name", ["macvlan", "vlan", "ptp", "tuning", "bandwidth", "firewall"])
@pytest.mark.parametrize("broken", ["link", "address", "more"])
def test_a_check_finds_changes(lab: Lab, tmp_path: Path, name: str, broken: str) -> None:
    with_uplink(lab)
    if name == "vlan":
        skip_without(lab, name)
    made, cni = network(tmp_path, *lists(tmp_path)[name]), runtimes(tmp_path)["process"]
    lab.run(lab.node, cni.add, made, runtime(lab))
    lab.run(lab.node, cni.check, made, runtime(lab))
    if broken == "link":
        lab.output(lab.pods[0], "ip", "link", "delete", "eth0")
    elif broken == "address":
        lab.output(lab.pods[0], "ip", "address", "flush", "dev", "eth0")
    elif name == "tuning":
        lab.output(lab.pods[0], "ip", "link", "set", "eth0", "mtu", "1350")
    elif name == "bandwidth":
        lab.output(lab.node, "tc", "qdisc", "delete", "dev", node_veths(lab)[0], "root")
    elif name == "firewall":
        lab.output(lab.node, "iptables", "-F", "CNI-FORWARD")
    else:
        lab.output(lab.pods[0], "ip", "route", "flush", "table", "main")
    with pytest.raises(CNIError):
        lab.run(lab.node, cni.check, made, runtime(lab))


def test_noop_returns_the_configured_result_and_records_its_calls(tmp_path: Path) -> None:
    log = tmp_path / "debug.json"
    reported = {"cniVersion": "1.0.0", "ips": [{"address": "10.1.2.3/24"}]}
    plugin = {"type": "noop", "debugFile": str(log), "debugBehavior": {"reportResult": reported}}
    cni = CNI([str(tmp_path)], tmp_path / "cache")
    conf = RuntimeConf("container", str(tmp_path / "netns"), "eth0")
    assert cni.add(network(tmp_path, plugin), conf)["ips"] == [{"address": "10.1.2.3/24"}]
    written = json.loads(log.read_bytes())
    assert (written["command"], written["cmdArgs"]["ContainerID"]) == ("ADD", "container")
    failing = {"type": "noop", "debugBehavior": {"reportError": "out of luck", "reportErrorCode": 11}}
    with pytest.raises(CNIError, match="out of luck") as raised:
        cni.add(network(tmp_path, failing), conf)
    assert raised.value.code == 11


def test_every_plugin_of_ours_says_which_versions_it_speaks() -> None:
    for name in sorted(BUILT_IN):
        assert "1.1.0" in Plugins([], BUILT_IN.__contains__).versions(name)
