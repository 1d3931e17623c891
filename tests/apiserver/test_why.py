"""`/debug/pyb/why`: explanations with the rights of the user who asks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

from apiserver.in_process import call, serving

CORE, RBAC = "/api/v1/namespaces/default", "/apis/rbac.authorization.k8s.io/v1"


def ask(path: str) -> str:
    return f"/debug/pyb/why?path={quote(path)}"


def test_an_explanation_reads_what_its_reader_may_read(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(
            tmp_path, "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"
        ) as server:
            service = {
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                "spec": {"selector": {"app": "wbe"}, "ports": [{"port": 80}]},
            }  # fmt: skip
            pod = {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            }  # fmt: skip
            assert (await call(server.port, "POST", f"{CORE}/services", service))[0] == 201
            assert (await call(server.port, "POST", f"{CORE}/pods", pod))[0] == 201
            status, body = await call(server.port, "GET", ask(f"{CORE}/services/web"))
            assert status == 200, body
            told = json.loads(body)
            assert told["why"].endswith("(app=wbe); nearest is pod web-1, which has app=web")
            assert (told["help"], told["healthy"]) == ("set app=web in spec.selector", False)
            role = {
                "kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "asks"},
                "rules": [
                    {"verbs": ["get"], "nonResourceURLs": ["/debug/pyb/why"]},
                    {"verbs": ["get"], "apiGroups": [""], "resources": ["services"]},
                ],
            }  # fmt: skip
            binding = {
                "kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "a"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "asks"},
                "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
            }  # fmt: skip
            assert (await call(server.port, "POST", f"{RBAC}/clusterroles", role))[0] == 201
            assert (await call(server.port, "POST", f"{RBAC}/clusterrolebindings", binding))[0] == 201
            status, body = await call(server.port, "GET", ask(f"{CORE}/services/web"), Impersonate_User="alice")
            assert status == 200, body
            assert "web-1" not in json.loads(body)["why"]  # alice may not list pods
            assert (await call(server.port, "GET", ask(f"{CORE}/pods/web-1"), Impersonate_User="alice"))[0] == 403
            assert (await call(server.port, "GET", ask(f"{CORE}/services/web"), Impersonate_User="bob"))[0] == 403

    asyncio.run(run())


def test_only_one_object_can_be_asked_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as server:
            assert (await call(server.port, "GET", ask(f"{CORE}/pods/none")))[0] == 404
            for path in ("", "/healthz", f"{CORE}/pods", f"{CORE}/pods/x/log", "https://elsewhere/api/v1/nodes/x"):
                assert (await call(server.port, "GET", ask(path)))[0] == 400, path
            assert (await call(server.port, "POST", ask(f"{CORE}/pods/none"), {}))[0] == 405

    asyncio.run(run())
