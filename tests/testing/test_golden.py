"""Snapshots as files: `cluster.save`, the option `snapshot`, `pyb snapshot`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from testing.manifests import config_map, deployment

from pybernetes.cluster import snapshots
from pybernetes.cluster.snapshots import Snapshot, SnapshotError, changes, load, save
from pybernetes.testing.cluster import Cluster, ClusterFailed
from pybernetes.testing.options import OptionError


def entry(uid: str, *owners: str, **more: object) -> dict[str, object]:
    """A stored object."""
    metadata: dict[str, object] = {"uid": uid}
    if owners:
        metadata["ownerReferences"] = [{"uid": each} for each in owners]
    return {"kind": "K", "apiVersion": "v1", "metadata": metadata, **more}


def test_a_cluster_begins_with_a_golden_snapshot(tmp_path: Path) -> None:
    file = tmp_path / "golden.json.gz"
    with Cluster() as cluster:
        cluster.client.create(deployment("web", 2))
        cluster.client.wait_for("deployments", "web", "Available")
        cluster.save(file)
        uid = cluster.client.get("deployments", "web")["metadata"]["uid"]
    with Cluster(snapshot=str(file)) as other:
        found = other.client.get("deployments", "web")
        assert found["metadata"]["uid"] == uid
        assert len(other.client.list("nodes")) == 1
        other.client.wait_for("deployments", "web", lambda each: each["status"].get("readyReplicas") == 2)
        other.client.patch("deployments", "web", {"spec": {"replicas": 3}})
        other.client.wait_for("deployments", "web", lambda each: each["status"].get("readyReplicas") == 3)


def test_pyb_snapshot_brings_a_running_cluster_back(test_cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "saved.json"

    def snapshot(what: str) -> str:
        argv = [*(sys.executable, "-P", "-m", "pybernetes", "snapshot", what, str(file))]
        argv.append(f"--kubeconfig={test_cluster.kubeconfig}")
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    client = test_cluster.client
    client.create(deployment("web", 2))
    client.wait_for("deployments", "web", "Available")
    client.create(config_map("kept", a="b"))
    assert "objects as of revision" in snapshot("save")
    assert file.stat().st_mode & 0o777 == 0o600
    uid = client.get("deployments", "web")["metadata"]["uid"]
    client.delete("deployments", "web", propagation="Foreground")
    client.wait_for("deployments", "web", "deleted")
    client.patch("configmaps", "kept", {"data": {"a": "c"}})
    client.create(config_map("later"))
    assert "the cluster is as of revision" in snapshot("restore")
    assert client.get("deployments", "web")["metadata"]["uid"] == uid
    assert client.get("configmaps", "kept")["data"] == {"a": "b"}
    assert not [each for each in client.list("configmaps") if each["metadata"]["name"] == "later"]
    client.wait_for("deployments", "web", lambda each: each["status"].get("readyReplicas") == 2)
    client.patch("deployments", "web", {"spec": {"replicas": 1}})
    client.wait_for("deployments", "web", lambda each: each["status"].get("replicas") == 1)


def test_owners_come_first_and_deletions_last() -> None:
    wanted = Snapshot(
        {
            "/registry/pods/default/a": entry("pod", "set"),
            "/registry/replicasets/default/z": entry("set", "deployment"),
            "/registry/deployments/default/z": entry("deployment"),
            "/registry/namespaces/default": entry("namespace"),
        }
    )
    (batch,) = changes(Snapshot({"/registry/pods/default/b": entry("b")}), wanted)
    assert [key.split("/")[2] for key in batch.put] == ["namespaces", "deployments", "replicasets", "pods"]
    assert batch.delete == ["/registry/pods/default/b"]
    assert b'{"kind":"K","apiVersion":"v1","metadata":{' in batch.body()


def test_what_is_the_same_is_not_written_and_much_is_written_in_parts() -> None:
    large = {f"/registry/configmaps/default/{number}": entry(str(number), data="x" * 300_000) for number in range(8)}
    assert list(changes(Snapshot(large), Snapshot(large))) == []
    parts = list(changes(Snapshot({}), Snapshot(large)))
    assert [len(each.put) for each in parts] == [3, 3, 2]


def test_another_cluster_keeps_its_nodes_and_its_authority() -> None:
    wanted = Snapshot({snapshots.KUBE_SYSTEM: entry("one"), "/registry/minions/a": entry("a")})
    now = Snapshot({snapshots.KUBE_SYSTEM: entry("two"), "/registry/minions/b": entry("b")})
    (batch,) = changes(now, wanted)
    assert list(batch.put) == [snapshots.KUBE_SYSTEM]
    assert batch.delete == []


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    save(Snapshot({"/registry/pods/default/a": entry("a")}), file)
    assert load(file).entries == {"/registry/pods/default/a": entry("a")}
    lines = file.read_text().splitlines()
    file.write_text(lines[0] + "\n")
    with pytest.raises(SnapshotError, match=r"a\.json: 0 of 1 entries are there"):
        load(file)
    file.write_text(json.dumps({"format": "other"}) + "\n")
    with pytest.raises(SnapshotError, match="not a snapshot in the format pybernetes-snapshot/v1"):
        load(file)
    file.write_bytes(b"\x1f\x8bnot gzip")
    with pytest.raises(SnapshotError, match="not a snapshot"):
        load(file)
    with pytest.raises(OptionError, match="snapshot: there is no file"):
        Cluster(snapshot="/nowhere")
    with pytest.raises(ClusterFailed, match="not a snapshot"):
        Cluster(snapshot=str(file)).start()
