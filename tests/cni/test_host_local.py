"""Addresses of this machine: which are given out, in which order, what is kept on disk, and what is refused."""

from __future__ import annotations

import ipaddress
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.cni.command import install
from pybernetes.cni.errors import CNIError
from pybernetes.cni.invoke import Arguments, Plugins
from pybernetes.cni.plugins.host_local import resolv_conf
from pybernetes.cni.plugins.host_local_ranges import RangeSet

DEBIAN = Path("/usr/lib/cni")
PLUGINS = Plugins([str(DEBIAN)], lambda name: name == "host-local")


def call(
    folder: Path, command: str = "ADD", container: str = "c1", args: str = "", ours: bool = True, **ipam: Any
) -> Any:
    """Calls the plugin with this `ipam`; fields with a leading underscore are of the network."""
    network = {key[1:]: ipam.pop(key) for key in list(ipam) if key.startswith("_")}
    config = {
        "cniVersion": "1.0.0",
        "name": "pods",
        "type": "x",
        "ipam": {"type": "host-local", "dataDir": str(folder), **ipam},
        **network,
    }
    plugins = PLUGINS if ours else Plugins([str(DEBIAN)])
    environ = Arguments(command, container, "/ns", "eth0", path=[str(DEBIAN)]).environ() | {"CNI_ARGS": args}
    return plugins.call("host-local", environ, config)


def given_out(answer: Any) -> list[str]:
    return [ip["address"] for ip in answer["ips"]]


SUBNET = {"ranges": [[{"subnet": "10.1.2.0/29"}]]}


def test_addresses_go_round_and_the_gateway_is_left_out(tmp_path: Path) -> None:
    assert [given_out(call(tmp_path, container=f"c{i}", **SUBNET)) for i in range(3)] == [
        ["10.1.2.2/29"],
        ["10.1.2.3/29"],
        ["10.1.2.4/29"],
    ]
    call(tmp_path, "DEL", "c0", **SUBNET)
    assert given_out(call(tmp_path, container="c3", **SUBNET)) == ["10.1.2.5/29"]
    assert given_out(call(tmp_path, container="c4", **SUBNET)) == ["10.1.2.6/29"]
    assert given_out(call(tmp_path, container="c5", **SUBNET)) == ["10.1.2.2/29"]
    with pytest.raises(CNIError) as refusal:
        call(tmp_path, container="c6", **SUBNET)
    expected = "failed to allocate for range 0: no IP addresses available in range set: 10.1.2.1-10.1.2.6"
    assert str(refusal.value) == expected


def test_files_are_those_of_debians_plugin(tmp_path: Path) -> None:
    call(tmp_path, **SUBNET)
    folder = tmp_path / "pods"
    assert {file.name for file in folder.iterdir()} == {"10.1.2.2", "last_reserved_ip.0", "lock"}
    assert (folder / "10.1.2.2").read_bytes() == b"c1\r\neth0"
    assert (folder / "last_reserved_ip.0").read_text() == "10.1.2.2"
    call(tmp_path, "CHECK", **SUBNET)
    call(tmp_path, "DEL", **SUBNET)
    call(tmp_path, "DEL", **SUBNET)
    assert {file.name for file in folder.iterdir()} == {"last_reserved_ip.0", "lock"}
    with pytest.raises(CNIError, match="host-local: Failed to find address added by container c1"):
        call(tmp_path, "CHECK", **SUBNET)


