"""Test clusters: each is a real one, of its own, and gone when the test is over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testing.manifests import config_map, deployment

import tools
from pybernetes.api import errors
from pybernetes.testing.client import NotSo
from pybernetes.testing.cluster import Cluster, ClusterFailed, host
from pybernetes.testing.state import differences, state, summary


def test_a_deployment_gets_pods_that_are_ready(test_cluster: Cluster) -> None:
    client = test_cluster.client
    client.create(deployment("web", 3))
    client.wait_for("deployments", "web", "Available")
    client.wait_for("deploy", "web", lambda each: each["status"].get("readyReplicas") == 3)
    pods = client.list("pods", labels="app=web")
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert len({pod["status"]["podIP"] for pod in pods}) == 3
    assert [event for event in client.events(kind="Deployment", name="web") if event["reason"] == "ScalingReplicaSet"]
    assert "deployments default/web  3/3" in summary(client)
    client.assert_events("pods", pods[0]["metadata"]["name"], "Scheduled", "Started")
    with pytest.raises(NotSo, match=r"no event Killing in its turn within 0\.1 s; there are:\n    Scheduled: "):
        client.assert_events("pods", pods[0]["metadata"]["name"], "Killing", timeout=0.1)


def test_each_cluster_is_of_its_own() -> None:
    with Cluster() as one, Cluster() as two:
        one.client.create(config_map("mine"))
        assert one.server != two.server
        with pytest.raises(errors.NotFound):
            two.client.get("configmaps", "mine")
        made = [each.client.create(config_map("both"))["metadata"]["uid"] for each in (one, two)]
        assert len(set(made)) == 2, "uids of two clusters differ"


def test_a_cluster_that_was_stopped_is_gone() -> None:
    cluster = Cluster().start()
    pid, folder = cluster.running.pid, cluster.kubeconfig.parent
    cluster.stop()
    cluster.stop()
    with pytest.raises(ClusterFailed):
        _ = cluster.running
    assert not folder.exists()
    tools.wait_until(lambda: not Path(f"/proc/{pid}").exists() or None, "its process is gone")


def test_nodes_and_flags_are_options() -> None:
    with Cluster(nodes=3, api_server_flags=["--disable-admission-plugins=ServiceAccount"]) as cluster:
        assert len(cluster.client.list("nodes")) == 3
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
        made = cluster.client.create({**pod, "spec": {"containers": [{"name": "c", "image": "x"}]}})
        assert "serviceAccountName" not in made["spec"]


def test_manifests_are_applied_before_the_test_begins(tmp_path: Path) -> None:
    (tmp_path / "some.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: given}\ndata: {a: b}\n")
    with Cluster(nodes=0, manifests=[str(tmp_path)]) as cluster:
        assert cluster.client.get("cm", "given")["data"] == {"a": "b"}


def test_a_manifest_that_does_not_apply_ends_the_start_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Upper}\n")
    with pytest.raises(ClusterFailed, match=r"manifests: .*Upper.* is invalid: metadata\.name"):
        Cluster(nodes=0, manifests=[str(tmp_path)]).start()
    (tmp_path / "bad.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: no}\n")
    with pytest.raises(ClusterFailed, match=r"metadata\.name: False is no name"):
        Cluster(nodes=0, manifests=[str(tmp_path)]).start()


def test_a_flag_that_the_server_does_not_know_ends_the_start_with_its_message() -> None:
    for option in ("api_server_flags", "controller_manager_flags"):
        with pytest.raises(ClusterFailed, match=f"unrecognized arguments: --no-{option}$") as refused:
            Cluster(nodes=0, **{option: [f"--no-{option}"]}).start()
        assert str(refused.value).startswith("a component refuses its flags\n")
        assert str(refused.value).count("unrecognized arguments") == 1
        assert "usage:" not in str(refused.value)


def test_waiting_in_vain_says_what_was_there(test_cluster: Cluster) -> None:
    test_cluster.client.create(deployment("web", 1))
    with pytest.raises(NotSo, match=r"deployments/web: not Failed within 0\.1 s; its status is"):
        test_cluster.client.wait_for("deployments", "web", "Failed", timeout=0.1)
    with pytest.raises(NotSo, match="it does not exist"):
        test_cluster.client.wait_for("deployments", "nothing", "Available", timeout=0.1)


def test_a_snapshot_brings_everything_back_at_the_same_address(test_cluster: Cluster) -> None:
    client, server = test_cluster.client, test_cluster.server
    client.create(deployment("web", 2))
    client.wait_for("deployments", "web", "Available")
    kinds = ("deployments", "replicasets", "pods", "configmaps")
    before = state(client, kinds)
    snapshot = test_cluster.snapshot()
    for attempt in range(2):
        test_cluster.client.create(config_map(f"later-{attempt}"))
        test_cluster.client.delete("deployments", "web", propagation="Foreground")
        test_cluster.client.wait_for("deployments", "web", "deleted")
        assert '-    "name": "web"' in differences(before, state(test_cluster.client, kinds))
        test_cluster.restore(snapshot)
        assert test_cluster.server == server
        assert differences(before, state(test_cluster.client, kinds)) == ""
    pod = test_cluster.client.list("pods")[0]["metadata"]["name"]
    test_cluster.client.delete("pods", pod)
    test_cluster.client.wait_for("pods", pod, "deleted")
    test_cluster.client.wait_for("deployments", "web", "Available"), "the controllers work on"


def test_a_program_uses_the_cluster_by_its_environment(test_cluster: Cluster) -> None:
    argv = [sys.executable, "-P", "-m", "pybernetes", "kubectl", "get", "nodes", "-o", "name"]
    done = subprocess.run(argv, env=test_cluster.environment(), capture_output=True, text=True, timeout=60)
    assert done.stdout == "node/node-0001\n", done.stderr


def test_clusters_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    program = "from pybernetes.testing.cluster import Cluster, host\n"
    program += "c = Cluster().start()\nprint(c.running.pid, host().folder, flush=True)\ninput()\n"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid, folder = process.stdout.readline().split()
        watched = os.pidfd_open(int(pid))
        process.kill()
    import select

    assert select.select([watched], [], [], 30)[0], "the cluster outlived its test run"
    os.close(watched)
    import shutil

    shutil.rmtree(folder)


def test_the_host_starts_again_when_it_was_killed() -> None:
    with Cluster(nodes=0):
        pass
    process = host()._process
    assert process is not None
    process.kill()
    process.wait()
    host()._templates.clear()
    with Cluster(nodes=0) as cluster:
        assert cluster.client.list("namespaces")
