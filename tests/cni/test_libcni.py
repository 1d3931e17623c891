"""The runtime's side, with plugins that are small scripts: their arguments, their order, and their errors."""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cni import cache, config
from pybernetes.cni.errors import PLUGIN_NOT_AVAILABLE, TRY_AGAIN_LATER, CNIError
from pybernetes.cni.invoke import Arguments, Plugins
from pybernetes.cni.libcni import CNI, RuntimeConf

# Writes down its environment and configuration, then prints what the configuration tells it to.
PLUGIN = f"""#!{sys.executable} -IS
import json, os, sys
config = json.load(sys.stdin)
told = {{key: value for key, value in os.environ.items() if key.startswith("CNI_")}}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "calls"), "a") as file:
    print(json.dumps([os.path.basename(__file__), told, config]), file=file)
if told["CNI_COMMAND"] == "VERSION":
    print(json.dumps({{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}}))
    sys.exit(0)
sys.stderr.write(config.get("stderr", ""))
said = config.get("fail", {{}}).get(told["CNI_COMMAND"])
if said is not None:
    print(said if isinstance(said, str) else json.dumps(said), end="")
    sys.exit(1)
if told["CNI_COMMAND"] == "ADD":
    print(json.dumps(config.get("print") or config.get("prevResult") or {{}}))
"""


