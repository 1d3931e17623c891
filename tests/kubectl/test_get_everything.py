"""`get everything` lists every kind of a namespace, which `get all` does not; commands that write do not know it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tools
from pybernetes.kubectl import main as kubectl


def test_get_everything_shows_kinds_that_get_all_leaves_out(
    cluster: tools.ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kubectl.main(["create", "namespace", "everything"]) == 0
    for words in (["configmap", "a"], ["quota", "b"], ["role", "c", "--verb=get", "--resource=pods"]):
        assert kubectl.main(["create", "-n", "everything", *words]) == 0
    capsys.readouterr()
    assert kubectl.main(["get", "-n", "everything", "everything"]) == 0
    shown = capsys.readouterr().out
    for name in ("configmap/a", "resourcequota/b", "role.rbac.authorization.k8s.io/c"):
        assert f"\n{name} " in shown
    assert "namespace/" not in shown
    assert kubectl.main(["delete", "-n", "everything", "everything", "--all"]) == 1
    assert "the server doesn't have a resource type" in capsys.readouterr().err
