"""In a cluster that was started by `up` every component has its identity, with upstream's permissions and no more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.test_up_down import Shell

from tools import wait_until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    home = tmp_path_factory.mktemp("home")
    shell = Shell(home)
    shell.up()
    yield shell
    shell("down")


class Kubectl:
    """kubectl as the administrator of the cluster."""

    def __init__(self, path: str, cluster: Shell) -> None:
        self.path = path
        self.kubeconfig = cluster.home / ".pybernetes" / "pybernetes" / "kubeconfig"

    def __call__(self, *words: str) -> str:
        command = [self.path, f"--kubeconfig={self.kubeconfig}", *words]
        return subprocess.run(command, capture_output=True, text=True, env={"HOME": str(self.kubeconfig.parent)}).stdout

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json"))


@pytest.fixture
def run(kubectl: str, cluster: Shell) -> Kubectl:
    return Kubectl(kubectl, cluster)


def test_controllers_work_as_service_accounts_of_their_own(run: Kubectl) -> None:
    run("create", "deployment", "web", "--image=i", "--replicas=2")

    def pods() -> list[Any]:
        return list(run.json("get", "pods", "-l", "app=web")["items"])

    wait_until(lambda: len(pods()) == 2, "the pods are made")
    wanted = {"deployment-controller", "replicaset-controller", "generic-garbage-collector"}

    def accounts() -> set[str]:
        found = run.json("get", "serviceaccounts", "-n", "kube-system")["items"]
        return {each["metadata"]["name"] for each in found}

    wait_until(lambda: wanted <= accounts(), "each has its account")
    run("delete", "deployment", "web", "--wait=false")
    wait_until(lambda: pods() == [], "the pods are gone")


@pytest.mark.parametrize(
    ("user", "verb", "resource", "answer"),
    [
        ("system:kube-controller-manager", "delete", "pods", "no"),
        ("system:kube-controller-manager", "list", "secrets", "yes"),
        ("system:kube-scheduler", "create", "pods --subresource=binding", "yes"),
        ("system:kube-scheduler", "get", "secrets", "no"),
        ("system:serviceaccount:kube-system:replicaset-controller", "create", "pods", "yes"),
        ("system:serviceaccount:kube-system:replicaset-controller", "delete", "deployments.apps", "no"),
        ("system:serviceaccount:default:default", "list", "pods", "no"),
        ("system:node:n1", "list", "secrets", "no"),
        ("system:anonymous", "list", "pods", "no"),
    ],
)
def test_no_component_has_more_permissions_than_upstreams(
    run: Kubectl, user: str, verb: str, resource: str, answer: str
) -> None:
    said = run("auth", "can-i", verb, *resource.split(), f"--as={user}", "--as-group=system:authenticated")
    assert said.split()[0] == answer


def test_components_are_not_masters(cluster: Shell) -> None:
    from pybernetes import pki

    folder: Path = cluster.home / ".pybernetes" / "pybernetes" / "pki"
    for name in ("controller-manager", "scheduler"):
        identity = pki.load((folder / f"{name}.key").read_bytes(), (folder / f"{name}.crt").read_bytes())
        assert pki.organizations(identity) == set()


def test_admin_edit_and_view_are_gathered_from_their_parts(run: Kubectl) -> None:
    def rules(role: str) -> list[Any]:
        return run.json("get", "clusterrole", role)["rules"] or []

    def gathered() -> bool:
        return len(rules("admin")) > len(rules("edit")) > len(rules("view")) > 5

    wait_until(gathered, "the roles have rules")


def test_no_component_was_refused_anything(cluster: Shell, run: Kubectl) -> None:
    logs = cluster.home / ".pybernetes" / "pybernetes" / "logs"
    refused = [
        line
        for name in ("controller-manager.log", "scheduler.log")
        for line in (logs / name).read_text().splitlines()
        if "forbidden" in line.lower()
    ]
    assert refused == []


def test_a_service_proxy_of_the_users_has_a_credential_of_its_own(kubectl: str, cluster: Shell) -> None:
    file = cluster.home / ".pybernetes" / "pybernetes" / "pki" / "kube-proxy.kubeconfig"
    assert [oct(each.stat().st_mode)[-3:] for each in (file, *file.parent.glob("kube-proxy.*"))] == ["600"] * 4

    def proxy(*words: str) -> subprocess.CompletedProcess[str]:
        command = [kubectl, f"--kubeconfig={file}", *words]
        return subprocess.run(command, capture_output=True, text=True, env={"HOME": str(cluster.home)})

    for resource in ("endpointslices.discovery.k8s.io", "services", "nodes"):
        assert proxy("get", resource, "-A").returncode == 0
    refused = proxy("get", "secrets", "-A").stderr
    assert 'User "system:kube-proxy" cannot list resource "secrets"' in refused