@pytest.mark.skipif(not (DEBIAN / "host-local").exists(), reason="Debian's plugins are not installed")
def test_ours_and_debians_share_one_folder(tmp_path: Path) -> None:
    dual = {"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00:1::/64"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    for number in range(6):
        container, ours = f"c{number}", number % 2 == 0
        assert call(tmp_path, container=container, ours=ours, **dual) == {
            "cniVersion": "1.0.0",
            "ips": [
                {"address": f"10.1.2.{number + 2}/24", "gateway": "10.1.2.1"},
                {"address": f"fd00:1::{number + 2}/64", "gateway": "fd00:1::1"},
            ],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dns": {},
        }
        call(tmp_path, "CHECK", container, ours=not ours, **dual)
    for number in range(6):
        call(tmp_path, "DEL", f"c{number}", ours=number % 2 == 1, **dual)
    assert not list((tmp_path / "pods").glob("[0-9f]*"))


def test_many_processes_at_once_never_share_an_address(tmp_path: Path) -> None:
    bins = install(tmp_path / "bin")[0].parent
    plugins = [Plugins([str(bins)]), PLUGINS]
    if (DEBIAN / "host-local").exists():
        plugins.append(Plugins([str(DEBIAN)]))
    config = {"cniVersion": "1.0.0", "name": "pods", "ipam": {"type": "host-local", "dataDir": str(tmp_path), **SUBNET}}
    config["ipam"]["ranges"] = [[{"subnet": "10.1.2.0/24"}]]
    found: list[str] = []

    def add(number: int) -> None:
        environ = Arguments("ADD", f"c{number}", "/ns", "eth0", path=["/x"]).environ()
        answer = plugins[number % len(plugins)].call("host-local", environ, config)
        assert answer is not None
        found.extend(given_out(answer))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 24


@pytest.mark.parametrize("step", ["rename", "write"])
def test_a_crash_while_an_address_is_taken_leaks_no_address(tmp_path: Path, step: str) -> None:
    """The processes end themselves where they would write the owner, and where the address would get its name."""
    script = (
        "import io, ipaddress, os, signal, sys\n"
        "from pybernetes.cni.plugins import host_local_store as store\n"
        "def end(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        "class Ending(io.FileIO):\n"
        "    write = end\n"
        "if sys.argv[2] == 'write': store.open = Ending; os.write = end\n"
        "else: os.rename = end\n"
        "address = ipaddress.ip_address('10.1.2.2')\n"
        "with store.Store('pods', sys.argv[1]) as kept: kept.reserve('c', 'eth0', address, 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path), step], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "pods/10.1.2.2").exists()
    assert given_out(call(tmp_path, **SUBNET)) == ["10.1.2.2/29"]
    assert sorted(path.name for path in (tmp_path / "pods").iterdir()) == ["10.1.2.2", "last_reserved_ip.0", "lock"]


def test_a_file_without_an_interface_belongs_to_the_container(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods/10.1.2.5").write_text("c1")
    call(tmp_path, "CHECK", **SUBNET)
    with pytest.raises(CNIError, match=r"10.1.2.5 has been allocated to c1, duplicate allocation is not allowed"):
        call(tmp_path, **SUBNET)
    call(tmp_path, "DEL", **SUBNET)
    assert given_out(call(tmp_path, **SUBNET)) == ["10.1.2.2/29"]


@pytest.mark.parametrize(
    "how",
    [
        {"args": "IP=10.1.2.5"},
        {"args": "IgnoreUnknown=true;K8S_POD_NAME=x;IP=10.1.2.5/29"},
        {"_args": {"cni": {"ips": ["10.1.2.5"]}}},
        {"_runtimeConfig": {"ips": ["10.1.2.5/29"]}},
    ],
)
def test_an_address_may_be_asked_for(tmp_path: Path, how: dict[str, Any]) -> None:
    assert given_out(call(tmp_path, **how, **SUBNET)) == ["10.1.2.5/29"]
    with pytest.raises(
        CNIError, match=r"requested IP address 10.1.2.5 is not available in range set 10.1.2.1-10.1.2.6"
    ):
        call(tmp_path, container="c2", **how, **SUBNET)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"args": "IP=10.1.2.1", **SUBNET},
            "failed to allocate for range 0: requested ip 10.1.2.1 is subnet's gateway",
        ),
        ({"args": "IP=10.9.9.9", **SUBNET}, "failed to allocate all requested IPs: 10.9.9.9"),
        ({"args": "IP=banana", **SUBNET}, "cannot understand ip: banana"),
        ({"args": "K=V", **SUBNET}, 'ARGS: unknown args ["K=V"]'),
        ({"args": "K", **SUBNET}, 'ARGS: invalid pair "K"'),
        ({}, "no IP ranges specified"),
        ({"ranges": [[]]}, "invalid range set 0: empty range set"),
        ({"ranges": [[{}]]}, "invalid range set 0: subnet: invalid CIDR address: "),
        ({"ranges": [[{"subnet": "10.1.2.0"}]]}, "invalid range set 0: subnet: invalid CIDR address: 10.1.2.0"),
        (
            {"ranges": [[{"subnet": "10.1.2.0/31"}]]},
            "invalid range set 0: Network 10.1.2.0/31 too small to allocate from",
        ),
        (
            {"ranges": [[{"subnet": "10.1.2.3/24"}]]},
            "invalid range set 0: Network has host bits set. "
            "For a subnet mask of length 24 the network address is 10.1.2.0",
        ),
        (
            {"ranges": [[{"subnet": "10.1.2.0/24", "rangeStart": "10.1.3.1"}]]},
            "invalid range set 0: RangeStart 10.1.3.1 not in network 10.1.2.0/24",
        ),
        (
            {"ranges": [[{"subnet": "10.1.2.0/24", "rangeEnd": "10.1.3.1"}]]},
            "invalid range set 0: RangeEnd 10.1.3.1 not in network 10.1.2.0/24",
        ),
        (
            {"ranges": [[{"subnet": "10.1.2.0/24"}, {"subnet": "fd00::/64"}]]},
            "invalid range set 0: mixed address families",
        ),
        (
            {"ranges": [[{"subnet": "10.1.2.0/24"}, {"subnet": "10.1.0.0/16"}]]},
            "invalid range set 0: subnets 10.1.2.1-10.1.2.254 and 10.1.0.1-10.1.255.254 overlap",
        ),
        (
            {"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.0.0/16"}]]},
            "range set 0 overlaps with 1",
        ),
        (
            {"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.2.0.0/16"}]], "_cniVersion": "0.2.0"},
            "CNI version 0.2.0 does not support more than 1 address per family",
        ),
        ({"_ipam": 5}, "IPAM config missing 'ipam' key"),
        ({"resolvConf": "/does/not/exist", **SUBNET}, "open /does/not/exist: no such file or directory"),
        ({"routes": [{"dst": "x"}], **SUBNET}, "ipam.routes: invalid CIDR address: x"),
    ],
)
def test_what_is_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CNIError) as refusal:
        call(tmp_path, **fields)
    assert str(refusal.value) == message
    assert not [file for file in tmp_path.rglob("*") if file.name.startswith("10.")]


