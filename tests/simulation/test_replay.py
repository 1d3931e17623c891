"""`pyb record` and `pyb replay`: the same code decides the same, another one is shown what it would do differently."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import tools
from pybernetes.testing.cluster import Cluster

LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
SPEC = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": SPEC}


def pyb(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*tools.PYTHON, *words], capture_output=True, text=True, timeout=250, **options)


def test_a_recording_is_replayed_by_the_same_and_by_other_controllers(tmp_path: Path) -> None:
    file = str(tmp_path / "scaled.gz")
    with Cluster(nodes=3) as cluster:
        cluster.client.create(WEB)
        cluster.client.wait_for("deployments", "web", "Available")
        scale = ("kubectl", "scale", "deployment/web", "--replicas=5")
        record = ("record", file, "--quiet-for=1s", "--kubeconfig", str(cluster.kubeconfig))
        recorded = pyb(*record, "--", *tools.PYTHON, *scale, env=cluster.environment())
    assert recorded.returncode == 0, recorded.stderr
    assert "deployment.apps/web scaled" in recorded.stdout
    assert "kube-scheduler 3" in recorded.stdout

    same = pyb("replay", file)
    assert same.returncode == 0, same.stdout + same.stderr
    assert "Nothing would be different." in same.stdout
    assert "kube-scheduler 3" in same.stdout.partition("decisions now:")[2]

    without = pyb("replay", file, "--controller-manager-flag=--controllers=*,-replicaset")
    assert without.returncode == 1, without.stderr
    assert without.stdout.count("- pods/default/web-") == 3
    assert "status.replicas: 5 -> 2" in without.stdout


def test_what_cannot_be_replayed_is_said_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("nothing")
    for words, message in (
        ((str(file),), "not a recording"),
        ((str(tmp_path / "none"),), "No such file"),
    ):
        done = pyb("replay", *words)
        assert done.returncode == 1
        assert message in done.stderr
        assert "Traceback" not in done.stderr
