"""Audit annotations of tokens that should not be in use any more."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.authn.forge import claims_of, token
from apiserver.client import Client

from pybernetes import jws
from tools import api_server

AUDIT = "authentication.k8s.io/"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("tokens")
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    (folder / "policy.json").write_text(json.dumps(policy))
    flags = (f"--audit-policy-file={folder}/policy.json", f"--audit-log-path={folder}/audit.log")
    with api_server(folder, *flags, "--authorization-mode=RBAC") as server:
        client = Client(server)
        assert client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}}).status == 201
        yield client


def annotations(client: Client, bearer: str, agent: str, status: int = 200) -> dict[str, str]:
    """What the log says of a request with a token, beside what was decided about it."""
    assert Client(client.server, bearer).get("/version", User_Agent=agent).status == status
    lines = Path(client.server.folder / "audit.log").read_text().splitlines()
    stage = "ResponseComplete" if status == 200 else "ResponseStarted"
    (event,) = (each for each in map(json.loads, lines) if (each.get("userAgent"), each["stage"]) == (agent, stage))
    said: dict[str, str] = event["annotations"]
    return {name: value for name, value in said.items() if name.startswith(AUDIT)}


def uses(client: Client, name: str) -> float:
    lines = client.get("/metrics").body.decode().splitlines()
    (line,) = (each for each in lines if each.startswith(f"serviceaccount_{name}_total "))
    return float(line.split()[1])


def signed(client: Client, claims: dict[str, Any]) -> str:
    key = jws.load_signing_key((client.server.folder / "pki/sa.key").read_bytes())
    return token(claims, key, "ES256", kid=jws.key_id(key))


def test_a_stale_token_is_reported_each_time(audited: Client) -> None:
    made = audited.post("/api/v1/namespaces/default/serviceaccounts/robot/token", {}).json["status"]["token"]
    assert annotations(audited, made, "fresh") == {}
    claims = claims_of(made)
    claims["kubernetes.io"]["warnafter"] = int(time.time()) + 1000
    assert annotations(audited, signed(audited, claims), "extended") == {}
    claims["kubernetes.io"]["warnafter"] = int(time.time()) - 100
    stale = signed(audited, claims)
    for agent in ("first", "second"):
        told = annotations(audited, stale, agent)[f"{AUDIT}stale-token"]
        subject, _, seconds = told.rpartition(": ")
        assert subject == "subject: system:serviceaccount:default:robot, seconds after warning threshold"
        assert 100 <= int(seconds) < 160
    assert (uses(audited, "valid_tokens"), uses(audited, "stale_tokens")) == (1, 1), "each once while it is remembered"


def test_a_token_in_a_secret_is_reported(audited: Client) -> None:
    uid = audited.get("/api/v1/namespaces/default/serviceaccounts/robot").json["metadata"]["uid"]
    names = {"namespace": "default", "secret.name": "old", "service-account.name": "robot", "service-account.uid": uid}
    claims = {f"kubernetes.io/serviceaccount/{name}": value for name, value in names.items()}
    claims |= {"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:robot"}
    old = signed(audited, claims)
    meta = {"name": "old", "annotations": {"kubernetes.io/service-account.name": "robot"}}
    data = {"token": base64.b64encode(old.encode()).decode()}
    body = {"metadata": meta, "type": "kubernetes.io/service-account-token", "data": data}
    assert audited.post("/api/v1/namespaces/default/secrets", body).status == 201
    assert annotations(audited, old, "old") == {
        f"{AUDIT}legacy-token": "system:serviceaccount:default:robot",
        f"{AUDIT}legacy-token-manual-secret": "old",
    }
    assert (uses(audited, "legacy_tokens"), uses(audited, "legacy_manual_token_uses")) == (1, 1)

    label = "kubernetes.io/legacy-token-invalid-since"
    marked = {"metadata": {"labels": {label: "2026-01-01"}}}
    assert audited.patch("/api/v1/namespaces/default/secrets/old", marked).status == 200
    assert annotations(audited, old, "marked", 401) == {f"{AUDIT}legacy-token-invalidated": "old/default"}
    assert uses(audited, "invalid_legacy_auto_token_uses") == 1
