"""A kubelet's server without a kubelet: one pod, and a runtime whose containers are processes of this machine.

The runtime's streaming server is made of the same parts as ours will be (`net.streams.exec_server`); clients
are real ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from pybernetes.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.kubelet.runtime import labels
from pybernetes.net.http import HTTPServer, Request, Response
from pybernetes.net.streams.channels import STDERR, STDOUT
from pybernetes.net.streams.duplex import Duplex, dial, join
from pybernetes.net.streams.exec_server import Refused, RemoteCommand, accept_command, failed
from pybernetes.net.streams.port_forward_server import serve_port_forward
from pybernetes.net.streams.remotecommand import SUCCESS, StreamOptions


class FakeRuntime:
    """Containers `main` (running) and `old` (ended) of one pod."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.port = 0
        self.uid = "uid-1"
        self.refusal: CRIError | None = None
        self.sizes: list[tuple[int, int]] = []
        self.checkpoints: list[tuple[str, str, int]] = []
        self._asked: dict[str, Any] = {}
        self._numbers = itertools.count()
        self._server: asyncio.Server | None = None
        self.running = True

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        http = HTTPServer(self._serve, lambda status, text: Response(text.encode(), status), max_body=1 << 20)
        self._server = await loop.create_server(http, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    # -- CRI

    async def list_containers(self, request: Any) -> Any:
        self._refuse()
        selector = dict(request.filter.label_selector)
        labelled = {labels.POD_UID: self.uid, labels.CONTAINER_NAME: "main", labels.POD_NAME: "web"}
        labelled[labels.POD_NAMESPACE] = "default"
        matches = all(labelled.get(name) == value for name, value in selector.items())
        found = cri.Container(id="main-1", created_at=1, labels=labelled, state=cri.CONTAINER_RUNNING)
        return cri.ListContainersResponse(containers=[found] if matches and self.running else [])

    async def list_pod_sandbox(self, request: Any) -> Any:
        self._refuse()
        matches = request.filter.label_selector.get(labels.POD_UID) == self.uid
        return cri.ListPodSandboxResponse(items=[cri.PodSandbox(id="sandbox-1", created_at=1)] if matches else [])

    async def container_status(self, request: Any) -> Any:
        state = cri.CONTAINER_RUNNING if self.running else cri.CONTAINER_EXITED
        path = str(self.logs / f"{request.container_id}.log")
        return cri.ContainerStatusResponse(status=cri.ContainerStatus(state=state, log_path=path))

    async def checkpoint_container(self, request: Any) -> Any:
        self._refuse()
        self.checkpoints.append((request.container_id, request.location, request.timeout))
        return cri.CheckpointContainerResponse()

    async def exec(self, request: Any) -> Any:
        return cri.ExecResponse(url=self._url("exec", request))

    async def attach(self, request: Any) -> Any:
        return cri.AttachResponse(url=self._url("attach", request))

    async def port_forward(self, request: Any) -> Any:
        return cri.PortForwardResponse(url=self._url("portforward", request))

    async def exec_sync(self, request: Any) -> Any:
        process = await asyncio.create_subprocess_exec(*request.cmd, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        return cri.ExecSyncResponse(stdout=output, exit_code=process.returncode or 0)

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def _url(self, what: str, request: Any) -> str:
        token = f"t{next(self._numbers)}"
        self._asked[token] = request
        return f"http://127.0.0.1:{self.port}/{what}/{token}"

    # -- streaming

    async def _serve(self, request: Request) -> Response | None:
        _, what, token = request.path.split("/")
        asked = self._asked.pop(token)
        if what == "portforward":
            return await serve_port_forward(request, list(asked.port), _forward)
        options = StreamOptions(asked.stdin, asked.stdout, asked.stderr, asked.tty)
        try:
            command = await accept_command(request, options)
        except Refused as refused:
            return refused.answer
        argv = list(asked.cmd) if what == "exec" else ["sh", "-c", "echo attached; exec cat"]
        sizes = asyncio.create_task(self._note_sizes(command))
        try:
            await _run(command, argv)
        finally:
            sizes.cancel()
            command.close()
        return None

    async def _note_sizes(self, command: RemoteCommand) -> None:
        async for size in command.resizes():
            self.sizes.append(size)


async def _run(command: RemoteCommand, argv: list[str]) -> None:
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, stderr=pipe)
    except OSError as error:
        return await command.finish(failed(f"error executing command in container: {error}"))
    assert process.stdin
    assert process.stdout
    assert process.stderr

    async def feed() -> None:
        assert process.stdin
        with contextlib.suppress(ConnectionError):
            while data := await command.read_stdin():
                process.stdin.write(data)
                await process.stdin.drain()
            process.stdin.close()

    async def copy(reader: asyncio.StreamReader, channel: int) -> None:
        while data := await reader.read(1 << 16):
            await command.write(channel, data)

    feeding = asyncio.create_task(feed())
    try:
        await asyncio.gather(copy(process.stdout, STDOUT), copy(process.stderr, STDERR))
        code = await process.wait()
    finally:
        feeding.cancel()
        if process.returncode is None:
            process.kill()
    if code:
        return await command.finish(failed(f"command terminated with non-zero exit code: exit status {code}", code))
    return await command.finish(SUCCESS)


async def _forward(port: int, client: Duplex) -> str:
    try:
        backend = await dial("127.0.0.1", port)
    except OSError:
        return f"failed to connect to localhost:{port} inside namespace: connection refused"
    await join(client, backend)
    return ""


class FakeSource:
    """A kubelet that knows one pod."""

    def __init__(self, node: str, namespace: str = "default", name: str = "web") -> None:
        spec = PodSpec(node_name=node, containers=[Container(name="main"), Container(name="old")])
        self.web = Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid="uid-1"), spec=spec)
        ended = ContainerState(terminated=ContainerStateTerminated(container_id="fake://old-1"))
        running = ContainerState(running=ContainerStateRunning())
        self.web.status = PodStatus(
            container_statuses=[
                ContainerStatus(name="main", state=running, container_id="fake://main-1", last_state=ended),
                ContainerStatus(name="old", state=ended),
            ]
        )
        self.problem = ""
        self.failed: dict[str, str] = {}

    def pods(self) -> Iterable[Pod]:
        return [self.web]

    def pod(self, namespace: str, name: str) -> Pod | None:
        meta = self.web.metadata
        assert meta
        return self.web if (namespace, name) == (meta.namespace, meta.name) else None

    def status(self, pod: Pod) -> Any:
        return pod.status

    def failed_tasks(self) -> dict[str, str]:
        return self.failed

    def sync_loop_problem(self) -> str:
        return self.problem

    def configuration(self) -> dict[str, Any]:
        return {"maxPods": 110}


@contextlib.asynccontextmanager
async def echo_server() -> AsyncIterator[int]:
    """A TCP server that says everything back in capitals; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data.upper())
                await writer.drain()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
