"""The addresses of clusters with nodes, and what is done on the host for them (in namespaces of the test's own)."""

from __future__ import annotations

import ipaddress
import itertools
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pybernetes.cluster.node import prepare
from pybernetes.cluster.node.network import Network, choose, conflict, mac, routes

ROUTES = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
pyb0	0000F40A	00000000	0001	0	0	0	0000FFFF	0	0	0
"""

needs_iptables = pytest.mark.skipif(shutil.which("iptables", path="/usr/sbin") is None, reason="needs iptables")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_routes_are_read_as_the_kernel_writes_them() -> None:
    found = [(link, str(network)) for link, network in routes(ROUTES)]
    assert found == [("eth0", "0.0.0.0/0"), ("eth0", "192.0.2.0/24"), ("pyb0", "10.244.0.0/16")]


def test_networks_do_not_meet_each_other_or_the_services() -> None:
    ranges = [ipaddress.IPv4Network("10.96.0.0/12")]
    for index in range(100):
        network = Network(index)
        ranges += [ipaddress.IPv4Network(network.fabric), ipaddress.IPv4Network(network.pods)]
        assert ipaddress.IPv4Address(network.gateway) in ipaddress.IPv4Network(network.fabric)
        assert ipaddress.IPv4Address(network.address(100)) in ipaddress.IPv4Network(network.fabric)
        assert len(network.port(100)) <= 15
    ranges.sort()
    assert not any(one.overlaps(other) for one, other in itertools.pairwise(ranges))


def test_an_unused_network_is_chosen() -> None:
    routed = routes(ROUTES)
    assert choose(0, [], routed) == Network(0), "its own bridge is no obstacle"
    assert choose(0, [0, 1], routed) == Network(2)
    assert choose(99, [99], routed) == Network(0), "it begins anew at the end"
    elsewhere = [("tun0", ipaddress.IPv4Network("10.244.3.0/24"))]
    assert choose(0, [], elsewhere) == Network(1)
    assert conflict(Network(0), elsewhere) == "tun0"
    assert choose(0, [], [("vpn", ipaddress.IPv4Network("10.0.0.0/8"))]) is None


def test_a_mac_follows_from_the_address() -> None:
    assert mac("10.245.0.2") == "0a:58:0a:f5:00:02"


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ("nameserver 10.0.0.2\nsearch example.org\n", "nameserver 10.0.0.2\nsearch example.org\n"),
        ("nameserver 127.0.0.53\nnameserver 10.0.0.2\n", "nameserver 10.0.0.2\n"),
        ("nameserver 127.0.0.53\noptions edns0\n", "nameserver 9.9.9.9\n"),
        ("nameserver ::1\n", "nameserver 9.9.9.9\n"),
    ],
)
def test_a_node_does_not_ask_nameservers_of_the_hosts_loopback(tmp_path: Path, content: str, want: str) -> None:
    (tmp_path / "etc").write_text(content)
    (tmp_path / "resolved").write_text("nameserver 9.9.9.9\n")
    assert prepare.resolver((str(tmp_path / "etc"), str(tmp_path / "resolved"))) == want
    assert "nameserver" in prepare.resolver((str(tmp_path / "absent"),))


def in_namespaces(code: str, folder: Path) -> dict[str, object]:
    """Runs code in network and mount namespaces of its own, with a state file in the folder; it prints JSON."""
    start = "from pathlib import Path\nfrom pybernetes.cluster.node import host\n"
    start += f"host.STATE = Path({str(folder)!r}, 'state', 'host.json')\n"
    done = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-P", "-c", start + textwrap.dedent(code)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert isinstance(loaded, dict)
    return loaded


@needs_root
def test_the_last_cluster_to_go_leaves_the_host_as_it_was(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    found = in_namespaces(
        f"""
        import json, os
        from pybernetes.cluster.node import fabric
        from pybernetes.cluster.node.netlink import Netlink
        top = {str(tmp_path)!r}
        fabric.sysctl(host.FORWARDING, "0")
        folders = [top + "/there/kubelet", top + "/there", top + "/new/deep"]
        one = host.claim(Path(top, "one"), None, 0, folders)
        fabric.make(one)
        two = host.claim(Path(top, "two"), None, 0, folders)
        fabric.make(two)
        again = host.claim(Path(top, "one"), one.index, 5, folders)
        seen = dict(one=one.index, two=two.index, again=again.index)
        seen["forwarding"] = fabric.read_sysctl(host.FORWARDING)
        seen["made"] = [os.path.isdir(path) for path in folders]
        host.release(Path(top, "one"))
        with Netlink() as links:
            seen["after one"] = [links.index(each.bridge) is not None for each in (one, two)]
        seen["kept"] = [os.path.isdir(path) for path in folders]
        host.release(Path(top, "two"))
        host.release(Path(top, "two"))
        seen["forwarding after"] = fabric.read_sysctl(host.FORWARDING)
        seen["after"] = [os.path.isdir(path) for path in folders]
        seen["state"] = host.STATE.parent.exists()
        with Netlink() as links:
            seen["links"] = [links.index(each.bridge) is not None for each in (one, two)]
        print(json.dumps(seen))
        """,
        tmp_path,
    )
    assert found == {
        "one": 0,
        "two": 1,
        "again": 0,
        "forwarding": "1",
        "made": [True, True, True],
        "after one": [False, True],
        "kept": [True, True, True],
        "forwarding after": "0",
        "after": [False, True, False],
        "state": False,
        "links": [False, False],
    }


FIREWALL = """
        import json, subprocess
        from pybernetes.cluster.node import firewall
        from pybernetes.cluster.node.network import Network
        def run(*words):
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout
        def shown(*chains):
            return {chain: run("iptables", "-S", chain).splitlines() for chain in chains}
