"""Network configurations: what is read from bytes, files and folders, and what is refused in which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cni import config
from pybernetes.cni.errors import CNIError

BRIDGE = {"type": "bridge", "bridge": "cni0"}


def conflist(**fields: Any) -> bytes:
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [BRIDGE], **fields}).encode()


def test_a_list_keeps_the_order_of_its_plugins_and_knows_their_capabilities() -> None:
    portmap = {"type": "portmap", "capabilities": {"portMappings": True, "bandwidth": False}}
    network = config.from_bytes(conflist(plugins=[BRIDGE, portmap]))
    assert (network.name, network.version) == ("pods", "1.0.0")
    assert [plugin.type for plugin in network.plugins] == ["bridge", "portmap"]
    assert network.capabilities == {"portMappings"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "error parsing configuration list: "),
        (b"[]", "error parsing configuration list: must be an object"),
        (b"{}", "error parsing configuration list: no name"),
        (b'{"name": 1}', "error parsing configuration list: invalid name type"),
        (conflist(plugins=[]), "error parsing configuration list: no plugins in list"),
        (conflist(plugins={}), "error parsing configuration list: invalid 'plugins' type"),
        (conflist(plugins=[{"bridge": "x"}]), "failed to parse plugin config 0: error parsing configuration: missing"),
        (conflist(plugins=[{"type": 1}]), "failed to parse plugin config 0: type: must be a string, not 1"),
        (conflist(plugins=["x"]), "failed to parse plugin config 0: error parsing configuration: must be an object"),
        (conflist(plugins=[{"type": "a", "capabilities": []}]), "failed to parse plugin config 0: capabilities: must"),
        (conflist(cniVersion=1), "error parsing configuration list: invalid cniVersion type"),
        (conflist(cniVersions="1.0.0"), "error parsing configuration list: invalid type for cniVersions"),
        (conflist(cniVersions=["x.y"]), 'invalid version "x.y"'),
        (conflist(disableCheck="maybe"), 'error parsing configuration list: invalid value "maybe" for disableCheck'),
        (conflist(disableGC=1), "error parsing configuration list: invalid value 1 for disableGC"),
        (
            b'{"name": "n", "loadOnlyInlinedPlugins": true}',
            "error parsing configuration list: `loadOnlyInlinedPlugins` is true, and no 'plugins' key",
        ),
    ],
)
def test_a_broken_list_is_refused_with_what_is_wrong(data: bytes, message: str) -> None:
    with pytest.raises(CNIError) as refusal:
        config.from_bytes(data)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({}, "1.0.0"),
        ({"cniVersions": ["0.3.1", "0.4.0"]}, "1.0.0"),
        ({"cniVersions": ["0.3.1", "1.1.0"]}, "1.1.0"),
        ({"cniVersions": ["0.3.1", "9.0.0"], "cniVersion": "0.1.0"}, "0.3.1"),
        ({"cniVersions": ["9.0.0"], "cniVersion": "8.0.0"}, "8.0.0"),
    ],
)
def test_of_several_versions_the_newest_that_is_known_counts(fields: dict[str, Any], version: str) -> None:
    assert config.from_bytes(conflist(**fields)).version == version


def test_switches_may_be_words() -> None:
    network = config.from_bytes(conflist(disableCheck="True", disableGC="false"))
    assert network.disable_check
    assert not network.disable_gc


def test_a_folder_is_read_in_the_order_of_names_and_broken_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "05-broken.conflist").write_bytes(b"{")
    (tmp_path / "10-pods.conflist").write_bytes(conflist())
    (tmp_path / "20-other.conflist").write_bytes(conflist(name="other"))
    (tmp_path / "00-notes.txt").write_text("not for us")
    (tmp_path / "01-folder.conflist").mkdir()
    assert config.first(tmp_path).name == "pods"


def test_a_folder_with_nothing_readable_says_what_was_wrong(tmp_path: Path) -> None:
    with pytest.raises(CNIError, match=r"no network config found in .*: cni plugin not initialized"):
        config.first(tmp_path / "missing")
    (tmp_path / "05-broken.conflist").write_bytes(b"{")
    with pytest.raises(CNIError, match=r"05-broken.conflist: error parsing configuration list"):
        config.first(tmp_path)


def test_a_single_plugin_is_a_list_of_one(tmp_path: Path) -> None:
    (tmp_path / "10-a.conf").write_text(json.dumps({"cniVersion": "0.4.0", "name": "single", **BRIDGE}))
    network = config.load(tmp_path, "single")
    assert (network.version, [plugin.type for plugin in network.plugins]) == ("0.4.0", ["bridge"])
    assert config.from_bytes(network.raw) == network


def test_plugins_may_have_files_of_their_own_beside_the_list(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods/20-b.conf").write_text('{"type": "tuning"}')
    (tmp_path / "pods/10-a.conf").write_text('{"type": "portmap", "capabilities": {"portMappings": true}}')
    file = tmp_path / "10-pods.conflist"
    file.write_bytes(conflist())
    network = config.from_file(file)
    assert [plugin.type for plugin in network.plugins] == ["bridge", "portmap", "tuning"]
    assert network.capabilities == {"portMappings"}
    file.write_bytes(conflist(loadOnlyInlinedPlugins=True))
    assert [plugin.type for plugin in config.from_file(file).plugins] == ["bridge"]


def test_looking_for_a_network_by_name(tmp_path: Path) -> None:
    with pytest.raises(CNIError, match="no net configurations found in "):
        config.load(tmp_path, "pods")
    (tmp_path / "10.conflist").write_bytes(conflist())
    assert config.load(tmp_path, "pods").name == "pods"
    with pytest.raises(CNIError, match='no net configuration with name "nope" in '):
        config.load(tmp_path, "nope")
