"""What is waited for may vanish with its kind, and a manifest may be on a server that does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybernetes.kubectl import main as kubectl
from pybernetes.kubectl.deleting import wait_gone
from pybernetes.kubectl.errors import StatusError
from pybernetes.kubectl.mapper import Mapping


def test_an_object_whose_kind_is_gone_is_gone() -> None:
    class Client:
        def get(self, path: str, parameters: object) -> None:
            raise StatusError({"reason": "NotFound", "message": "the server could not find the requested resource"})

    class Everything:
        client = Client()
        mapping = Mapping("example.com", "v1", {"name": "widgets", "kind": "Widget", "namespaced": True})
        namespace, name = "ns", "widget"

    assert wait_gone(Everything(), Everything(), 1)  # type: ignore[arg-type]


def test_a_manifest_on_a_server_that_refuses_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    monkeypatch.setenv("no_proxy", "*")
    assert kubectl.main(["create", "-f", "http://127.0.0.1:1/x", "--dry-run=client", "--validate=false"]) == 1
    expected = "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"
    assert capsys.readouterr().err == expected
