"""The fixtures and the marker of the pytest plugin, in runs of pytest of their own."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import tools


def run(folder: Path, source: str, *arguments: str) -> str:
    """The output of pytest for one file of tests, with our plugin and no other."""
    (folder / "test_it.py").write_text(source)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(tools.ROOT / "src")}
    command = [sys.executable, "-m", "pytest", "-p", "pybernetes.testing.plugin", "--rootdir", str(folder), *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=200)
    return done.stdout + done.stderr


def test_pytest_finds_the_plugin_where_the_project_is_installed() -> None:
    found = importlib.metadata.entry_points(group="pytest11", name="pybernetes")
    assert [each.value for each in found] == ["pybernetes.testing.plugin"]


def test_fixtures_work_together(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
import os, subprocess, sys
import pytest

def test_function_scope_one(pyb_cluster, pyb_client):
    pyb_client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}})

def test_function_scope_two(pyb_cluster, pyb_client):
    assert [each["metadata"]["name"] for each in pyb_client.list("configmaps")] == ["kube-root-ca.crt"]

class TestShared:
    pytestmark = pytest.mark.pyb_cluster(scope="module", nodes=2)
    seen = []

    def test_one(self, pyb_cluster, pyb_namespace):
        self.seen.append((pyb_cluster, pyb_namespace))

    def test_two(self, pyb_cluster, pyb_namespace, pyb_client):
        assert self.seen[0][0] is pyb_cluster
        assert self.seen[0][1] != pyb_namespace
        assert pyb_namespace.startswith("test-two-")
        assert len(pyb_client.list("nodes")) == 2
        pyb_client.wait_for("namespaces", self.seen[0][1], "deleted")

def test_environment(pyb_environment, kubeconfig):
    assert os.environ["KUBECONFIG"] == str(kubeconfig) == pyb_environment["KUBECONFIG"]
    done = subprocess.run([sys.executable, "-m", "pybernetes", "kubectl", "get", "ns", "default", "-o", "name"],
                          capture_output=True, text=True)
    assert done.stdout == "namespace/default\\n", done.stderr

def test_official_client(pyb_kubernetes_client):
    from kubernetes.client import CoreV1Api
    assert CoreV1Api(pyb_kubernetes_client).read_namespace("default").metadata.name == "default"

def test_lightkube(pyb_lightkube_client):
    from lightkube.resources.core_v1 import Namespace
    assert pyb_lightkube_client.get(Namespace, "default").metadata.name == "default"

def test_kr8s(pyb_kr8s_api):
    assert [each.name for each in pyb_kr8s_api.get("namespaces", "default")] == ["default"]
""",
        "-q",
    )
    assert "8 passed" in output, output


def test_a_failed_test_shows_the_cluster(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
def test_it(pyb_client):
    pod = {"nodeSelector": {"no": "where"}, "containers": [{"name": "c", "image": "x"}]}
    pyb_client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "homeless"}, "spec": pod})
    pyb_client.wait_for("pods", "homeless", timeout=2)
""",
        "-q",
    )
    assert "1 failed" in output
    assert "NotSo: pods/homeless: not Ready within 2 s; its status is" in output
    assert "pods default/homeless  0/1  Pending" in output
    assert "Warning FailedScheduling Pod/homeless: 0/1 nodes are available" in output
    assert "create pods default/homeless" in output.partition("trace of the cluster")[2]
    assert "log of the cluster" in output


def test_bad_options_fail_the_test_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("kind: [")
    output = run(
        tmp_path,
        """
import pytest

@pytest.mark.pyb_cluster(node=3)
def test_unknown(pyb_cluster): ...

@pytest.mark.pyb_cluster(scope="galaxy")
def test_scope(pyb_cluster): ...

@pytest.mark.pyb_cluster(3)
def test_positional(pyb_cluster): ...

@pytest.mark.pyb_cluster(api_server_flags="--nonsense")
def test_flag(pyb_cluster): ...

@pytest.mark.pyb_cluster(manifests="bad.yaml")
def test_manifest(pyb_cluster): ...
""",
        "-q",
        "--tb=short",
    )
    assert "pyb_cluster: unknown option 'node'; there are" in output
    assert "scope 'galaxy' is none of function, module, session" in output
    assert "options of pyb_cluster have names" in output
    assert "unrecognized arguments: --nonsense" in output
    assert "pyb_cluster: manifests: bad.yaml: " in output
    assert "Traceback" not in output
    assert "During handling" not in output
    assert "5 errors" in output


def test_ini_options_are_for_all_tests(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\npyb_cluster = nodes=2\npyb_cluster_scope = session\n")
    output = run(
        tmp_path,
        """
import pytest
seen = []

@pytest.mark.parametrize("number", range(2))
def test_shared(pyb_cluster, number):
    seen.append(pyb_cluster)
    assert len(pyb_cluster.client.list("nodes")) == 2
    assert len({id(each) for each in seen}) == 1

@pytest.mark.pyb_cluster(nodes=0)
def test_marker_wins(pyb_cluster):
    assert pyb_cluster.client.list("nodes") == []
""",
        "-q",
    )
    assert "3 passed" in output, output


def test_the_plugin_costs_nothing_until_a_cluster_is_needed(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
import sys

def test_nothing():
    assert not [name for name in sys.modules if name.startswith("pybernetes.") and ".testing" not in name]
""",
        "-q",
    )
    assert "1 passed" in output, output
