"""`pyb at` and `pyb diff`: objects as they were, and what has changed since; `pyb why --field`: who has set a field."""

from __future__ import annotations

import itertools
import json
import ssl
import urllib.request
from typing import Any

import pytest

from pybernetes.cluster.commands import at, diff, why
from pybernetes.cluster.errors import ClusterError
from tools import ApiServer

_numbers = itertools.count(1)


class Server:
    """Requests of the administrator in a namespace of the test's own."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._tls = ssl.create_default_context(cafile=str(server.ca_file))
        self.namespace = f"history-{next(_numbers)}"
        self.flags = ["-n", self.namespace, "--kubeconfig", str(server.kubeconfig)]
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def send(self, method: str, path: str, body: Any = None) -> int:
        """The revision after a request."""
        request = urllib.request.Request(self._server.url + path, json.dumps(body).encode(), method=method)
        request.add_header("Authorization", f"Bearer {self._server.token}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, context=self._tls) as response:
            return int(json.load(response)["metadata"].get("resourceVersion") or 0)

    def map(self, method: str, name: str, data: dict[str, str] | None = None) -> int:
        """Write a ConfigMap."""
        folder = f"/api/v1/namespaces/{self.namespace}/configmaps"
        path = folder if method == "POST" else f"{folder}/{name}"
        return self.send(method, path, {"metadata": {"name": name}, "data": data or {}})


@pytest.fixture
def server(cluster: ApiServer) -> Server:
    return Server(cluster)


def test_objects_are_shown_as_they_were(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    first = server.map("POST", "web", {"a": "1"})
    server.map("PUT", "web", {"a": "2"})
    assert at.main([str(first), "get", "cm/web", "-o", "json", *server.flags]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["kind"], shown["data"]) == ("ConfigMap", {"a": "1"})
    assert at.main([str(first), "get", "configmaps", *server.flags]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [["NAME", "DATA"], ["web", "1"]]
    with pytest.raises(ClusterError, match=f'configmaps "other" was not there at revision {first}'):
        at.main([str(first), "get", "cm", "other", "-o", "yaml", *server.flags])


def test_a_difference_names_what_came_went_and_changed(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.map("POST", "goes", {})
    first = server.map("POST", "changes", {"a": "1"})
    server.map("POST", "comes", {})
    server.map("PUT", "changes", {"a": "2"})
    server.map("DELETE", "goes")
    assert diff.main([str(first), "--resource", "cm", *server.flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = f"ConfigMap {server.namespace}/"
    assert [line for line in lines if line[0] in "+-~"] == [f"~ {place}changes", f"+ {place}comes", f"- {place}goes"]
    assert "    -  a: '1'" in lines
    assert "    +  a: '2'" in lines
    with pytest.raises(ClusterError, match="is not before"):
        diff.main([str(first), str(first), "--resource", "cm", *server.flags])


def test_a_field_has_an_owner(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.map("POST", "owned", {"a": "1"})
    assert why.main(["cm/owned", "--field", "data.a", *server.flags]) == 0
    assert f'ConfigMap {server.namespace}/owned: data.a is "1"; set by Python-urllib (Update) at ' in (
        capsys.readouterr().out
    )
    assert why.main(["cm/owned", "--field", "data.b", *server.flags]) == 0
    assert "data.b is null; no manager owns it" in capsys.readouterr().out


def test_any_kind_is_explained(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.map("POST", "plain", {})
    assert why.main(["configmap/plain", "-o", "json", *server.flags]) == 0
    assert json.loads(capsys.readouterr().out)["healthy"] is True
    with pytest.raises(ClusterError, match='configmaps "none" not found'):
        why.main(["cm/none", *server.flags])
    with pytest.raises(ClusterError, match="no resource 'nonsense'"):
        why.main(["nonsense/x", *server.flags])
