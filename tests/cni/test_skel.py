"""What all our plugins check before they do anything, as executables and inside a process."""

from __future__ import annotations

import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cni import skel
from pybernetes.cni.command import install, main
from pybernetes.cni.versions import SUPPORTED

ENVIRON = {
    "CNI_COMMAND": "ADD",
    "CNI_CONTAINERID": "c1",
    "CNI_NETNS": "/does/not/exist",
    "CNI_IFNAME": "eth0",
    "CNI_PATH": "/nowhere",
}
CONFIG = {"cniVersion": "1.0.0", "name": "pods", "type": "noop"}


def call(environ: dict[str, str], config: Any, plugin: str = "noop") -> tuple[int, Any]:
    stdin = io.BytesIO(config if isinstance(config, bytes) else json.dumps(config).encode())
    stdout, stderr = io.StringIO(), io.StringIO()
    code = skel.run(plugin, environ, stdin, stdout, stderr, "")
    printed = stdout.getvalue()
    return code, json.loads(printed) if printed else stderr.getvalue()


def without(*names: str) -> dict[str, str]:
    return {key: value for key, value in ENVIRON.items() if key not in names}


@pytest.mark.parametrize(
    ("environ", "config", "code", "message"),
    [
        (without("CNI_PATH", "CNI_IFNAME"), CONFIG, 4, "required env variables [CNI_IFNAME,CNI_PATH] missing"),
        ({**ENVIRON, "CNI_COMMAND": "FLY"}, CONFIG, 4, "unknown CNI_COMMAND: FLY"),
        ({**ENVIRON, "CNI_CONTAINERID": "a b"}, CONFIG, 4, "invalid characters in containerID"),
        ({**ENVIRON, "CNI_IFNAME": "x" * 16}, CONFIG, 4, "interface name is too long"),
        (ENVIRON, b"{", 6, "error unmarshall network config"),
        (ENVIRON, b"[]", 6, "error unmarshall network config: must be an object"),
        (ENVIRON, {"cniVersion": "1.0.0"}, 7, "missing network name"),
        (ENVIRON, {**CONFIG, "name": "a/b"}, 7, "invalid characters found in network name"),
        (ENVIRON, {**CONFIG, "name": 5}, 6, "name: must be a string, not 5"),
        (ENVIRON, {**CONFIG, "cniVersion": "3.0.0"}, 1, "incompatible CNI versions"),
        (ENVIRON, {**CONFIG, "prevResult": []}, 6, "could not parse prevResult: must be an object"),
        (
            {**ENVIRON, "CNI_COMMAND": "CHECK"},
            {**CONFIG, "cniVersion": "0.3.1"},
            1,
            "config version does not allow CHECK",
        ),
        ({**ENVIRON, "CNI_COMMAND": "GC"}, CONFIG, 1, "config version does not allow GC"),
        ({**ENVIRON, "CNI_COMMAND": "STATUS"}, CONFIG, 1, "config version does not allow STATUS"),
        (
            {**ENVIRON, "CNI_NETNS": "/proc/self/ns/net"},
            CONFIG,
            8,
            "plugin's netns and netns from CNI_NETNS should not",
        ),
    ],
)
def test_what_is_refused_before_anything_is_done(environ: dict[str, str], config: Any, code: int, message: str) -> None:
    exit_code, printed = call(environ, config)
    assert exit_code == 1
    assert printed["code"] == code
    assert printed["msg"].startswith(message)


def test_the_plugins_own_namespace_may_be_used_if_it_is_said_twice() -> None:
    environ = {**ENVIRON, "CNI_NETNS": "/proc/self/ns/net", "CNI_NETNS_OVERRIDE": "1"}
    assert call(environ, CONFIG) == (0, {"cniVersion": "1.0.0", "dns": {}})


def test_versions_need_no_configuration() -> None:
    assert call({"CNI_COMMAND": "VERSION"}, b"") == (0, {"cniVersion": "1.1.0", "supportedVersions": list(SUPPORTED)})


def test_without_a_command_it_says_what_it_is() -> None:
    code, said = call({}, b"")
    assert code == 0
    assert said.startswith("CNI noop plugin of Pybernetes\nCNI protocol versions supported: 0.1.0")


def test_noop_hands_on_what_was_done_before_in_every_version() -> None:
    for version in SUPPORTED:
        previous = {"cniVersion": version, "ips": [{"address": "10.0.0.2/24"}], "ip4": {"ip": "10.0.0.2/24"}}
        _, printed = call(ENVIRON, {**CONFIG, "cniVersion": version, "prevResult": previous})
        assert printed["cniVersion"] == version
        assert "10.0.0.2/24" in json.dumps(printed)


def test_installed_plugins_are_executables_that_need_the_standard_library_alone(tmp_path: Path) -> None:
    assert main(["install", str(tmp_path)]) == 0
    assert {file.name for file in tmp_path.iterdir()} == skel.BUILT_IN
    for file in install(tmp_path):
        done = subprocess.run([file], env={"CNI_COMMAND": "VERSION"}, capture_output=True, check=True)
        assert json.loads(done.stdout)["supportedVersions"] == list(SUPPORTED)


def test_a_plugin_may_be_asked_for_by_name() -> None:
    assert main(["nonsense"]) == 2
    assert main(["--help"]) == 0
    assert os.environ.get("CNI_COMMAND") is None
    assert main(["noop"]) == 0
