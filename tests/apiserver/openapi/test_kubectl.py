"""kubectl 1.20 explains, validates and creates by the documents; it takes version 2 as protobuf."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tools

Run = Callable[..., subprocess.CompletedProcess[str]]

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: openapi}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, ports: [{containerPort: 80}]}]
"""


@pytest.fixture(scope="module")
def run(cluster: tools.ApiServer, kubectl: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    cache = tmp_path_factory.mktemp("cache")
    command = [kubectl, f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={cache}"]

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *arguments], input=stdin, capture_output=True, text=True)

    run("create", "namespace", "openapi")
    return run


def test_explain_shows_a_field_and_what_it_holds(run: Run) -> None:
    shown = run("explain", "pods.spec.containers")
    assert shown.stderr == ""
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["KIND:", "Pod"] in lines
    assert ["RESOURCE:", "containers", "<[]Object>"] in lines
    assert ["name", "<string>", "-required-"] in lines
    assert ["ports", "<[]Object>"] in lines


def test_explain_recursive_shows_everything_below(run: Run) -> None:
    shown = run("explain", "deployments", "--recursive").stdout.split()
    assert {"rollingUpdate", "maxSurge", "topologySpreadConstraints", "observedGeneration"} <= set(shown)


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("hpa.spec.minReplicas", "<integer>"),
        ("networkpolicies.spec.ingress.from.ipBlock", "<Object>"),
        ("crd.spec.versions.schema.openAPIV3Schema.x-kubernetes-list-type", "<string>"),
        ("deployments.spec.strategy.rollingUpdate.maxSurge", "<string>"),
        ("secrets.data", "<map[string]string>"),
        ("events.eventTime", "<string>"),
    ],
)
def test_explain_knows_the_type_of_a_field(run: Run, field: str, kind: str) -> None:
    assert f"{field.rpartition('.')[2]} {kind}" in " ".join(run("explain", field).stdout.split())


def test_explain_refuses_a_field_that_is_not_there(run: Run) -> None:
    assert 'field "containerz" does not exist' in run("explain", "pods.spec.containerz").stderr


@pytest.mark.parametrize("verb", ["apply", "create"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("replicas: 1", "replicaz: 1"), 'unknown field "replicaz" in io.k8s.api.apps.v1.DeploymentSpec'),
        (
            ("replicas: 1", "replicas: many"),
            'invalid type for io.k8s.api.apps.v1.DeploymentSpec.replicas: got "string"',
        ),
        (("name: web, image", "image"), 'missing required field "name" in io.k8s.api.core.v1.Container'),
    ],
)
def test_the_client_refuses_what_the_schema_does_not_know(
    run: Run, verb: str, wrong: tuple[str, str], message: str
) -> None:
    refused = run(verb, "--validate=true", "-f", "-", stdin=DEPLOYMENT.replace(*wrong))
    assert refused.returncode == 1
    assert "error validating data: ValidationError(" in refused.stderr
    assert message in refused.stderr


def test_apply_again_diff_and_dry_run_with_validation_on(run: Run, tmp_path: Path) -> None:
    def ok(*arguments: str, stdin: str) -> Any:
        done = run(*arguments, stdin=stdin)
        assert done.stderr == ""
        return done.stdout

    assert "configured" not in ok("apply", "--validate=true", "-f", "-", stdin=DEPLOYMENT)
    assert "unchanged" in ok("apply", "--validate=true", "-f", "-", stdin=DEPLOYMENT)
    changed = DEPLOYMENT.replace("replicas: 1", "replicas: 2")
    assert "+  replicas: 2" in run("diff", "-f", "-", stdin=changed).stdout
    assert "(server dry run)" in ok("apply", "--dry-run=server", "-f", "-", stdin=changed)
    other = DEPLOYMENT.replace("name: web, namespace", "name: other, namespace")
    assert "(dry run)" in ok("create", "--dry-run=client", "-f", "-", stdin=other)
    assert run("get", "deployment", "other", "-n", "openapi").returncode == 1
