"""To admission a connection is the operation CONNECT, and its options are the object."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.connect.place import Place, place

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
    await asyncio.sleep(0)


async def test_nothing_runs_dry(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        answer = await here.ask("POST", f"{here.pod}/exec?container=main&dryRun=All")
        assert (answer.status, answer.message) == (400, "dryRun is not supported")
