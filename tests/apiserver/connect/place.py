"""An API server, and a node and a pod in it whose kubelet is a server of this process (`kubelet.server.fakes`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from apiserver.client import Client
from kubelet.server.fakes import FakeRuntime, FakeSource

from pybernetes import pki
from pybernetes.client import config
from pybernetes.client.client import Client as APIClient
from pybernetes.cluster import certificates
from pybernetes.kubelet.server.authn import Authenticator
from pybernetes.kubelet.server.authz import WebhookAuthorizer
from pybernetes.kubelet.server.server import KubeletServer
from pybernetes.net.client_certificates import Trust
from pybernetes.net.streams.duplex import Dialed, Head, dial, request_head
from pybernetes.net.streams.websocket import WebSocket, new_key
from pybernetes.net.tls import ServingTLS
from tools import ApiServer, wait_until

NODE = "worker"


def flags(folder: Path) -> list[str]:
    """What an API server needs to be known to the kubelet here."""
    folder.mkdir(parents=True, exist_ok=True)
    certificates.ensure(folder, ["10.96.0.1"])
    names = {"certificate": "kubelet-client-certificate", "key": "kubelet-client-key"}
    client = folder / f"{certificates.KUBELET_CLIENT}"
    policy = folder / "audit.json"
    policy.write_text('{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"RequestResponse"}]}')
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={folder}/audit.log",
        f"--{names['certificate']}={client}.crt",
        f"--{names['key']}={client}.key",
        f"--kubelet-certificate-authority={folder}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        "--authorization-mode=Node,RBAC",
    ]


def own_address() -> str:
    """An address of this machine that is not the loopback's, where there is one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


@dataclass
class Place:
    """Everything, while it runs."""

    server: ApiServer
    runtime: FakeRuntime
    source: FakeSource
    kubelet: KubeletServer
    address: str
    client: Client
    calls: list[Any] = field(default_factory=list)

    async def kubectl(self, program: str, *argv: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run kubectl: exit code, output, errors."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(program, f"--kubeconfig={self.server.kubeconfig}", *argv),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**os.environ, "HOME": str(self.server.folder)},
        )
        async with asyncio.timeout(20):
            out, err = await process.communicate(stdin)
        return process.returncode or 0, out, err

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """A request, in another thread: the kubelet is in ours."""
        return await asyncio.to_thread(self.client, method, path, body, **headers)

    async def upgrade(self, method: str, path: str, headers: list[tuple[str, str]]) -> tuple[Dialed, Head]:
        """A request to leave HTTP, and the head of its answer."""
        parts = urlsplit(self.server.url)
        assert parts.hostname
        context = ssl.create_default_context(cafile=str(self.server.ca_file))
        connection = await dial(parts.hostname, parts.port or 443, context)
        lines = [("Host", parts.netloc), ("Authorization", f"Bearer {self.client.token}"), *headers]
        head = await connection.request(request_head(method, path, lines))
        return connection, head

    async def websocket(self, path: str, protocol: str) -> WebSocket:
        """A WebSocket."""
        lines = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
        lines += [("Sec-WebSocket-Key", new_key()), ("Sec-WebSocket-Protocol", protocol)]
        connection, head = await self.upgrade("GET", path, lines)
        assert head.status == 101, (head.raw, await connection.body(head, 1000))
        assert head.get("sec-websocket-protocol") == protocol
        return WebSocket(connection, server=False)

    async def idle(self) -> None:
        """Wait until the kubelet serves no stream."""
        await asyncio.to_thread(wait_until, lambda: not self.kubelet.streams, "all streams have ended")

    @property
    def pod(self) -> str:
        """The pod's path."""
        return "/api/v1/namespaces/default/pods/web"


@contextlib.asynccontextmanager
async def place(server: ApiServer, folder: Path, *, features: list[str] | None = None) -> AsyncIterator[Place]:
    """The node, the pod and their kubelet."""
    address = own_address()
    logs = _folders(folder)
    pki_folder = server.folder / "pki"
    authority = certificates.read(pki_folder, certificates.AUTHORITY)
    assert authority is not None
    certificates.write(folder, "kubelet", pki.issue_server(authority, "system:node:worker", [address, "127.0.0.1"]))
    runtime, source = FakeRuntime(logs), FakeSource(NODE)
    await runtime.start()
    trust = Trust(pki_folder / "ca.crt")
    async with APIClient(config.load(str(server.kubeconfig)), program="kubelet") as client:
        kubelet = KubeletServer(
            source,
            runtime,
            authn=Authenticator(client, trust),
            authz=WebhookAuthorizer(client, NODE),
            system_logs=str(logs),
            log_query=True,
            checkpoints=folder / "checkpoints",
        )
        port = await kubelet.start("0.0.0.0", 0, ServingTLS(folder / "kubelet.crt", folder / "kubelet.key", [trust]))
        made = Place(server, runtime, source, kubelet, address, Client(server))
        await _create(made, port, features or [])
        try:
            yield made
        finally:
            await made.ask("DELETE", f"{made.pod}?gracePeriodSeconds=0")
            await made.ask("DELETE", f"/api/v1/nodes/{NODE}")
            await kubelet.stop()
            runtime.stop()


def _folders(folder: Path) -> Path:
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    return logs


async def _create(made: Place, port: int, features: list[str]) -> None:
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "kubelet-client"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": certificates.KUBELET_CLIENT_USER}],
    }
    answer = await made.ask("POST", f"/apis/{group}/v1/clusterrolebindings", binding)
    assert answer.status in (201, 409), answer.body
    status = {
        "addresses": [{"type": "InternalIP", "address": made.address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "declaredFeatures": features,
    }
    answer = await made.ask("POST", "/api/v1/nodes", {"metadata": {"name": NODE}, "status": status})
    assert answer.status == 201, answer.body
    containers = [{"name": "main", "image": "x"}, {"name": "old", "image": "x"}]
    pod = {"metadata": {"name": "web"}, "spec": {"nodeName": NODE, "containers": containers}}
    answer = await made.ask("POST", "/api/v1/namespaces/default/pods", pod)
    assert answer.status == 201, answer.body
    running = {"phase": "Running", "podIP": made.address, "podIPs": [{"ip": made.address}]}
    answer = await made.ask("PUT", f"{made.pod}/status", {**json.loads(answer.body), "status": running})
    assert answer.status == 200, answer.body
