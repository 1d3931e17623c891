"""`pyb cni`: a namespace is connected by hand, with a configuration in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cni.conftest import Lab

from pybernetes.cni import tool
from pybernetes.cni.command import install, main


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    ipam = {"type": "host-local", "dataDir": str(tmp_path / "ipam"), "ranges": [[{"subnet": "10.77.1.0/24"}]]}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    plugins = [{"type": "bridge", "isGateway": True, "ipam": ipam}, portmap]
    (tmp_path / "net.d").mkdir()
    document = {"cniVersion": "1.1.0", "name": "pods", "plugins": plugins}
    (tmp_path / "net.d/10-pods.conflist").write_text(json.dumps(document))
    return {
        "NETCONFPATH": str(tmp_path / "net.d"),
        "CNI_PATH": str(install(tmp_path / "bin")[0].parent),
        "CNI_CACHE_DIR": str(tmp_path / "cache"),
        "CNI_ARGS": "IgnoreUnknown=1;A=b",
        "CAP_ARGS": json.dumps({"portMappings": [{"hostPort": 80, "containerPort": 80, "protocol": "tcp"}]}),
    }


@pytest.mark.parametrize("flags", [[], ["--files"]])
def test_a_namespace_is_connected_checked_and_let_go(
    lab: Lab, environ: dict[str, str], flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> int:
        code: int = lab.run(lab.node, tool.main, [*words, *flags], environ)
        return code

    assert run("status", "pods") == 0
    assert run("add", "pods", lab.pods[0]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["cniVersion"] == "1.1.0"
    assert printed["ips"] == [{"interface": 2, "address": "10.77.1.2/24", "gateway": "10.77.1.1"}]
    assert "10.77.1.2:80" in lab.output(lab.node, "iptables-save", "-t", "nat")
    assert run("check", "pods", lab.pods[0]) == 0
    lab.output(lab.pods[0], "ip", "link", "delete", "eth0")
    assert run("check", "pods", lab.pods[0]) == 1
    assert capsys.readouterr().err == "pyb cni: Interface name eth0 not found\n"
    assert run("del", "pods", lab.pods[0]) == 0
    assert run("del", "pods", lab.pods[0]) == 0
    assert "10.77.1.2:80" not in lab.output(lab.node, "iptables-save", "-t", "nat")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("NETCONFPATH", "/does/not/exist", "no net configurations found in /does/not/exist"),
        ("CNI_ARGS", "a", 'invalid CNI_ARGS pair "a"'),
        ("CAP_ARGS", "[]", "CAP_ARGS: must be an object"),
        ("CAP_ARGS", "{", "CAP_ARGS: "),
        ("CNI_IFNAME", "a/b", "interface name contains / or : or whitespace characters"),
    ],
)
def test_what_is_wrong_is_said(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str], variable: str, value: str, message: str
) -> None:
    assert tool.main(["add", "pods", "/run/netns/none"], environ | {variable: value}) == 1
    assert capsys.readouterr().err.startswith(f"pyb cni: {message}")


def test_a_namespace_must_be_named() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["add", "pods"])
    assert ended.value.code == 2