def test_all_sets_give_an_address_or_none_does(tmp_path: Path) -> None:
    small = {"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.2.0.0/30"}]]}
    call(tmp_path, container="c1", **small)
    with pytest.raises(CNIError, match="failed to allocate for range 1: no IP addresses available"):
        call(tmp_path, container="c2", **small)
    assert not (tmp_path / "pods/10.1.2.3").exists()


def test_old_and_runtime_forms_of_ranges(tmp_path: Path) -> None:
    old = {"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.10", "rangeEnd": "10.1.2.20", "gateway": "10.1.2.254"}
    # containerd writes its part with capitals
    answer = call(tmp_path, **old, _runtimeConfig={"ipRanges": [[{"Subnet": "10.7.0.0/24"}]]})
    assert answer["ips"] == [
        {"address": "10.7.0.2/24", "gateway": "10.7.0.1"},
        {"address": "10.1.2.10/24", "gateway": "10.1.2.254"},
    ]


def test_gc_gives_back_what_is_not_valid(tmp_path: Path) -> None:
    for container in ("c1", "c2", "c3"):
        call(tmp_path, container=container, **SUBNET)
    valid = {"_cniVersion": "1.1.0", "_cni.dev/valid-attachments": [{"containerID": "c2", "ifname": "eth0"}]}
    call(tmp_path, "GC", **valid, **SUBNET)
    assert [file.read_bytes() for file in (tmp_path / "pods").glob("10.*")] == [b"c2\r\neth0"]


