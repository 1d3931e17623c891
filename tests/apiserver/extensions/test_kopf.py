"""An operator written with kopf works as it does elsewhere: its kind, finalizers, status, timers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from apiserver.client import Client
from apiserver.extensions.defining import Kind, version

import tools
from tools import wait_until

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "required": ["words"], "properties": {"words": {"type": "string"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


@pytest.fixture
def kind(cluster: tools.ApiServer, client: Client, namespace: str, tmp_path: Path) -> Iterator[Kind]:
    kind = Kind(client, version(SCHEMA, subresources={"status": {}}), names={"plural": "greetings", "kind": "Greeting"})
    kind.group = kind.definition["spec"]["group"] = "kopf.example.com"
    kind.name = kind.definition["metadata"]["name"] = "greetings.kopf.example.com"
    kind.established()
    log = tmp_path / "kopf.log"
    command = [sys.executable, "-m", "kopf", "run", "--verbose", f"--namespace={namespace}", "--standalone"]
    program = Path(__file__).with_name("operator_kopf.py")
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    with open(log, "wb") as output:
        operator = subprocess.Popen([*command, str(program)], env=environment, stdout=output, stderr=output)
    kind.log = log  # type: ignore[attr-defined]
    yield kind
    operator.terminate()
    operator.wait(20)
    kind.delete()


def test_an_operator_reconciles_times_and_cleans_up(kind: Kind, namespace: str) -> None:
    log: Path = kind.log  # type: ignore[attr-defined]
    path = kind.path(namespace=namespace)
    made = kind.client.post(path, kind.object("bob", spec={"words": "hello"}))
    assert made.status == 201

    def status(name: str) -> object:
        return kind.client.get(f"{path}/bob").json.get("status", {}).get(name)

    wait_until(lambda: status("phase") == "Greeted", f"the operator saw it ({log})", 20)
    assert status("created") == {"said": "hello, bob"}
    found = kind.client.get(f"{path}/bob").json
    assert found["metadata"]["finalizers"] == ["kopf.example.com/finalizer"]
    wait_until(lambda: int(str(status("ticks") or 0)) >= 2, "the timer ticks", 20)
    kind.client.patch(f"{path}/bob", {"spec": {"words": "hi"}})
    wait_until(lambda: status("changed") == "hello -> hi", "the change was handled", 20)
    assert kind.client.delete(f"{path}/bob").status == 200
    wait_until(lambda: kind.client.get(f"{path}/bob").status == 404, "the finalizer was removed", 20)
    assert "farewell to bob" in log.read_text()