class Recorded:
    """A folder with recording plugins, and a CNI that uses them."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("first", "second"):
            (self.bin / name).write_text(PLUGIN)
            (self.bin / name).chmod(0o755)
        self.cni = CNI([str(folder / "empty"), str(self.bin)], folder / "cache")

    def calls(self) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
        file = self.bin / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [tuple(json.loads(line)) for line in lines]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def network(*plugins: dict[str, Any], version: str = "1.0.0", **fields: Any) -> config.NetworkConfigList:
    document = {"cniVersion": version, "name": "pods", "plugins": list(plugins), **fields}
    return config.from_bytes(json.dumps(document).encode())


RUNTIME = RuntimeConf(
    "c1", "/ns", "eth0", (("IgnoreUnknown", "1"), ("K8S_POD_NAME", "web")), {"portMappings": [1], "mac": "x"}
)
PRINTED = {"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.2/24"}]}
RESULT = {"ips": [{"address": "10.0.0.2/24"}], "dns": {}}


def test_add_goes_forward_and_delete_back_with_the_result_handed_on(recorded: Recorded) -> None:
    pods = network({"type": "first", "print": PRINTED}, {"type": "second", "capabilities": {"portMappings": True}})
    assert recorded.cni.add(pods, RUNTIME) == RESULT
    (first, told, one), (second, _, two) = recorded.calls()
    assert (first, second) == ("first", "second")
    assert told == {
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": "c1",
        "CNI_NETNS": "/ns",
        "CNI_IFNAME": "eth0",
        "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAME=web",
        "CNI_PATH": f"{recorded.bin.parent}/empty:{recorded.bin}",
    }
    assert (one["name"], one["cniVersion"]) == ("pods", "1.0.0")
    assert "runtimeConfig" not in one
    assert "prevResult" not in one
    assert two["runtimeConfig"] == {"portMappings": [1]}
    assert two["prevResult"] == {**PRINTED, "dns": {}}

    recorded.cni.check(pods, RUNTIME)
    recorded.cni.delete(pods, RUNTIME)
    calls = recorded.calls()
    assert [(name, told["CNI_COMMAND"]) for name, told, _ in calls] == [
        ("first", "CHECK"),
        ("second", "CHECK"),
        ("second", "DEL"),
        ("first", "DEL"),
    ]
    assert all(config["prevResult"] == {**PRINTED, "dns": {}} for _, _, config in calls)
    recorded.cni.delete(pods, RUNTIME)
    assert all("prevResult" not in config for _, _, config in recorded.calls())


def test_a_container_is_detached_with_the_configuration_that_it_was_attached_with(recorded: Recorded) -> None:
    runtime = RuntimeConf("box", "/netns", "eth0")
    assert not recorded.cni.delete_cached(runtime)
    recorded.cni.add(network({"type": "first", "mtu": 1400, "print": PRINTED}), runtime)
    recorded.calls()
    assert recorded.cni.delete_cached(RuntimeConf("box", "/netns"))
    ((plugin, environment, conf),) = recorded.calls()
    assert (plugin, environment["CNI_COMMAND"], conf["mtu"]) == ("first", "DEL", 1400)
    assert not recorded.cni.delete_cached(runtime)


def test_what_was_added_is_kept_in_libcnis_form(recorded: Recorded, tmp_path: Path) -> None:
    pods = network({"type": "first", "print": PRINTED})
    recorded.cni.add(pods, RUNTIME)
    file = tmp_path / "cache/results/pods-c1-eth0"
    entry = json.loads(file.read_text())
    assert base64.b64decode(entry.pop("config")) == pods.raw
    assert entry == {
        "kind": "cniCacheV1",
        "containerId": "c1",
        "ifName": "eth0",
        "networkName": "pods",
        "netns": "/ns",
        "cniArgs": [["IgnoreUnknown", "1"], ["K8S_POD_NAME", "web"]],
        "capabilityArgs": {"portMappings": [1], "mac": "x"},
        "result": {**PRINTED, "dns": {}},
    }
    assert file.stat().st_mode & 0o777 == 0o600
    forgetful = RuntimeConf("c1", "/ns", "eth0")
    assert recorded.cni.remembered(pods, forgetful) == RUNTIME
    recorded.cni.delete(pods, forgetful)
    assert not file.exists()


def test_a_cache_that_cannot_be_read_fails_a_check_but_not_a_delete(recorded: Recorded, tmp_path: Path) -> None:
    pods = network({"type": "first", "print": PRINTED})
    recorded.cni.add(pods, RUNTIME)
    file = tmp_path / "cache/results/pods-c1-eth0"
    for broken in ("{", '{"kind": "other"}', "[]"):
        file.write_text(broken)
        with pytest.raises(CNIError, match='failed to get network "pods" cached result'):
            recorded.cni.check(pods, RUNTIME)
        recorded.cni.delete(pods, RUNTIME)
        assert not file.exists()


def test_what_a_crash_left_half_written_can_be_forgotten(tmp_path: Path) -> None:
    kept = cache.Cache(tmp_path)
    kept.forget_broken()  # there is nothing yet
    kept.put(cache.Attachment("net", "whole", "eth0"))
    (kept.folder / "net-empty-eth0").touch()
    (kept.folder / "net-half-eth0").write_text('{"kind": "cni')
    kept.forget_broken()
    assert [each.name for each in kept.folder.iterdir()] == ["net-whole-eth0"]


def test_what_a_crash_left_whole_but_without_its_name_counts_for_nothing_and_goes_with_its_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    kept = cache.Cache(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            kept.put(cache.Attachment("net", "c1", "eth0", config=b"{}"))
    assert list(kept.folder.iterdir())
    assert kept.attachments() == []
    kept.forget("net", "c1", "eth0")
    assert not list(kept.folder.iterdir())


def test_a_result_that_was_kept_before_there_was_a_kind_is_understood(recorded: Recorded, tmp_path: Path) -> None:
    pods = network({"type": "first"})
    (tmp_path / "cache/results").mkdir(parents=True)
    (tmp_path / "cache/results/pods-c1-eth0").write_text(json.dumps(PRINTED))
    recorded.cni.check(pods, RUNTIME)
    assert recorded.calls()[0][2]["prevResult"]["ips"] == PRINTED["ips"]


def test_before_0_4_there_is_no_check_and_no_previous_result_at_delete(recorded: Recorded) -> None:
    pods = network({"type": "first", "print": {"ip4": {"ip": "10.0.0.2/24"}}}, version="0.2.0")
    assert recorded.cni.add(pods, RUNTIME)["ips"] == PRINTED["ips"]
    with pytest.raises(CNIError, match=r'configuration version "0.2.0" does not support the CHECK command'):
        recorded.cni.check(pods, RUNTIME)
    recorded.calls()
    recorded.cni.delete(pods, RUNTIME)
    assert "prevResult" not in recorded.calls()[0][2]


def test_a_disabled_check_calls_no_plugin(recorded: Recorded) -> None:
    recorded.cni.check(network({"type": "first"}, disableCheck=True), RUNTIME)
    assert recorded.calls() == []


@pytest.mark.parametrize(
    ("plugin", "message", "code"),
    [
        (
            {"type": "first", "fail": {"ADD": {"code": 11, "msg": "later", "details": "full"}}},
            'plugin type="first" failed (add): later; full',
            TRY_AGAIN_LATER,
        ),
        (
            {"type": "first", "name": "x", "fail": {"ADD": ""}},
            'plugin type="first" name="x" failed (add): netplugin failed with no error message: exit status 1',
            0,
        ),
        (
            {"type": "first", "stderr": "oh no", "fail": {"ADD": ""}},
            'plugin type="first" failed (add): netplugin failed: "oh no": exit status 1',
            0,
        ),
        (
            {"type": "first", "fail": {"ADD": "<html>"}},
            'plugin type="first" failed (add): netplugin failed but error parsing its diagnostic message "<html>": ',
            0,
        ),
        (
            {"type": "nope"},
            'plugin type="nope" failed (add): failed to find plugin "nope" in path [',
            PLUGIN_NOT_AVAILABLE,
        ),
        ({"type": "../first"}, 'plugin type="../first" failed (add): invalid plugin name: ../first', 999),
        (
            {"type": "first", "print": {"cniVersion": "9.9.9"}},
            'plugin type="first" failed (add): unsupported CNI result version "9.9.9"',
            1,
        ),
    ],
)
def test_an_error_says_which_plugin_failed_and_why(
    recorded: Recorded, plugin: dict[str, Any], message: str, code: int
) -> None:
    with pytest.raises(CNIError) as refusal:
        recorded.cni.add(network(plugin), RUNTIME)
    assert str(refusal.value).startswith(message)
    assert refusal.value.code == code


def test_a_failed_delete_keeps_what_is_remembered(recorded: Recorded, tmp_path: Path) -> None:
    pods = network({"type": "first", "print": PRINTED, "fail": {"DEL": {"code": 100, "msg": "busy"}}})
    recorded.cni.add(pods, RUNTIME)
    with pytest.raises(CNIError, match=r'plugin type="first" failed \(delete\): busy'):
        recorded.cni.delete(pods, RUNTIME)
    assert (tmp_path / "cache/results/pods-c1-eth0").exists()


@pytest.mark.parametrize(
    ("runtime", "message"),
    [
        (RuntimeConf("", "/ns"), "missing containerID"),
        (RuntimeConf("../c", "/ns"), "invalid characters in containerID; ../c"),
        (RuntimeConf("c\n", "/ns"), "invalid characters in containerID"),
        (RuntimeConf("c", "/ns", ""), "interface name is empty"),
        (RuntimeConf("c", "/ns", "a" * 16), "interface name is too long; interface name should be less than 16"),
        (RuntimeConf("c", "/ns", ".."), "interface name is . or .."),
        (RuntimeConf("c", "/ns", "a b"), "interface name contains / or : or whitespace characters"),
        (RuntimeConf("c", "/ns", "a/b"), "interface name contains / or : or whitespace characters"),
    ],
)
def test_names_that_would_leave_their_place_are_refused(recorded: Recorded, runtime: RuntimeConf, message: str) -> None:
    with pytest.raises(CNIError) as refusal:
        recorded.cni.add(network({"type": "first"}), runtime)
    assert str(refusal.value).startswith(message)
    assert recorded.calls() == []


def test_a_network_is_named_like_a_file(recorded: Recorded) -> None:
    with pytest.raises(CNIError, match="invalid characters found in network name; a/b"):
        recorded.cni.add(network({"type": "first"}, name="a/b"), RUNTIME)


def test_a_plugin_that_is_being_written_is_waited_for(recorded: Recorded) -> None:
    writing = os.open(recorded.bin / "first", os.O_RDWR)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            os.close(writing)

    plugins = Plugins([str(recorded.bin)], sleep=wait)
    arguments = Arguments("ADD", "c1", "/ns", "eth0", path=[str(recorded.bin)])
    assert plugins.call("first", arguments.environ(), {"print": PRINTED}) == PRINTED
    assert waits == [1.0, 1.0]


def test_a_plugin_that_stays_busy_is_an_error(recorded: Recorded) -> None:
    writing = os.open(recorded.bin / "first", os.O_RDWR)
    try:
        with pytest.raises(CNIError, match="text file busy"):
            Plugins([str(recorded.bin)], sleep=lambda _: None).call("first", Arguments("ADD").environ(), {})
    finally:
        os.close(writing)


def test_a_plugin_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "slow").write_text("#!/bin/sh\nexec sleep 30\n")
    (tmp_path / "slow").chmod(0o755)
    with pytest.raises(CNIError, match=r"slow did not end within 0.2 s"):
        Plugins([str(tmp_path)], timeout=0.2).call("slow", Arguments("ADD").environ(), {})


def test_a_plugin_that_is_killed_says_by_what(tmp_path: Path) -> None:
    (tmp_path / "killed").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "killed").chmod(0o755)
    with pytest.raises(CNIError, match="netplugin failed with no error message: signal: killed"):
        Plugins([str(tmp_path)]).call("killed", Arguments("ADD").environ(), {})


def test_validation_asks_for_versions(recorded: Recorded) -> None:
    capable = {"type": "first", "capabilities": {"portMappings": True}}
    assert recorded.cni.validate(network(capable)) == {"portMappings"}
    with pytest.raises(CNIError, match=r'plugin first does not support config version "1.1.0"'):
        recorded.cni.validate(network(capable, version="1.1.0"))
    with pytest.raises(CNIError, match='failed to find plugin "nope"'):
        recorded.cni.validate(network({"type": "nope"}))
    assert recorded.cni.plugins.versions("noop") == ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]


def test_a_plugin_that_knows_no_version_command_is_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "old").write_text('#!/bin/sh\necho \'{"code": 4, "msg": "unknown CNI_COMMAND: VERSION"}\'\nexit 1\n')
    (tmp_path / "old").chmod(0o755)
    assert Plugins([str(tmp_path)]).versions("old") == ["0.1.0"]


def test_gc_deletes_stale_attachments_and_calls_the_plugins(recorded: Recorded) -> None:
    pods = network({"type": "first", "print": PRINTED}, version="1.1.0")
    other = network({"type": "first", "print": PRINTED}, name="other", version="1.1.0")
    for container in ("c1", "c2", "c3"):
        recorded.cni.add(pods, RuntimeConf(container, "/ns"))
    recorded.cni.add(other, RuntimeConf("c4", "/ns"))
    recorded.calls()
    recorded.cni.gc(pods, [("c2", "eth0")])
    calls = recorded.calls()
    told = [(told["CNI_COMMAND"], told["CNI_CONTAINERID"]) for _, told, _ in calls]
    assert told == [("DEL", "c1"), ("DEL", "c3"), ("GC", "")]
    assert calls[-1][2]["cni.dev/valid-attachments"] == [{"containerID": "c2", "ifname": "eth0"}]
    assert {each.container_id for each in recorded.cni.cache.attachments()} == {"c2", "c4"}
    recorded.cni.gc(network({"type": "first"}, disableGC=True), [])
    assert recorded.calls() == []


def test_gc_tries_all_and_tells_all_that_failed(recorded: Recorded) -> None:
    pods = network({"type": "first", "print": PRINTED, "fail": {"DEL": {"code": 100, "msg": "no"}}})
    for container in ("c1", "c2"):
        recorded.cni.add(pods, RuntimeConf(container, "/ns"))
    with pytest.raises(CNIError) as refusal:
        recorded.cni.gc(pods, [])
    for container in ("c1", "c2"):
        assert f"failed to delete stale attachment {container} eth0" in str(refusal.value)


def test_status_is_asked_from_1_1_on(recorded: Recorded) -> None:
    failing = {"type": "first", "fail": {"STATUS": {"code": 50, "msg": "no addresses left"}}}
    recorded.cni.status(network(failing))
    with pytest.raises(CNIError, match="no addresses left") as refusal:
        recorded.cni.status(network(failing, version="1.1.0"))
    assert refusal.value.code == PLUGIN_NOT_AVAILABLE


def test_attachments_of_one_container(tmp_path: Path) -> None:
    kept = cache.Cache(tmp_path)
    assert kept.attachments() == []
    for container, ifname in (("a", "eth0"), ("a", "eth1"), ("b", "eth0"), ("x-a-y", "eth0")):
        kept.put(cache.Attachment("n", container, ifname, config=b"{}"))
    (tmp_path / "results/n-a-junk").write_text("junk")
    assert [(each.container_id, each.ifname) for each in kept.attachments("a")] == [("a", "eth0"), ("a", "eth1")]
    with pytest.raises(CNIError, match=r'cache file path requires network name \(""\)'):
        kept.get("", "a", "eth0")


def test_many_threads_may_add_at_once(recorded: Recorded) -> None:
    pods = network({"type": "noop"})
    cni = CNI([str(recorded.bin)], recorded.bin.parent / "cache2")
    threads = [threading.Thread(target=cni.add, args=(pods, RuntimeConf(f"c{i}", "/ns"))) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cni.cache.attachments()) == 20


def test_a_network_without_a_name_is_ready_and_takes_no_pod(tmp_path: Path) -> None:
    """So a node can be for pods of its own network alone: `98-noop.conf` of three lines."""
    (tmp_path / "98-noop.conf").write_text('{\n  "cniVersion": "1.0.0", "type": "noop"\n}\n')
    nameless, cni = config.first(tmp_path), CNI([], tmp_path / "cache")
    cni.validate(nameless)
    with pytest.raises(CNIError, match="missing network name"):
        cni.add(nameless, RuntimeConf("c", "/ns"))
