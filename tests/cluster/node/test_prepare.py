"""What a node finds when it starts: its certificates, the configuration of kubelet and containerd, its identity."""

from __future__ import annotations

import datetime
import json
import os
import stat
import tomllib
from pathlib import Path

import pytest

from pybernetes import pki
from pybernetes.cluster import certificates
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import containerd, objects, prepare
from pybernetes.cluster.node.machine import Machine
from pybernetes.cluster.node.network import Network
from pybernetes.cluster.rootless.shared import SharedNetwork

NETWORK = Network(7)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout("test", tmp_path / "data")
    layout.claim()
    layout.prepare()
    certificates.ensure(layout.pki, [])
    return layout


def load(folder: Path, name: str) -> pki.Identity:
    identity = certificates.read(folder, name)
    assert identity is not None
    return identity


def test_a_kubelet_is_its_node_to_the_api_server_and_serves_under_its_name_and_address(layout: Layout) -> None:
    prepare.prepare(layout, NETWORK, 1, 6443)
    folder = layout.node("node-1") / "pki"
    client, serving = load(folder, "client"), load(folder, "serving")
    assert client.certificate.subject.rfc4514_string() == "CN=system:node:node-1,O=system:nodes"
    assert pki.subject_names(serving) == {"node-1", "10.245.7.2"}
    authority = load(layout.pki, "ca")
    assert pki.signed_by(client, authority)
    assert pki.signed_by(serving, authority)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_certificates_stay_until_they_are_due_or_the_address_is_another(layout: Layout) -> None:
    prepare.prepare(layout, NETWORK, 1, 6443)
    assert prepare.ensure_certificates(layout, "node-1", "10.245.7.2") is False
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=340)
    assert prepare.ensure_certificates(layout, "node-1", "10.245.7.2", now=later) is True
    client = load(layout.node("node-1") / "pki", "client").certificate_pem
    assert prepare.ensure_certificates(layout, "node-1", "10.245.7.3") is True
    assert load(layout.node("node-1") / "pki", "client").certificate_pem == client


def test_the_kubelets_configuration_has_all_paths(layout: Layout) -> None:
    machine = prepare.prepare(layout, NETWORK, 2, 16443)
    folder = layout.node("node-2")
    kubelet = machine.programs[1]
    assert kubelet.name == "kubelet"
    assert f"--kubeconfig={folder / 'kubelet.kubeconfig'}" in kubelet.argv
    assert "--hostname-override=node-2" in kubelet.argv
    assert "--node-ip=10.245.7.3" in kubelet.argv
    config = json.loads((folder / "kubelet.json").read_text())
    assert config["containerRuntimeEndpoint"] == "unix:///run/containerd/containerd.sock"
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["podPidsLimit"] == 4096, "one pod does not take all numbers of processes"
    assert Path(config["tlsCertFile"]).exists()
    kubeconfig = json.loads((folder / "kubelet.kubeconfig").read_text())
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://10.245.7.1:16443"
    for name in ("kubelet.json", "kubelet.kubeconfig"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_the_programs_of_a_node_log_as_much_as_the_cluster(layout: Layout) -> None:
    runtime, kubelet = prepare.prepare(layout, NETWORK, 2, 16443, "embedded", verbosity=4).programs[:2]
    assert (runtime.name, runtime.argv[-1]) == ("runtime", "-v=4")
    assert "--v=4" in kubelet.argv


def test_a_node_keeps_its_machine_id_and_is_described_by_one_file(layout: Layout) -> None:
    first = prepare.prepare(layout, NETWORK, 1, 6443)
    identity = (layout.node("node-1") / "machine-id").read_text()
    second = prepare.prepare(layout, NETWORK, 1, 6444)
    assert (layout.node("node-1") / "machine-id").read_text() == identity
    assert Machine.read(str(layout.node("node-1") / "machine.json")) == second
    assert first.cgroup == second.cgroup
    other = Layout("test", layout.data / "elsewhere")
    assert prepare.cgroup(other, "node-1") != first.cgroup, "clusters of the same name in other folders do not meet"


def test_a_description_that_an_older_version_wrote_can_be_read(layout: Layout) -> None:
    machine = prepare.prepare(layout, NETWORK, 1, 6443)
    path = layout.node("node-1") / "machine.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rules": "rules.nft"}))
    assert Machine.read(str(path)) == machine


def test_the_network_process_serves_the_cluster_of_its_node(layout: Layout) -> None:
    machine = prepare.prepare(layout, NETWORK, 2, 16443)
    folder = layout.node("node-2")
    program = machine.programs[2]
    assert program.name == "node-network"
    assert f"--kubeconfig={folder / 'node-network.kubeconfig'}" in program.argv
    kubeconfig = json.loads((folder / "node-network.kubeconfig").read_text())
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://10.245.7.1:16443"
    assert kubeconfig["users"][0]["name"] == "system:kube-proxy"
    config = json.loads((folder / "kube-proxy.json").read_text())
    assert (config["hostnameOverride"], config["clusterCIDR"]) == ("node-2", NETWORK.pods)
    assert "--cluster-dns=10.96.0.10" in program.argv
    assert json.loads((folder / "kubelet.json").read_text())["clusterDNS"] == ["10.96.0.10"]


def test_a_node_without_a_network_of_its_own_has_no_network_process(layout: Layout) -> None:
    machine = prepare.prepare(layout, SharedNetwork(0, "127.0.0.1"), 1, 6443, "embedded", "none")
    assert [each.name for each in machine.programs] == ["runtime", "kubelet"]
    assert "clusterDNS" not in json.loads((layout.node("node-1") / "kubelet.json").read_text())


@pytest.mark.skipif(containerd.missing() is not None, reason="needs containerd")
def test_containerd_has_a_handler_for_each_runtime_of_the_machine(layout: Layout, tmp_path: Path) -> None:
    config = tomllib.loads(containerd.config(tmp_path / "cni.template", [Path("/a"), Path("/b")]))
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["registry"]["config_path"] == "/a:/b"
    assert set(cri["containerd"]["runtimes"]) == set(containerd.runtimes())
    assert cri["containerd"]["default_runtime_name"] in containerd.runtimes()
    classes = {content["metadata"]["name"] for _, content in objects.objects() if content["kind"] == "RuntimeClass"}  # type: ignore[index]
    assert classes == set(containerd.runtimes())


def test_the_pod_network_is_json_once_containerd_has_filled_in_the_ranges() -> None:
    filled = containerd.network_template()
    start, end = filled.index("[{{range"), filled.index("{{end}}]") + len("{{end}}]")
    config = json.loads(filled[:start] + '[[{"subnet": "10.244.0.0/24"}]]' + filled[end:])
    assert [plugin["type"] for plugin in config["plugins"]] == ["bridge", "portmap", "bandwidth"]
    assert config["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.244.0.0/24"}]]


def test_sockets_are_in_no_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 120)
    shared, others, mine = (tmp_path / f"{name}-{os.getuid()}" for name in ("shared", "others", "mine"))
    monkeypatch.setattr(prepare, "_SOCKETS", str(tmp_path / "mine"))
    place = Path(prepare._short_folder(long))
    assert (place.parent, stat.S_IMODE(mine.stat().st_mode)) == (mine, 0o700)
    assert prepare._short_folder(long) == str(place), "it is used again"
    shared.mkdir()
    shared.chmod(0o777)
    others.symlink_to(mine)
    for name in ("shared", "others"):
        monkeypatch.setattr(prepare, "_SOCKETS", str(tmp_path / name))
        with pytest.raises(PermissionError, match="not a private folder"):
            prepare._short_folder(long)
