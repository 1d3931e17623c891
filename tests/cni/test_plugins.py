"""Pods connected by our plugins and by Debian's: what one set up the other finds right and takes down.

`process` is ours inside this process, `files` ours as executables, `debian` the binaries of Debian.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from cni.conftest import Lab

from pybernetes.cni import config
from pybernetes.cni.command import install
from pybernetes.cni.errors import CNIError
from pybernetes.cni.iptables import Nat
from pybernetes.cni.libcni import CNI, RuntimeConf
from pybernetes.cni.netlink.rtnl import Netlink
from pybernetes.cni.plugins import ipmasq, portmap

DEBIAN = "/usr/lib/cni"
PORTS = [
    {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
    {"hostPort": 8081, "containerPort": 81, "protocol": "udp"},
    {"hostPort": 8082, "containerPort": 80, "protocol": "tcp", "hostIP": "192.0.2.1"},
]
WHO = ["process", "files", "debian"]


def runtimes(folder: Path) -> dict[str, CNI]:
    """The three ways of calling plugins, with one cache."""
    bins = str(install(folder / "bin")[0].parent)
    return {
        "process": CNI([bins], folder / "cache"),
        "files": CNI([bins], folder / "cache", in_process=()),
        "debian": CNI([DEBIAN], folder / "cache", in_process=()),
    }


def network(folder: Path, version: str = "1.0.0", plugins: list[dict[str, Any]] | None = None, **bridge: Any) -> Any:
    ipam = {
        "type": "host-local",
        "dataDir": str(folder / "ipam"),
        "ranges": [[{"subnet": "10.77.1.0/24"}], [{"subnet": "fd00:77::/64"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
    }
    first = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": ipam, **bridge}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    document = {"cniVersion": version, "name": "pods", "plugins": plugins or [first, portmap]}
    return config.from_bytes(json.dumps(document).encode())


def with_backend(folder: Path, backend: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A network whose ports are forwarded by a backend, or on a machine without iptables."""
    found = network(folder)
    first, second = (dict(each.raw) for each in found.plugins)
    if backend == "no iptables":
        monkeypatch.setattr(portmap, "installed", lambda: False)
        monkeypatch.setattr(Nat, "_run", lambda *_, **__: pytest.fail("iptables was run"))
        return found
    return network(folder, plugins=[first, second | {"backend": backend}])


def runtime(lab: Lab, number: int = 0, ports: list[dict[str, Any]] | None = None) -> RuntimeConf:
    args = (("IgnoreUnknown", "1"), ("K8S_POD_NAME", "web"))
    return RuntimeConf(f"container{number}", lab.pods[number], "eth0", args, {"portMappings": ports or PORTS})


def state(lab: Lab, folder: Path) -> dict[str, Any]:
    """Everything a pod could leave behind on the node."""
    taken = folder / "ipam/pods"
    return {
        "links": sorted(line.split()[0] for line in lab.output(lab.node, "ip", "-br", "link").splitlines()),
        "addresses": sorted(file.name for file in taken.iterdir() if file.name[0] in "1f") if taken.exists() else [],
        "rules": sorted(
            line
            for program in ("iptables-save", "ip6tables-save")
            for line in lab.output(lab.node, program, "-t", "nat").splitlines()
            if "container" in line or "CNI-DN-" in line
        ),
        "cache": sorted(file.name for file in (folder / "cache/results").glob("*")),
    }


def serve(protocol: socket.SocketKind, port: int, family: socket.AddressFamily = socket.AF_INET) -> socket.socket:
    """A server in the caller's namespace that answers with the address of who asked."""
    server = socket.socket(family, protocol)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.settimeout(0.1)  # a thread that waits in the kernel would keep a closed socket, and that its namespace
    server.bind(("", port))
    if protocol == socket.SOCK_STREAM:
        server.listen()
    threading.Thread(target=answer, args=(server, protocol), daemon=True).start()
    return server


def answer(server: socket.socket, protocol: socket.SocketKind) -> None:
    while True:
        try:
            if protocol == socket.SOCK_STREAM:
                connection, peer = server.accept()
                with connection:
                    connection.sendall(peer[0].encode())
            else:
                _, peer = server.recvfrom(100)
                server.sendto(peer[0].encode(), peer)
        except TimeoutError:
            continue
        except OSError:
            return


