"""The real kubectl with each kind of credential."""

from __future__ import annotations

import base64
import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from apiserver.authn.conftest import WHO, World

from pybernetes import pki


def kubeconfig(world: World, folder: Path, user: dict[str, Any]) -> Path:
    cluster = {"server": world.server.url, "certificate-authority": str(world.server.ca_file)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(content))
    return file


def run(kubectl: str, file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [kubectl, f"--kubeconfig={file}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def credential(kind: str, world: World, folder: Path) -> tuple[dict[str, Any], str]:
    """The user of a kubeconfig, and whom the server takes them for."""
    if kind == "certificate":
        identity = pki.issue_client(world.client_authority, "jane", ["dev"])
        data = {"certificate": identity.certificate_pem, "key": identity.key_pem}
        return {f"client-{name}-data": base64.b64encode(pem).decode() for name, pem in data.items()}, "jane"
    if kind == "password":
        return {"username": "bob", "password": "secret"}, "bob"
    if kind == "token":
        return {"token": world.admin.token}, "kubernetes-admin"
    if kind == "oidc":
        return {"token": world.issuer.token()}, "oidc:jane"
    if kind == "bootstrap":
        data = {
            "token-id": "kubect",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
        }
        secret = {
            "metadata": {"name": "bootstrap-token-kubect"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": data,
        }
        world.admin.post("/api/v1/namespaces/kube-system/secrets", secret)
        return {"token": "kubect.0123456789abcdef"}, "system:bootstrap:kubect"
    namespace = world.admin.namespace()
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert world.admin.post(accounts, {"metadata": {"name": "robot"}}).status == 201
    token = world.admin.post(f"{accounts}/robot/token", {}).json["status"]["token"]
    user = f"system:serviceaccount:{namespace}:robot"
    if kind == "service account, in a file":
        (folder / "token").write_text(token)
        return {"tokenFile": str(folder / "token")}, user
    if kind == "service account, by a plugin":
        script = folder / "plugin"
        answer = {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "kind": "ExecCredential",
            "status": {"token": token},
        }
        script.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
        script.chmod(stat.S_IRWXU)
        return {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": str(script)}}, user
    return {"token": token}, user


KINDS = ["certificate", "password", "token", "oidc", "bootstrap", "service account", "service account, in a file"]


@pytest.mark.parametrize("kind", [*KINDS, "service account, by a plugin"])
def test_kubectl_is_who_it_says(world: World, kubectl: str, tmp_path: Path, kind: str) -> None:
    user, expected = credential(kind, world, tmp_path)
    file = kubeconfig(world, tmp_path, user)
    (tmp_path / "review.json").write_text('{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}')
    shown = run(kubectl, file, "create", f"--raw={WHO}", f"--filename={tmp_path}/review.json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["status"]["userInfo"]["username"] == expected
    if kind != "token":
        refused = run(kubectl, file, "get", "nodes")
        assert f'User "{expected}" cannot list resource "nodes"' in refused.stderr


def test_kubectl_acts_as_others(world: World, kubectl: str, tmp_path: Path) -> None:
    file = kubeconfig(world, tmp_path, {"token": world.admin.token})
    refused = run(kubectl, file, "get", "nodes", "--as=jane", "--as-group=a", "--as-group=b,c")
    assert 'User "jane" cannot list resource "nodes"' in refused.stderr
    allowed = run(kubectl, file, "get", "nodes", "--as=jane", "--as-group=system:masters")
    assert allowed.returncode == 0, allowed.stderr


def test_kubectl_with_a_bad_token_must_log_in(world: World, kubectl: str, tmp_path: Path) -> None:
    file = kubeconfig(world, tmp_path, {"token": "nonsense"})
    refused = run(kubectl, file, "get", "nodes")
    assert "You must be logged in to the server (Unauthorized)" in refused.stderr
