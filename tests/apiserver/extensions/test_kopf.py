"""An operator written with kopf works as it does elsewhere: its kind, finalizers, status, timers, admission."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from apiserver.client import Client
from apiserver.extensions.defining import Kind, version
from apiserver.extensions.webhook import self_signed

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
    (tmp_path / "hook.pem").write_bytes(self_signed())
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    environment["HOOK_CERTIFICATE"] = str(tmp_path / "hook.pem")
    with open(log, "wb") as output:
        operator = subprocess.Popen([*command, str(program)], env=environment, stdout=output, stderr=output)
    kind.log = log  # type: ignore[attr-defined]
    yield kind
    operator.terminate()
    operator.wait(20)
    kind.delete()
    for each in ("mutating", "validating"):
        client.delete(f"/apis/admissionregistration.k8s.io/v1/{each}webhookconfigurations/auto.kopf.example.com")


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


def test_an_operator_has_a_say_in_what_is_stored(kind: Kind, namespace: str) -> None:
    path = kind.path(namespace=namespace)

    def polite() -> bool:
        made = kind.client.post(path + "?dryRun=All", kind.object("probe", spec={"words": "hey"}))
        return bool(made.status == 201 and made.json["spec"]["words"] == "hello")

    wait_until(polite, "the webhooks are called", 20)
    made = kind.client.post(path, kind.object("ann", spec={"words": "hey"}))
    assert (made.status, made.json["spec"]) == (201, {"words": "hello"})
    assert made.warnings == ['299 - "be polite"']
    refused = kind.client.post(path, kind.object("bad", spec={"words": "damn"}))
    assert refused.status == 418
    assert refused.message.endswith("denied the request: no such words")
    assert kind.client.delete(f"{path}/ann").status == 200
    wait_until(lambda: kind.client.get(f"{path}/ann").status == 404, "the finalizer was removed", 20)
