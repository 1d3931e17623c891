"""Declaring things with kubectl 1.20, its validation on: apply, apply again, diff, explain, edit, rehearse."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.kubectl import Kubectl, KubectlFailed

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  revisionHistoryLimit: 3
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: nginx:1
        ports:
        - containerPort: 80
        env:
        - {name: A, value: "1"}
        - {name: B, value: "2"}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {generateName: apply-}\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {%s}\n"


@pytest.fixture
def space(run: Kubectl) -> str:
    """A namespace for one case of a test."""
    return run("create", "-f", "-", "-o", "name", stdin=NAMESPACE).strip().partition("/")[2]


def found(run: Kubectl, space: str, what: str) -> dict[str, Any]:
    """The object as the server has it."""
    return dict(json.loads(run("get", "-n", space, what, "-o", "json")))


# -- client-side apply --------------------------------------------------------------------------------------------


def test_apply_creates_then_leaves_alone_then_changes(run: Kubectl, space: str) -> None:
    apply = ("apply", "-n", space, "-f", "-")
    assert run(*apply, stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    before = found(run, space, "deploy/web")
    assert run(*apply, stdin=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    assert found(run, space, "deploy/web") == before
    assert run(*apply, stdin=DEPLOYMENT.replace("nginx:1", "nginx:2")) == "deployment.apps/web configured\n"
    after = found(run, space, "deploy/web")
    assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1


def test_apply_removes_what_was_applied_before_and_keeps_what_others_added(run: Kubectl, space: str) -> None:
    apply = ("apply", "-n", space, "-f", "-")
    run(*apply, stdin=DEPLOYMENT)
    # Another client adds a variable and a label, and scales.
    run("set", "-n", space, "env", "deploy/web", "C=3")
    run("label", "-n", space, "deploy/web", "team=x")
    run("scale", "-n", space, "deploy/web", "--replicas=5")
    less = DEPLOYMENT.replace('        - {name: A, value: "1"}\n', "").replace("  revisionHistoryLimit: 3\n", "")
    less = less.replace("  replicas: 2\n", "")
    assert run(*apply, stdin=less) == "deployment.apps/web configured\n"
    after = found(run, space, "deploy/web")
    variables = {each["name"]: each["value"] for each in after["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert variables == {"B": "2", "C": "3"}
    assert after["spec"]["revisionHistoryLimit"] == 10  # removed, and defaulted again
    assert after["spec"]["replicas"] == 1
    assert after["metadata"]["labels"] == {"app": "web", "team": "x"}


def test_apply_replaces_a_port_by_its_key(run: Kubectl, space: str) -> None:
    run("apply", "-n", space, "-f", "-", stdin=DEPLOYMENT)
    run("apply", "-n", space, "-f", "-", stdin=DEPLOYMENT.replace("containerPort: 80", "containerPort: 81"))
    container = found(run, space, "deploy/web")["spec"]["template"]["spec"]["containers"][0]
    assert container["ports"] == [{"containerPort": 81, "protocol": "TCP"}]


def test_apply_of_many_kinds_and_prune(run: Kubectl, space: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        DEPLOYMENT + "---\n" + CONFIG.replace("{name: c}", "{name: c, labels: {app: web}}") % "k: v"
    )
    service = {"metadata": {"name": "s", "labels": {"app": "web"}}, "spec": {"ports": [{"port": 80}]}}
    (tmp_path / "b.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Service", **service}))
    created = run("apply", "-n", space, "-f", str(tmp_path / "a.yaml"), "-f", str(tmp_path / "b.json")).splitlines()
    assert created == ["deployment.apps/web created", "configmap/c created", "service/s created"]
    pruned = run(
        *("apply", "-n", space, "-f", str(tmp_path / "b.json"), "--prune", "-l", "app=web"),
        *("--prune-whitelist=core/v1/ConfigMap", "--prune-whitelist=apps/v1/Deployment"),
    ).splitlines()
    assert sorted(pruned) == ["configmap/c pruned", "deployment.apps/web pruned", "service/s unchanged"]


def test_apply_over_something_created_otherwise(run: Kubectl, space: str) -> None:
    run("create", "-n", space, "configmap", "c", "--from-literal=old=1")
    run("apply", "-n", space, "-f", "-", stdin=CONFIG % "new: '2'")
    assert found(run, space, "cm/c")["data"] == {"old": "1", "new": "2"}
    last = json.loads(run("apply", "-n", space, "view-last-applied", "cm/c", "-o", "json"))
    assert last["data"] == {"new": "2"}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            DEPLOYMENT.replace("replicas: 2", "replica: 2"),
            'unknown field "replica" in io.k8s.api.apps.v1.DeploymentSpec',
        ),
        (
            DEPLOYMENT.replace("replicas: 2", "replicas: two"),
            "invalid type for io.k8s.api.apps.v1.DeploymentSpec.replicas",
        ),
        (DEPLOYMENT.replace("        image: nginx:1\n", "        imag: nginx:1\n"), 'unknown field "imag"'),
        (
            CONFIG.replace("{%s}", "[%s]") % "k",
            'invalid type for io.k8s.api.core.v1.ConfigMap.data: got "array", expected "map"',
        ),
    ],
)
def test_validation_finds_mistakes_before_anything_is_sent(run: Kubectl, space: str, wrong: str, told: str) -> None:
    with pytest.raises(KubectlFailed, match="error validating data") as failed:
        run("apply", "-n", space, "-f", "-", stdin=wrong)
    assert told in str(failed.value)
    assert run("get", "-n", space, "deploy,cm", "-o", "name", "-l", "app=web") == ""


def test_the_server_refuses_what_validation_lets_through(run: Kubectl, space: str) -> None:
    broken = DEPLOYMENT.replace("matchLabels: {app: web}", "matchLabels: {app: x}")
    with pytest.raises(KubectlFailed) as failed:
        run("apply", "-n", space, "-f", "-", stdin=broken)
    assert 'The Deployment "web" is invalid: spec.template.metadata.labels: Invalid value: ' in str(failed.value)
    assert "`selector` does not match template `labels`" in str(failed.value)


# -- server-side apply --------------------------------------------------------------------------------------------


def test_server_side_apply_and_its_conflicts(run: Kubectl, space: str) -> None:
    apply = ("apply", "--server-side", "-n", space, "-f", "-")
    assert run(*apply, stdin=DEPLOYMENT) == "deployment.apps/web serverside-applied\n"
    before = found(run, space, "deploy/web")
    assert [(each["manager"], each["operation"]) for each in before["metadata"]["managedFields"]] == [
        ("kubectl", "Apply")
    ]
    assert run(*apply, stdin=DEPLOYMENT) == "deployment.apps/web serverside-applied\n"
    assert found(run, space, "deploy/web")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]

    other = DEPLOYMENT.replace("nginx:1", "nginx:9")
    with pytest.raises(KubectlFailed) as refused:
        run(*apply, "--field-manager=pipeline", stdin=other)
    said = str(refused.value)
    assert 'Apply failed with 1 conflict: conflict with "kubectl"' in said
    assert '.spec.template.spec.containers[name="web"].image' in said
    assert "--force-conflicts" in said
    assert found(run, space, "deploy/web")["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1"

    run(*apply, "--field-manager=pipeline", "--force-conflicts", stdin=other)
    after = found(run, space, "deploy/web")
    assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:9"
    owners = {each["manager"]: json.dumps(each["fieldsV1"]) for each in after["metadata"]["managedFields"]}
    assert "f:image" in owners["pipeline"]
    assert "f:image" not in owners["kubectl"]
    # Both want the rest, so that it stays when one lets go of it.
    with pytest.raises(KubectlFailed, match='conflict with "pipeline"'):
        run(*apply, stdin=DEPLOYMENT)


def test_server_side_apply_removes_what_is_no_longer_said(run: Kubectl, space: str) -> None:
    apply = ("apply", "--server-side", "-n", space, "-f", "-")
    run(*apply, stdin=CONFIG % "k: '1', l: '2'")
    run("patch", "-n", space, "cm/c", "--type=merge", "-p", '{"data":{"m":"3"}}')
    run(*apply, stdin=CONFIG % "k: '1'")
    assert found(run, space, "cm/c")["data"] == {"k": "1", "m": "3"}


def test_server_side_apply_of_every_list_by_its_keys(run: Kubectl, space: str) -> None:
    apply = ("apply", "--server-side", "-n", space, "-f", "-")
    run(*apply, stdin=DEPLOYMENT)
    sidecar = yaml.safe_load(DEPLOYMENT)
    container = {
        "name": "web",
        "env": [{"name": "C", "value": "3"}],
        "ports": [{"containerPort": 443, "protocol": "TCP"}],
    }
    sidecar["spec"] = {"selector": sidecar["spec"]["selector"], "template": {"spec": {"containers": [container]}}}
    run(*apply, "--field-manager=injector", stdin=yaml.safe_dump(sidecar))
    merged = found(run, space, "deploy/web")["spec"]["template"]["spec"]["containers"][0]
    assert [each["name"] for each in merged["env"]] == ["A", "B", "C"]
    assert [each["containerPort"] for each in merged["ports"]] == [80, 443]


# -- looking before leaping ---------------------------------------------------------------------------------------


def _diff(run: Kubectl, space: str, manifest: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [run.binary, "diff", "-n", space, "-f", "-", *flags]
    return subprocess.run(command, input=manifest, capture_output=True, text=True, env=run.environment, timeout=60)


def test_diff_tells_what_apply_would_do(run: Kubectl, space: str) -> None:
    run("apply", "-n", space, "-f", "-", stdin=DEPLOYMENT)
    same = _diff(run, space, DEPLOYMENT)
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    before = found(run, space, "deploy/web")
    changed = _diff(run, space, DEPLOYMENT.replace("nginx:1", "nginx:2").replace("replicas: 2", "replicas: 4"))
    assert changed.returncode == 1
    lines = changed.stdout.splitlines()
    assert "-  replicas: 2" in lines
    assert "+  replicas: 4" in lines
    assert any(line.startswith("-") and line.endswith("image: nginx:1") for line in lines)
    assert any(line.startswith("+") and line.endswith("image: nginx:2") for line in lines)
    assert found(run, space, "deploy/web") == before
    new = _diff(run, space, CONFIG % "k: v")
    assert new.returncode == 1
    assert "+  k: v" in new.stdout
    assert run("get", "-n", space, "cm", "c", "--ignore-not-found") == ""


def test_diff_of_a_server_side_apply(run: Kubectl, space: str) -> None:
    run("apply", "--server-side", "-n", space, "-f", "-", stdin=DEPLOYMENT)
    assert _diff(run, space, DEPLOYMENT, "--server-side").returncode == 0
    changed = _diff(run, space, DEPLOYMENT.replace("nginx:1", "nginx:2"), "--server-side")
    assert changed.returncode == 1
    assert any(line.startswith("+") and line.endswith("image: nginx:2") for line in changed.stdout.splitlines())


@pytest.mark.parametrize("command", [("create",), ("apply",), ("apply", "--server-side")], ids=" ".join)
def test_a_rehearsal_on_the_server_leaves_nothing_behind(run: Kubectl, space: str, command: tuple[str, ...]) -> None:
    out = run(*command, "-n", space, "--dry-run=server", "-o", "json", "-f", "-", stdin=DEPLOYMENT)
    shown = json.loads(out)
    assert shown["spec"]["strategy"]["type"] == "RollingUpdate"  # defaults are the server's
    assert shown["metadata"]["uid"]
    assert "server dry run" in run(*command, "-n", space, "--dry-run=server", "-f", "-", stdin=CONFIG % "k: v")
    assert run("get", "-n", space, "deploy,cm", "-o", "name", "--field-selector=metadata.name!=kube-root-ca.crt") == ""
    broken = DEPLOYMENT.replace("replicas: 2", "replicas: -1")
    with pytest.raises(KubectlFailed, match=r"spec\.replicas: Invalid value: -1"):
        run(*command, "-n", space, "--dry-run=server", "-f", "-", stdin=broken)


def test_explain(run: Kubectl) -> None:
    shown = run("explain", "deployment.spec.template.spec.containers")
    assert "KIND:     Deployment" in shown
    assert "VERSION:  apps/v1" in shown
    assert "RESOURCE: containers <[]Object>" in shown
    assert "imagePullPolicy\t<string>" in shown
    assert "name\t<string> -required-" in shown
    everything = run("explain", "pod", "--recursive")
    assert "fsGroupChangePolicy\t<string>" in everything
    assert "FIELD:    clusterIP <string>" in run("explain", "service.spec.clusterIP")
    with pytest.raises(KubectlFailed, match='field "nope" does not exist'):
        run("explain", "pod.spec.nope")


def test_edit(run: Kubectl, space: str, tmp_path: Path) -> None:
    run("apply", "-n", space, "-f", "-", stdin=DEPLOYMENT)

    def edit(editor: str) -> str:
        command = [run.binary, "edit", "-n", space, "deploy/web"]
        environment = {**run.environment, "KUBE_EDITOR": editor, "TMPDIR": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
        return done.stdout + done.stderr

    assert edit("sed -i s/nginx:1/nginx:7/") == "deployment.apps/web edited\n"
    assert found(run, space, "deploy/web")["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:7"
    assert edit("true") == "Edit cancelled, no changes made.\n"
    script = tmp_path / "script"
    script.write_text("s/replicas: 2/replicas: -3/")
    # What the server refuses comes back to the editor with the reason in it, and is given up if it stays as it is.
    assert 'deployments.apps "web" is invalid' in edit(f"sed -i -f {script}")
    kept = [each.read_text() for each in tmp_path.glob("kubectl-edit-*.yaml")]
    assert any("# * spec.replicas: Invalid value: -3: must be greater than or equal to 0" in each for each in kept)
    assert found(run, space, "deploy/web")["spec"]["replicas"] == 2


def test_replace_and_patch_keep_who_owns_what(run: Kubectl, space: str) -> None:
    run("create", "-n", space, "-f", "-", stdin=CONFIG % "k: '1'")
    run("patch", "-n", space, "cm/c", "--type=merge", "--field-manager=patcher", "-p", '{"data":{"l":"2"}}')
    entries = found(run, space, "cm/c")["metadata"]["managedFields"]
    owned = {each["manager"]: sorted(each["fieldsV1"]["f:data"]) for each in entries}
    assert owned == {"kubectl-create": [".", "f:k"], "patcher": ["f:l"]}
    assert {each["operation"] for each in entries} == {"Update"}