def test_resolv_conf_becomes_dns(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text(
        "# hello\nnameserver 1.1.1.1\nnameserver 8.8.8.8 x\n;no\n\ndomain a.b\nsearch c d\nsearch e\noptions x y\n"
    )
    assert resolv_conf(str(file)) == {
        "nameservers": ["1.1.1.1", "8.8.8.8"],
        "domain": "a.b",
        "search": ["c", "d", "e"],
        "options": ["x", "y"],
    }
    assert call(tmp_path, resolvConf=str(file), **SUBNET)["dns"]["domain"] == "a.b"


@given(st.data())
def test_every_address_comes_once_beginning_behind_the_last(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3))
    raw = []
    for index, size in enumerate(sizes):
        start = data.draw(st.integers(1, 4))
        base = f"10.{index}.0"
        raw.append(
            {"subnet": f"{base}.0/24", "rangeStart": f"{base}.{start}", "rangeEnd": f"{base}.{start + size - 1}"}
        )
    ranges = RangeSet.from_json(raw)
    everything = [
        ipaddress.IPv4Address(value)
        for each in ranges.ranges
        for value in range(int(each.start), int(each.end) + 1)
        if ipaddress.IPv4Address(value) != each.gateway
    ]
    last = data.draw(st.sampled_from([None, ipaddress.IPv4Address("192.0.2.1"), *everything]))
    order = [address for address, _ in ranges.after(last)]
    assert sorted(order) == sorted(everything)
    if last in everything:
        assert order == [*everything[everything.index(last) + 1 :], *everything[: everything.index(last) + 1]]


@pytest.mark.skipif(not (DEBIAN / "host-local").exists(), reason="Debian's plugins are not installed")
@pytest.mark.parametrize(
    "ipam",
    [
        {},
        {"ranges": [[]]},
        {"ranges": [[{"subnet": "10.1.2.0/31"}]]},
        {"ranges": [[{"subnet": "10.1.2.3/24"}]]},
        {"ranges": [[{"subnet": "10.1.2.0/24", "rangeStart": "10.1.3.1"}]]},
        {"ranges": [[{"subnet": "10.1.2.0/24"}, {"subnet": "fd00::/64"}]]},
        {"ranges": [[{"subnet": "10.1.2.0/24"}, {"subnet": "10.1.0.0/16"}]]},
        {"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.0.0/16"}]]},
        {"resolvConf": "/does/not/exist", **SUBNET},
        {"ranges": [[{"subnet": "10.1.2.0/30", "rangeStart": "10.1.2.1", "rangeEnd": "10.1.2.1"}]]},
    ],
)
def test_debians_plugin_refuses_in_the_same_words(tmp_path: Path, ipam: dict[str, Any]) -> None:
    said = []
    for ours in (True, False):
        with pytest.raises(CNIError) as refusal:
            call(tmp_path, ours=ours, **ipam)
        said.append(refusal.value.msg)
    assert said[0] == said[1]


def test_the_executable_prints_what_the_function_answers(tmp_path: Path) -> None:
    (executable,) = [file for file in install(tmp_path / "bin") if file.name == "host-local"]
    config = {"cniVersion": "0.2.0", "name": "pods", "ipam": {"type": "host-local", "dataDir": str(tmp_path), **SUBNET}}
    environ = Arguments("ADD", "c1", "/ns", "eth0", path=["/x"]).environ()
    done = subprocess.run([executable], input=json.dumps(config).encode(), env=environ, capture_output=True, check=True)
    assert json.loads(done.stdout) == {
        "cniVersion": "0.2.0",
        "ip4": {"ip": "10.1.2.2/29", "gateway": "10.1.2.1"},
        "dns": {},
    }
