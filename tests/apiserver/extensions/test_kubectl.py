"""kubectl knows custom resources by discovery and OpenAPI: get, apply, explain, edit, scale, delete."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from apiserver.client import Client
from apiserver.extensions.defining import Kind, version

import tools

SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A thing that spins.",
    "properties": {
        "spec": {
            "type": "object",
            "description": "What is wanted.",
            "required": ["speed"],
            "properties": {
                "speed": {"type": "integer", "description": "In turns a minute.", "maximum": 100},
                "replicas": {"type": "integer", "default": 1},
                "colors": {"type": "array", "items": {"type": "string"}},
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


class Kubectl:
    def __init__(self, command: list[str], kind: Kind) -> None:
        self._command = command
        self.kind = kind

    def __call__(self, *arguments: str, stdin: Any = None, **env: str) -> subprocess.CompletedProcess[str]:
        text = yaml.safe_dump(stdin) if isinstance(stdin, dict) else stdin
        command = [*self._command, *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, env={**os.environ, **env})


@pytest.fixture
def kubectl(cluster: tools.ApiServer, client: Client, kubectl: str, tmp_path: Path) -> Iterator[Kubectl]:
    columns = [{"name": "Speed", "type": "integer", "jsonPath": ".spec.speed"}]
    kind = Kind(
        client,
        version(SCHEMA, subresources={"status": {}, "scale": SCALE}, additionalPrinterColumns=columns),
        names={"plural": "tops", "kind": "Top", "shortNames": ["tp"], "categories": ["spinning"]},
    ).established()
    yield Kubectl([kubectl, f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={tmp_path}"], kind)
    kind.delete()


def test_apply_get_and_delete(kubectl: Kubectl) -> None:
    top = kubectl.kind.object("a", spec={"speed": 5})
    created = kubectl("apply", "-f", "-", stdin=top)
    assert created.stdout == f"top.{kubectl.kind.group}/a created\n", created.stderr
    top["spec"] = {"speed": 7, "colors": ["red"]}
    assert kubectl("apply", "-f", "-", stdin=top).stdout.endswith("configured\n")
    assert kubectl("apply", "-f", "-", stdin=top).stdout.endswith("unchanged\n")
    shown = kubectl("get", "tp").stdout.splitlines()
    assert shown[0].split() == ["NAME", "SPEED"]
    assert shown[1].split() == ["a", "7"]
    assert f"top.{kubectl.kind.group}/a" in kubectl("get", "spinning", "-o", "name").stdout
    read = yaml.safe_load(kubectl("get", f"tops.v1.{kubectl.kind.group}", "a", "-o", "yaml").stdout)
    assert read["spec"] == {"speed": 7, "colors": ["red"], "replicas": 1}
    assert kubectl("delete", "top", "a").stdout.startswith(f'top.{kubectl.kind.group} "a" deleted')


def test_the_schema_is_enforced_before_and_after_sending(kubectl: Kubectl) -> None:
    wrong = kubectl("apply", "-f", "-", stdin=kubectl.kind.object("a", spec={"speed": 5, "size": 1}))
    assert 'unknown field "' in wrong.stderr, "old ones know the schema, new ones ask the server to be strict"
    wrong = kubectl("apply", "--validate=false", "-f", "-", stdin=kubectl.kind.object("a", spec={"speed": 500}))
    assert "spec.speed: Invalid value: 500: spec.speed in body should be less than or equal to 100" in wrong.stderr


def test_explain(kubectl: Kubectl) -> None:
    shown = kubectl("explain", "tops.spec")
    assert "What is wanted." in shown.stdout, shown.stderr
    assert ["speed", "<integer>", "-required-"] in [line.split() for line in shown.stdout.splitlines()]
    assert "A thing that spins." in kubectl("explain", "tops").stdout


def test_scale_patch_and_edit(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl.kind.post("a", spec={"speed": 5})
    scaled = kubectl("scale", "top/a", "--replicas=4")
    assert scaled.stdout == f"top.{kubectl.kind.group}/a scaled\n", scaled.stderr
    patched = kubectl("patch", "top", "a", "--type=merge", "-p", '{"spec":{"speed":9}}')
    assert patched.stdout.endswith("patched\n"), patched.stderr
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/speed: 9/speed: 10/" "$1"\n')
    editor.chmod(0o755)
    edited = kubectl("edit", "top", "a", KUBE_EDITOR=str(editor))
    assert edited.stdout.endswith("edited\n"), edited.stderr
    assert kubectl.kind.get("a").json["spec"] == {"speed": 10, "replicas": 4}


def test_server_side_apply(kubectl: Kubectl) -> None:
    top = kubectl.kind.object("a", spec={"speed": 5})
    assert kubectl("apply", "--server-side", "-f", "-", stdin=top).stdout.endswith("serverside-applied\n")
    [entry] = kubectl.kind.get("a").json["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl", "Apply")


def test_waiting_for_a_definition(kubectl: Kubectl) -> None:
    waited = kubectl("wait", "--for=condition=Established", f"crd/{kubectl.kind.name}", "--timeout=60s")
    assert waited.stdout.endswith("condition met\n"), waited.stderr
    assert kubectl("get", "crd", kubectl.kind.name).returncode == 0
    assert "tops" in kubectl("api-resources", f"--api-group={kubectl.kind.group}").stdout
