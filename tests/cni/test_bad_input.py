"""Whatever is in a configuration, a plugin answers with an error of the specification, never with a traceback."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybernetes.cni import config, results, skel
from pybernetes.cni.errors import CNIError
from pybernetes.cni.invoke import Arguments, Plugins
from pybernetes.cni.iptables import Table, plan
from pybernetes.cni.plugins import bridge, host_local, portmap
from pybernetes.net.netlink import wire

GOOD: dict[str, Any] = {
    "cniVersion": "1.1.0",
    "name": "pods",
    "type": "bridge",
    "bridge": "cni0",
    "mtu": 1400,
    "vlan": 1,
    "isGateway": True,
    "dns": {"nameservers": ["10.0.0.1"]},
    "args": {"cni": {"ips": ["10.1.2.5"], "mac": "02:00:00:00:00:01"}},
    "ipam": {
        "type": "host-local",
        "ranges": [
            [{"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.5", "rangeEnd": "10.1.2.9", "gateway": "10.1.2.1"}]
        ],
        "routes": [{"dst": "0.0.0.0/0", "gw": "10.1.2.1"}],
    },
    "markMasqBit": 3,
    "conditionsV4": ["-d", "1.2.3.4"],
    "runtimeConfig": {
        "portMappings": [{"hostPort": 80, "containerPort": 80, "protocol": "tcp", "hostIP": "1.2.3.4"}],
        "ips": ["10.1.2.6"],
        "ipRanges": [[{"subnet": "10.9.0.0/24"}]],
        "mac": "02:00:00:00:00:01",
    },
    "prevResult": {
        "cniVersion": "1.1.0",
        "interfaces": [{"name": "eth0", "sandbox": "/ns", "mac": "02:00:00:00:00:01"}],
        "ips": [{"interface": 0, "address": "10.1.2.3/24", "gateway": "10.1.2.1"}],
        "routes": [{"dst": "0.0.0.0/0", "gw": "10.1.2.1"}],
    },
    "cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}],
}

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 100000),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from(["10.0.0.0/8", "10.0.0.1", "::1", "fd00::/64", "0.4.0", "tcp", {}, [], [[]], [{}], {"a": 1}]),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a document."""
    found = [at] if at else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += places(child, (*at, key))
    return found


PLACES = places(GOOD)


def spoilt(changes: list[tuple[tuple[Any, ...], Any]]) -> dict[str, Any]:
    document = copy.deepcopy(GOOD)
    for place, value in changes:
        target: Any = document
        try:
            for key in place[:-1]:
                target = target[key]
            target[place[-1]] = copy.deepcopy(value)  # a list that is put into itself would be no document
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return document


documents = st.lists(st.tuples(st.sampled_from(PLACES), junk), min_size=1, max_size=3).map(spoilt)


def call(document: dict[str, Any], command: str = "ADD") -> skel.Call:
    environ = Arguments(command, "c1", "/ns", "eth0", path=["/nowhere"]).environ()
    return skel.Call(command, "c1", "/ns", "eth0", "", document, environ, Plugins(["/nowhere"]))


@given(documents)
def test_bridge_and_portmap_understand_or_refuse(document: dict[str, Any]) -> None:
    for read in (bridge.read_config, portmap.read_config):
        try:
            made = read(call(document))
        except CNIError:
            continue
        if isinstance(made, portmap.Config):
            for pod in made.pods.values():
                try:
                    script = plan(Table.parse(""), [*portmap.common_chains(made), portmap.container_chain(made, pod)])
                except CNIError:
                    continue
                assert all(line[0] in "*:-C" for line in script.splitlines())


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(documents, st.sampled_from(["ADD", "DEL", "CHECK", "GC", "STATUS"]))
def test_host_local_understands_or_refuses(tmp_path: Path, document: dict[str, Any], command: str) -> None:
    if isinstance(document.get("ipam"), dict):
        document["ipam"]["dataDir"] = str(tmp_path)
    else:
        document["ipam"] = document.get("ipam")
    environ = Arguments(command, "c1", "/ns", "eth0", path=["/nowhere"]).environ()
    try:
        answer = skel.dispatch(host_local.PLUGIN, environ, document, Plugins(["/nowhere"]))
    except CNIError:
        return
    else:
        assert (answer is not None) == (command == "ADD")


@given(documents)
def test_lists_of_anything_are_read_or_refused(document: dict[str, Any]) -> None:
    for listed in ({"name": "x", "plugins": [document]}, {**document, "plugins": document.get("args")}, document):
        try:
            network = config.from_bytes(json.dumps(listed).encode())
        except CNIError:
            continue
        else:
            assert all(plugin.describe() for plugin in network.plugins)


@given(documents, st.sampled_from(["0.1.0", "0.2.0", "0.4.0", "1.0.0", "1.1.0"]))
def test_results_of_anything_are_read_or_refused(document: dict[str, Any], version: str) -> None:
    try:
        result = results.read(document["prevResult"] if isinstance(document["prevResult"], dict) else {}, version)
        printed = results.written(result, version)
    except CNIError:
        return
    else:
        assert printed["cniVersion"] == version


@given(st.binary(max_size=200))
def test_broken_messages_of_the_kernel_end(data: bytes) -> None:
    assert len(list(wire.messages(data))) <= len(data)
    assert len(list(wire.each_attribute(data))) <= len(data)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"1", b'{"name": "x"', b"null", b'"x"', b"\x00" * 10])
def test_a_document_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(CNIError):
        config.from_bytes(data)