def ask(host: str, port: int, protocol: socket.SocketKind = socket.SOCK_STREAM) -> str:
    """Who the server says we are."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, protocol) as client:
        client.settimeout(30)
        client.connect((host, port))
        if protocol == socket.SOCK_DGRAM:
            client.send(b"hello")
        return client.recv(100).decode()


@pytest.mark.parametrize("deleter", WHO)
@pytest.mark.parametrize("adder", WHO)
def test_what_one_adds_another_checks_and_deletes(lab: Lab, tmp_path: Path, adder: str, deleter: str) -> None:
    if "debian" in (adder, deleter) and not os.path.exists(f"{DEBIAN}/bridge"):
        pytest.skip("Debian's plugins are not installed")
    ways = runtimes(tmp_path)
    masqueraded = network(tmp_path, ipMasq=True, mtu=1450)
    lab.run(lab.node, ways[adder].add, masqueraded, runtime(lab, 1))
    lab.run(lab.node, ways[adder].delete, masqueraded, runtime(lab, 1))
    before = state(lab, tmp_path)
    result = lab.run(lab.node, ways[adder].add, masqueraded, runtime(lab))
    assert [ip["address"] for ip in result["ips"]] == ["10.77.1.3/24", "fd00:77::3/64"]
    during = state(lab, tmp_path)
    assert len(during["rules"]) > 20
    # Debian's portmap looks for rules of IPv4 in the table of IPv6: it refuses what it added itself.
    checked = masqueraded if deleter != "debian" else network(tmp_path, plugins=[masqueraded.plugins[0].raw])
    lab.run(lab.node, ways[deleter].check, checked, runtime(lab))
    lab.run(lab.node, ways[deleter].delete, masqueraded, runtime(lab))
    assert state(lab, tmp_path) == before
    assert lab.output(lab.pods[0], "ip", "-br", "link").split()[0] == "lo"
    lab.run(lab.node, ways[deleter].delete, masqueraded, runtime(lab))


@pytest.mark.skipif(not os.path.exists(f"{DEBIAN}/bridge"), reason="Debian's plugins are not installed")
@pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "0.3.1", "0.4.0", "1.0.0"])
def test_results_rules_and_links_are_those_of_debians_plugins(lab: Lab, tmp_path: Path, version: str) -> None:
    seen = []
    for who in ("debian", "process"):
        folder = tmp_path / who
        pods = network(folder, version, ipMasq=True, mtu=1400, bridge=f"br-{who}")
        lab.run(lab.node, runtimes(folder)[who].add, pods, runtime(lab))
        entry = json.loads((folder / "cache/results/pods-container0-eth0").read_text())
        links = {
            where: lab.output(path, "ip", "-d", "-j", "address", "show", "dev", link)
            for where, path, link in (("pod", lab.pods[0], "eth0"), ("node", lab.node, f"br-{who}"))
        }
        rules = lab.output(lab.node, "iptables-save", "-t", "nat") + lab.output(lab.node, "ip6tables-save", "-t", "nat")
        assert "tentative" not in links["pod"]  # who gets a result may use the address
        routes = [lab.output(lab.pods[0], "ip", family, "-j", "route") for family in ("-4", "-6")]
        ports = lab.output(lab.node, "bridge", "-d", "-j", "link")
        lab.run(lab.node, runtimes(folder)[who].delete, pods, runtime(lab))
        lab.output(lab.node, "ip", "link", "delete", f"br-{who}")
        seen.append(
            (
                _plain(entry["result"]),
                {where: _plain(json.loads(text)) for where, text in links.items()},
                [line for line in rules.splitlines() if line.startswith("-A")],
                [_plain(json.loads(text)) for text in routes],
                _plain(json.loads(ports)),
            )
        )
    for theirs, ours in zip(*seen, strict=True):
        assert ours == theirs


def _plain(value: Any) -> Any:
    """A document without what differs from run to run: hardware addresses, numbers and names of links.

    A bridge's addresses are tentative for a second or two, until duplicate address detection ends.
    """
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        dropped = (
            "ifindex",
            "link_index",
            "address",
            "mac",
            "link_netnsid",
            "broadcast",
            "ifname",
            "local",
            "dev",
            "link",
            "tentative",
        )
        # Debian's gives the pair no queue, by an oversight that its own text on bridges warns of.
        timers = ("txqlen", "hello_timer", "gc_timer", "tcn_timer", "topology_change_timer", "root_id", "bridge_id")
        kept = {key: _plain(each) for key, each in value.items() if key not in (*dropped, *timers)}
        # Addresses of pods matter, those that links make of their hardware address do not.
        kept |= {key: value[key] for key in ("address", "local") if key in value and _of_pod(value[key])}
        return kept
    return "" if isinstance(value, str) and value.startswith(("veth", "br-", "fe80")) else value


def _of_pod(text: str) -> bool:
    return text.startswith(("10.77.", "fd00:"))


@pytest.mark.parametrize("backend", ["iptables", "nftables", "no iptables"])
def test_ports_of_the_node_lead_to_the_pod_from_everywhere(
    lab: Lab, tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cni, pods = runtimes(tmp_path)["process"], with_backend(tmp_path, backend, monkeypatch)
    other = runtime(lab, 1, [{"hostPort": 9090, "containerPort": 90, "protocol": "tcp"}])
    lab.run(lab.node, cni.add, pods, runtime(lab))
    lab.run(lab.node, cni.add, pods, other)
    servers = [
        lab.run(lab.pods[0], serve, socket.SOCK_STREAM, 80),
        lab.run(lab.pods[0], serve, socket.SOCK_DGRAM, 81),
    ]
    try:
        lab.output(lab.node, "ip", "-6", "address", "add", "2001:db8::1/64", "dev", "lo")
        assert lab.run(lab.node, ask, "127.0.0.1", 8080) == "10.77.1.1"
        assert lab.run(lab.node, ask, "192.0.2.1", 8080) == "192.0.2.1"
        assert lab.run(lab.node, ask, "192.0.2.1", 8081, socket.SOCK_DGRAM) == "192.0.2.1"
        assert lab.run(lab.node, ask, "192.0.2.1", 8082) == "192.0.2.1"
        assert lab.run(lab.pods[1], ask, "10.77.1.1", 8080) in ("10.77.1.1", "10.77.1.3")
        assert lab.run(lab.pods[0], ask, "10.77.1.1", 8080) == "10.77.1.1"  # from the pod to itself: masqueraded
        with pytest.raises(ConnectionRefusedError):
            lab.run(lab.node, ask, "127.0.0.1", 8082)  # only on the address it is for
        lab.run(lab.node, cni.check, pods, runtime(lab))
        lab.run(lab.node, cni.delete, pods, runtime(lab))
        with pytest.raises(ConnectionRefusedError):
            lab.run(lab.node, ask, "192.0.2.1", 8080)
        lab.run(lab.node, cni.check, pods, other)
    finally:
        for server in servers:
            server.close()


def test_nftables_maps_have_the_pods_that_live_and_no_others(lab: Lab, tmp_path: Path) -> None:
    cni = runtimes(tmp_path)["process"]
    first, second = (dict(each.raw) for each in network(tmp_path).plugins)
    pods = network(tmp_path, plugins=[first, second | {"backend": "nftables"}])
    port = [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]

    def shown() -> str:
        return lab.output(lab.node, "nft", "list", "map", "ip", "cni-hostport", "host-ports")

    lab.run(lab.node, cni.add, pods, runtime(lab, 0, port))
    assert "tcp . 8080 comment" in shown()
    assert ": 10.77.1.2 . 80 }" in shown()
    lab.run(lab.node, cni.add, pods, runtime(lab, 1, port))
    assert ": 10.77.1.3 . 80 }" in shown(), "the last wins"
    with pytest.raises(
        CNIError, match=r"could not check ipv4 dnat: element .* of ip cni-hostport host-ports not found"
    ):
        lab.run(lab.node, cni.check, pods, runtime(lab, 0, port))
    lab.run(lab.node, cni.delete, pods, runtime(lab, 0, port))
    lab.run(lab.node, cni.check, pods, runtime(lab, 1, port))
    lab.run(lab.node, cni.gc, pods, [])
    assert "elements" not in lab.output(lab.node, "nft", "list", "ruleset")


@pytest.mark.parametrize("backend", ["iptables", "nftables", "no iptables"])
def test_a_pod_leaves_under_the_nodes_address_and_reaches_its_network_under_its_own(
    lab: Lab, tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cni = runtimes(tmp_path)["process"]
    if backend == "no iptables":
        for module in (portmap, ipmasq):
            monkeypatch.setattr(module, "installed", lambda: False)
        monkeypatch.setattr(Nat, "_run", lambda *_, **__: pytest.fail("iptables was run"))
    more = {} if backend == "no iptables" else {"ipMasqBackend": backend}
    pods = network(tmp_path, ipMasq=True, **more)
    second = runtime(lab, 1, [])
    lab.run(lab.node, cni.add, pods, runtime(lab))
    lab.run(lab.node, cni.add, pods, second)
    # Another network: a link of the node with a machine behind it.
    lab.output(lab.node, "ip", "link", "add", "out", "type", "veth", "peer", "name", "far", "netns", _name(lab.pods[1]))
    for where, link, address in ((lab.node, "out", "198.51.100.1/24"), (lab.pods[1], "far", "198.51.100.2/24")):
        lab.output(where, "ip", "address", "add", address, "dev", link)
        lab.output(where, "ip", "link", "set", link, "up")
    server = lab.run(lab.pods[1], serve, socket.SOCK_STREAM, 80)
    try:
        assert lab.run(lab.pods[0], ask, "198.51.100.2", 80) == "198.51.100.1"
        assert lab.run(lab.pods[0], ask, "10.77.1.3", 80) == "10.77.1.2"
    finally:
        server.close()
    lab.run(lab.node, cni.delete, pods, runtime(lab))
    lab.run(lab.node, cni.delete, pods, second)
    left = lab.output(lab.node, "nft", "list", "ruleset")
    assert "10.77.1." not in left


def _name(path: str) -> str:
    return path.rpartition("/")[2]


@pytest.mark.parametrize(
    "more", [{"conditionsV4": ["-s", "10.0.0.0/8"]}, {"externalSetMarkChain": "MARK"}, {"backend": "ebtables"}]
)
def test_what_portmap_cannot_do_with_nftables_is_refused(lab: Lab, tmp_path: Path, more: dict[str, Any]) -> None:
    cni = runtimes(tmp_path)["process"]
    first, second = (dict(each.raw) for each in network(tmp_path).plugins)
    pods = network(tmp_path, plugins=[first, {**second, "backend": "nftables", **more}])
    with pytest.raises(CNIError, match=r"need iptables|is not supported"):
        lab.run(lab.node, cni.add, pods, runtime(lab))


@pytest.mark.parametrize("backend", ["iptables", "nftables"])
def test_a_new_pod_gets_the_packets_of_a_udp_port_that_another_had(
    lab: Lab, tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cni, pods = runtimes(tmp_path)["process"], with_backend(tmp_path, backend, monkeypatch)
    port = [{"hostPort": 8053, "containerPort": 53, "protocol": "udp"}]
    client = lab.run(lab.node, socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(30)
    client.bind(("192.0.2.1", 5353))
    servers = []
    try:
        for number in (0, 1):
            lab.run(lab.node, cni.add, pods, runtime(lab, number, port))
            servers.append(lab.run(lab.pods[number], serve, socket.SOCK_DGRAM, 53))
            client.sendto(b"hello", ("192.0.2.1", 8053))  # the same connection for the kernel, both times
            assert client.recv(100) == b"192.0.2.1"
            lab.run(lab.node, cni.delete, pods, runtime(lab, number, port))
    finally:
        for each in (client, *servers):
            each.close()


@pytest.mark.parametrize("broken", ["link", "address", "route", "rules", "lease", "bridge"])
def test_a_check_finds_missing_parts(lab: Lab, tmp_path: Path, broken: str) -> None:
    cni, pods = runtimes(tmp_path)["process"], network(tmp_path)
    lab.run(lab.node, cni.add, pods, runtime(lab))
    lab.run(lab.node, cni.check, pods, runtime(lab))
    messages = {
        "link": "Interface name eth0 not found",
        "address": "Failed to match addr 10.77.1.2/24 on interface eth0",
        "route": "Expected Route .* not found in routing table",
        "rules": "could not check ipv4 dnat: chain CNI-DN-[0-9a-f]+ not found in iptables table nat",
        "lease": "host-local: Failed to find address added by container container0",
        "bridge": "CNI veth created for bridge cni0 was not found",
    }
    if broken == "link":
        lab.output(lab.pods[0], "ip", "link", "delete", "eth0")
    elif broken == "address":
        lab.output(lab.pods[0], "ip", "address", "delete", "10.77.1.2/24", "dev", "eth0")
    elif broken == "route":
        lab.output(lab.pods[0], "ip", "route", "delete", "default")
    elif broken == "rules":
        lab.output(lab.node, "iptables", "-t", "nat", "-F")
        lab.output(lab.node, "iptables", "-t", "nat", "-X")
    elif broken == "lease":
        (tmp_path / "ipam/pods/10.77.1.2").unlink()
        (tmp_path / "ipam/pods/fd00:77::2").unlink()
    else:
        veth = next(line.split("@")[0] for line in state(lab, tmp_path)["links"] if line.startswith("veth"))
        lab.output(lab.node, "ip", "link", "set", veth, "nomaster")
    with pytest.raises(CNIError, match=messages[broken]):
        lab.run(lab.node, cni.check, pods, runtime(lab))


def test_a_pod_whose_namespace_is_gone_is_deleted_all_the_same(lab: Lab, tmp_path: Path) -> None:
    cni, pods = runtimes(tmp_path)["process"], network(tmp_path, ipMasq=True)
    lab.run(lab.node, cni.add, pods, runtime(lab))
    gone = RuntimeConf("container0", "/run/netns/pyb-gone", "eth0", (), {"portMappings": PORTS})
    lab.output(lab.pods[0], "ip", "link", "delete", "eth0")
    lab.run(lab.node, cni.delete, pods, gone)
    left = state(lab, tmp_path)
    assert left["addresses"] == left["rules"] == left["cache"] == []
    with pytest.raises(CNIError, match='failed to open netns "/run/netns/pyb-gone": no such file or directory'):
        lab.run(lab.node, cni.add, pods, gone)
    (tmp_path / "file").touch()
    file = RuntimeConf("container0", str(tmp_path / "file"))
    lab.run(lab.node, cni.delete, pods, file)
    with pytest.raises(CNIError, match="not a network namespace"):
        lab.run(lab.node, cni.add, pods, file)


def test_gc_sweeps_up_after_pods_of_which_nothing_is_remembered(lab: Lab, tmp_path: Path) -> None:
    cni, pods = runtimes(tmp_path)["process"], network(tmp_path, "1.1.0", ipMasq=True)
    other = network(tmp_path / "other", "1.1.0", ipMasq=True)
    for number in (0, 1):
        lab.run(lab.node, cni.add, pods, runtime(lab, number))
    kept = state(lab, tmp_path)
    (tmp_path / "cache/results/pods-container0-eth0").unlink()  # killed before it was written
    lab.output(lab.pods[0], "ip", "link", "delete", "eth0")
    lab.run(lab.node, cni.gc, other, [("container0", "eth0"), ("container1", "eth0")])
    assert state(lab, tmp_path)["rules"] == kept["rules"]
    lab.run(lab.node, cni.gc, pods, [("container1", "eth0")])
    left = state(lab, tmp_path)
    assert left["addresses"] == ["10.77.1.3", "fd00:77::3"]
    assert len(left["rules"]) == len(kept["rules"]) / 2
    lab.run(lab.node, cni.check, pods, runtime(lab, 1))
    lab.run(lab.node, cni.gc, pods, [])
    left = state(lab, tmp_path)
    assert left["addresses"] == left["rules"] == left["cache"] == []
    lab.run(lab.node, cni.status, pods)


def test_an_address_is_given_back_when_the_rest_fails(lab: Lab, tmp_path: Path) -> None:
    cni = runtimes(tmp_path)["process"]
    lab.output(lab.node, "ip", "link", "add", "cni0", "type", "bridge")
    lab.output(lab.node, "ip", "address", "add", "10.99.0.1/24", "dev", "cni0")
    with pytest.raises(CNIError, match=r'"cni0" already has an IP address different from 10.77.1.1/24'):
        lab.run(lab.node, cni.add, network(tmp_path), runtime(lab))
    assert state(lab, tmp_path)["addresses"] == []
    lab.run(lab.node, cni.delete, network(tmp_path), runtime(lab))
    lab.run(lab.node, cni.add, network(tmp_path, forceAddress=True), runtime(lab))
    assert "10.77.1.1/24" in lab.output(lab.node, "ip", "-br", "address", "show", "dev", "cni0")


@pytest.mark.parametrize(
    ("bridge", "message"),
    [
        ({"vlan": 5000}, "invalid VLAN ID 5000"),
        ({"promiscMode": True}, "cannot set hairpin mode and promiscuous mode at the same time"),
        ({"mtu": "big"}, 'mtu: must be a number, not "big"'),
        ({"macspoofchk": True}, "macspoofchk is not supported"),
        ({"ipMasqBackend": "ebtables"}, "ipMasqBackend: ebtables is not supported"),
        ({"bridge": "lo"}, '"lo" already exists but is not a bridge'),
        ({"ipam": {"type": "nope"}}, 'failed to find plugin "nope" in path'),
        ({"runtimeConfig": {"mac": "zz"}}, "address zz: invalid MAC address"),
    ],
)
def test_what_a_bridge_refuses(lab: Lab, tmp_path: Path, bridge: dict[str, Any], message: str) -> None:
    with pytest.raises(CNIError) as refusal:
        lab.run(lab.node, runtimes(tmp_path)["process"].add, network(tmp_path, **bridge), runtime(lab))
    assert message in str(refusal.value)


@pytest.mark.parametrize("who", WHO)
def test_a_default_gateway_and_a_hardware_address_that_was_asked_for(lab: Lab, tmp_path: Path, who: str) -> None:
    if who == "debian" and not os.path.exists(f"{DEBIAN}/bridge"):
        pytest.skip("Debian's plugins are not installed")
    pods = network(tmp_path, isDefaultGateway=True, args={"cni": {"mac": "02:11:22:33:44:55"}})
    bare = json.loads(pods.raw)
    del bare["plugins"][0]["ipam"]["routes"]
    result = lab.run(lab.node, runtimes(tmp_path)[who].add, config.from_bytes(json.dumps(bare).encode()), runtime(lab))
    assert result["interfaces"][2]["mac"] == "02:11:22:33:44:55"
    assert result["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.77.1.1"}, {"dst": "::/0", "gw": "fd00:77::1"}]


@pytest.mark.parametrize("who", WHO)
def test_a_pod_in_a_vlan(lab: Lab, tmp_path: Path, who: str) -> None:
    if who == "debian" and not os.path.exists(f"{DEBIAN}/bridge"):
        pytest.skip("Debian's plugins are not installed")
    try:
        lab.run(lab.node, lambda: Netlink().add_bridge("probe", vlan_filtering=True))
    except OSError:
        pytest.skip("no VLANs on bridges in this kernel")
    cni, pods = runtimes(tmp_path)[who], network(tmp_path, vlan=7)
    result = lab.run(lab.node, cni.add, pods, runtime(lab))
    assert result["interfaces"][3]["name"] == "cni0.7"
    ports = json.loads(lab.output(lab.node, "bridge", "-j", "vlan"))
    assert [port["vlans"][-1] for port in ports if port["ifname"].startswith("veth")] == [
        {"vlan": 7, "flags": ["PVID", "Egress Untagged"]}
    ] * 2
    assert "10.77.1.1/24" in lab.output(lab.node, "ip", "-br", "address", "show", "dev", "cni0.7")
    lab.run(lab.node, cni.delete, pods, runtime(lab))


def test_a_bridge_without_addresses_is_layer_2_alone(lab: Lab, tmp_path: Path) -> None:
    cni, pods = runtimes(tmp_path)["process"], network(tmp_path, ipam={}, isGateway=False)
    result = lab.run(lab.node, cni.add, network(tmp_path, plugins=[pods.plugins[0].raw]), runtime(lab))
    assert "ips" not in result
    assert "UP" in lab.output(lab.pods[0], "ip", "-br", "link", "show", "dev", "eth0")


@pytest.mark.parametrize("who", WHO)
def test_loopback_is_brought_up_whatever_the_interface_is_called(lab: Lab, tmp_path: Path, who: str) -> None:
    if who == "debian" and not os.path.exists(f"{DEBIAN}/loopback"):
        pytest.skip("Debian's plugins are not installed")
    cni, lo = runtimes(tmp_path)[who], network(tmp_path, plugins=[{"type": "loopback"}])
    result = lab.run(lab.node, cni.add, lo, runtime(lab))
    assert result == {
        "interfaces": [{"name": "lo", "mac": "00:00:00:00:00:00", "sandbox": lab.pods[0]}],
        "ips": [{"interface": 0, "address": "127.0.0.1/8"}, {"interface": 0, "address": "::1/128"}],
        "dns": {},
    }
    lab.run(lab.node, cni.check, lo, runtime(lab))
    lab.output(lab.pods[0], "ip", "link", "set", "lo", "down")
    with pytest.raises(CNIError, match="loopback interface is down"):
        lab.run(lab.node, cni.check, lo, runtime(lab))
    lab.run(lab.node, cni.delete, lo, runtime(lab))


@pytest.mark.skipif(not os.path.exists(f"{DEBIAN}/tuning"), reason="Debian's plugins are not installed")
def test_plugins_that_we_do_not_have_go_on_from_what_ours_did(lab: Lab, tmp_path: Path) -> None:
    cni = CNI([DEBIAN], tmp_path / "cache")
    first = network(tmp_path).plugins[0].raw
    tuning = {"type": "tuning", "sysctl": {"net.ipv4.conf.eth0.log_martians": "1"}, "mtu": 1300}
    firewall = {"type": "firewall", "backend": "iptables"}
    chained = network(tmp_path, plugins=[first, tuning, {"type": "noop"}, firewall])
    result = lab.run(lab.node, cni.add, chained, runtime(lab))
    assert [ip["address"] for ip in result["ips"]] == ["10.77.1.2/24", "fd00:77::2/64"]
    assert "mtu 1300" in lab.output(lab.pods[0], "ip", "link", "show", "dev", "eth0")
    assert lab.output(lab.pods[0], "cat", "/proc/sys/net/ipv4/conf/eth0/log_martians") == "1\n"
    assert "10.77.1.2/32" in lab.output(lab.node, "iptables-save", "-t", "filter")
    lab.run(lab.node, cni.check, chained, runtime(lab))
    lab.run(lab.node, cni.delete, chained, runtime(lab))
    assert "10.77.1.2/32" not in lab.output(lab.node, "iptables-save", "-t", "filter")
    assert state(lab, tmp_path)["addresses"] == []


@pytest.mark.skipif(not os.path.exists(f"{DEBIAN}/bridge"), reason="Debian's plugins are not installed")
@pytest.mark.parametrize("theirs", [["bridge"], ["host-local"], ["portmap"], ["bridge", "portmap"]])
def test_a_folder_may_have_some_of_ours_and_some_of_debians(lab: Lab, tmp_path: Path, theirs: list[str]) -> None:
    mixed = install(tmp_path / "mixed")[0].parent
    for name in theirs:
        (mixed / name).unlink()
        (mixed / name).symlink_to(f"{DEBIAN}/{name}")
    cni, pods = CNI([str(mixed)], tmp_path / "cache", in_process=()), network(tmp_path, ipMasq=True)
    before = state(lab, tmp_path)
    result = lab.run(lab.node, cni.add, pods, runtime(lab))
    assert [ip["address"] for ip in result["ips"]] == ["10.77.1.2/24", "fd00:77::2/64"]
    assert cni.validate(pods) == {"portMappings"}
    lab.run(lab.node, cni.delete, pods, runtime(lab))
    assert state(lab, tmp_path) == before | {"links": sorted([*before["links"], "cni0"])}


def test_pods_added_at_the_same_time_all_work(lab: Lab, tmp_path: Path) -> None:
    """Threads of one runtime make a new bridge, its gateway's address and common chains at once."""
    cni, raw = runtimes(tmp_path)["process"], json.loads(network(tmp_path, ipMasq=True).raw)
    del raw["plugins"][0]["ipam"]["routes"]  # all are links of one namespace, which has one default route
    pods = config.from_bytes(json.dumps(raw).encode())
    problems: list[BaseException] = []

    def add(number: int) -> None:
        ports = [{"hostPort": 8000 + number, "containerPort": 80, "protocol": "tcp"}]
        one = RuntimeConf(f"container{number}", lab.pods[0], f"eth{number}", (), {"portMappings": ports})
        try:
            lab.run(lab.node, cni.add, pods, one)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    rules = lab.output(lab.node, "iptables-save", "-t", "nat").splitlines()
    assert len([line for line in rules if line.startswith("-A PREROUTING")]) == 1


def test_the_sockets_of_this_process_stay_where_they_are(lab: Lab) -> None:
    with Netlink() as netlink:
        before = {link.name for link in netlink.links()}
        assert lab.run(lab.pods[0], lambda: [link.name for link in Netlink().links()]) == ["lo"]
        assert {link.name for link in netlink.links()} == before