"""


@needs_root
@needs_iptables
@pytest.mark.parametrize(("policy", "docker", "where"), [("DROP", False, "FORWARD"), ("DROP", True, "DOCKER-USER")])
def test_a_host_that_drops_what_it_should_forward_lets_the_nodes_pass(
    tmp_path: Path, policy: str, docker: bool, where: str
) -> None:
    found = in_namespaces(
        FIREWALL
        + f"""
        run("iptables", "-P", "FORWARD", {policy!r})
        if {docker}:
            run("iptables", "-N", "DOCKER-USER")
            run("iptables", "-I", "FORWARD", "-j", "DOCKER-USER")
        chains = ["FORWARD", *(["DOCKER-USER"] if {docker} else [])]
        before = shown(*chains)
        for _ in range(2):
            firewall.open_for(Network(4))
        opened = shown(*chains)
        firewall.open_for(Network(5))
        firewall.close_for(Network(4))
        firewall.close_for(Network(5))
        firewall.close_for(Network(5))
        print(json.dumps(dict(before=before, opened=opened, after=shown(*chains))))
        """,
        tmp_path,
    )
    before, opened = found["before"], found["opened"]
    assert isinstance(before, dict)
    assert isinstance(opened, dict)
    assert found["after"] == before
    assert sorted(set(opened[where]) - set(before[where])) == [
        f"-A {where} -i pyb4 -j ACCEPT",
        f"-A {where} -o pyb4 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    ]
    assert len(opened[where]) == len(before[where]) + 2
    for other in set(opened) - {where}:
        assert opened[other] == before[other]


@needs_root
@needs_iptables
def test_a_host_that_forwards_is_left_alone(tmp_path: Path) -> None:
    found = in_namespaces(
        FIREWALL
        + """
        firewall.open_for(Network(4))
        without = run("nft", "list", "ruleset")
        run("iptables", "-A", "FORWARD", "-j", "ACCEPT")
        before = run("nft", "list", "ruleset")
        firewall.open_for(Network(4))
        firewall.close_for(Network(4))
        print(json.dumps(dict(without=without, same=before == run("nft", "list", "ruleset"))))
        """,
        tmp_path,
    )
    assert found == {"without": "", "same": True}


@needs_root
def test_a_folder_that_is_used_by_now_stays(tmp_path: Path) -> None:
    found = in_namespaces(
        f"""
        import json, os
        top = {str(tmp_path)!r}
        host.claim(Path(top, "one"), None, 0, [top + "/used", top + "/empty"])
        Path(top, "used", "file").touch()
        host.release(Path(top, "one"))
        print(json.dumps(dict(used=os.path.exists(top + "/used/file"), empty=os.path.exists(top + "/empty"))))
        """,
        tmp_path,
    )
    assert found == {"used": True, "empty": False}


@needs_root
def test_the_network_of_a_cluster_that_died_is_given_away_and_one_in_use_is_named(tmp_path: Path) -> None:
    found = in_namespaces(
        f"""
        import json, os
        from pybernetes.cluster.errors import ClusterError
        from pybernetes.cluster.node import fabric
        top = {str(tmp_path)!r}
        if os.fork() == 0:
            fabric.make(host.claim(Path(top, "dead"), 3, 3, []))
            os._exit(0)
        os.wait()
        seen = dict(taken=host.claim(Path(top, "new"), None, 3, []).index)
        try:
            host.claim(Path(top, "third"), 3, 3, [])
        except ClusterError as error:
            seen["message"] = str(error)
        print(json.dumps(seen))
        """,
        tmp_path,
    )
    assert found == {
        "taken": 3,
        "message": f"the network of this cluster, 10.130.0.0/16, is used by the one in {tmp_path}/new",
    }


@needs_root
def test_nodes_and_pods_leave_under_the_hosts_address_without_any_program(tmp_path: Path) -> None:
    found = in_namespaces(
        """
        import json, os, subprocess
        from pybernetes.cluster.node import fabric
        from pybernetes.cluster.node.network import Network
        from pybernetes.cluster.node.programs import find
        nft = find("nft")
        os.environ["PATH"] = fabric.firewall.find.__globals__["PATH"] = "/nowhere"
        seen = dict(problem=fabric.open_way_out(Network(4)), again=fabric.open_way_out(Network(4)))
        listed = lambda: subprocess.run([nft, "list", "ruleset"], capture_output=True, text=True).stdout
        seen["rules"] = [line.strip() for line in listed().splitlines()]
        fabric.remove(Network(4))
        fabric.remove(Network(4))
        seen["after"] = listed()
        print(json.dumps(seen))
        """,
        tmp_path,
    )
    assert found["problem"] is None
    assert found["again"] is None
    assert found["after"] == ""
    assert found["rules"] == [
        "table ip pyb4 {",
        "chain postrouting {",
        "type nat hook postrouting priority srcnat; policy accept;",
        "ip saddr 10.245.4.0/24 jump leaving",
        "ip saddr 10.131.0.0/16 jump leaving",
        "}",
        "",
        "chain leaving {",
        "ip daddr 10.245.4.0/24 return",
        "ip daddr 10.131.0.0/16 return",
        'oifname != "pyb4" masquerade',
        "}",
        "}",
    ]
