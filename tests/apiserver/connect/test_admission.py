"""To admission a connection is the operation CONNECT, and its options are the object."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.connect.place import Place, place

from pybernetes import pki
from pybernetes.cluster import certificates
from pybernetes.net.http import Handler, HTTPServer, Request, Response
from tools import ApiServer

BASE = "/apis/admissionregistration.k8s.io/v1"


@contextlib.asynccontextmanager
async def policy(here: Place, resources: list[str], expression: str) -> AsyncIterator[None]:
    """A policy about connections, in force."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": resources}]
    spec: dict[str, Any] = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": expression, "message": "not this"}],
    }
    answer = await here.ask("POST", f"{BASE}/validatingadmissionpolicies", {"metadata": {"name": "c"}, "spec": spec})
    assert answer.status == 201, answer.body
    binding = {"metadata": {"name": "c"}, "spec": {"policyName": "c", "validationActions": ["Deny"]}}
    answer = await here.ask("POST", f"{BASE}/validatingadmissionpolicybindings", binding)
    assert answer.status == 201, answer.body
    try:
        yield
    finally:
        await here.ask("DELETE", f"{BASE}/validatingadmissionpolicybindings/c")
        await here.ask("DELETE", f"{BASE}/validatingadmissionpolicies/c")


async def test_a_policy_judges_commands(connected: ApiServer, tmp_path: Path, kubectl: str) -> None:
    expression = "object.kind == 'PodExecOptions' && object.command[0] != 'rm' && !has(object.tty)"
    async with place(connected, tmp_path) as here, policy(here, ["pods/exec"], expression):
        code, out, _ = await here.kubectl(kubectl, "exec", "web", "-c", "main", "--", "echo", "fine")
        assert (code, out) == (0, b"fine\n")
        code, _, err = await here.kubectl(kubectl, "exec", "web", "-c", "main", "--", "rm", "-rf", "/x")
        assert code == 1
        assert b"ValidatingAdmissionPolicy 'c' with binding 'c' denied request: not this" in err
        assert (await here.ask("GET", f"{here.pod}/log?container=old")).status == 400  # reads are not connections


@pytest.mark.parametrize(
    ("path", "expression"),
    [
        ("pods/web/portforward?ports=80,81", "object.kind == 'PodPortForwardOptions' && object.ports == [80, 81]"),
        ("pods/web/attach?container=main&stdin=1", "object.kind == 'PodAttachOptions' && object.stdin"),
        ("pods/web:9/proxy/a/b", "object.kind == 'PodProxyOptions' && object.path == '/a/b'"),
        ("services/none/proxy/a", "object.kind == 'ServiceProxyOptions' && request.name == 'none'"),
    ],
)
async def test_every_connection_has_its_options(
    connected: ApiServer, tmp_path: Path, path: str, expression: str
) -> None:
    resources = ["pods/*", "services/*"]
    said = f"request.operation == 'CONNECT' && oldObject == null && {expression}"
    target = f"/api/v1/namespaces/default/{path}"
    async with place(connected, tmp_path) as here:
        async with policy(here, resources, f"!({said})"):
            answer = await here.ask("POST", target)
            assert answer.status == 422, answer.body
            assert "not this" in answer.message
        async with policy(here, resources, said):
            answer = await here.ask("POST", target)
            assert "not this" not in answer.message


async def test_a_webhook_sees_a_connection_and_may_change_its_options(
    connected: ApiServer, tmp_path: Path, kubectl: str
) -> None:
    reviews: list[Any] = []

    async def judge(request: Request) -> Response:
        review = json.loads(request.body)
        reviews.append(review["request"])
        patch = base64.b64encode(b'[{"op":"replace","path":"/command","value":["echo","something else"]}]').decode()
        answer = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
        return Response(json.dumps({**review, "request": None, "response": answer}).encode())

    async with place(connected, tmp_path) as here, webhook(here, tmp_path, judge):
        code, out, err = await here.kubectl(kubectl, "exec", "web", "-c", "main", "--", "echo", "this")
        assert (code, out) == (0, b"something else\n"), err
    [review] = reviews
    assert (review["operation"], review["subResource"], review["name"]) == ("CONNECT", "exec", "web")
    assert review["kind"] == {"group": "", "version": "v1", "kind": "PodExecOptions"}
    wanted = {"container": "main", "command": ["echo", "this"], "stdout": True, "stderr": True}
    assert review["object"] == {"kind": "PodExecOptions", "apiVersion": "v1", **wanted}
    assert (review["oldObject"], review["options"]) == (None, None)


@contextlib.asynccontextmanager
async def webhook(here: Place, folder: Path, judge: Handler) -> AsyncIterator[None]:
    """A mutating webhook for connections, in force."""
    authority = certificates.read(here.server.folder / "pki", certificates.AUTHORITY)
    assert authority is not None
    certificates.write(folder, "hook", pki.issue_server(authority, "hook", ["127.0.0.1"]))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "hook.crt", folder / "hook.key")
    http = HTTPServer(judge, lambda status, text: Response(text.encode(), status), max_body=1 << 20)
    server = await asyncio.get_running_loop().create_server(http, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    hook = {
        "name": "hook.example.com",
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}/",
            "caBundle": base64.b64encode(here.server.ca_file.read_bytes()).decode(),
        },
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/*"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = f"{BASE}/mutatingwebhookconfigurations"
    answer = await here.ask("POST", path, {"metadata": {"name": "c"}, "webhooks": [hook]})
    assert answer.status == 201, answer.body
    try:
        yield
    finally:
        await here.ask("DELETE", f"{path}/c")
        server.close()


async def test_nothing_runs_dry(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        answer = await here.ask("POST", f"{here.pod}/exec?container=main&dryRun=All")
        assert (answer.status, answer.message) == (400, "dryRun is not supported")
