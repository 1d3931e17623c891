"""The proxy without a cluster: routes from Ingresses in memory, endpoints that are asyncio servers, a raw client."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pybernetes.api.core.v1 import Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.api.networking.v1 import Ingress
from pybernetes.ingress.certificates import Certificates
from pybernetes.ingress.endpoints import Endpoints
from pybernetes.ingress.forwarding import Forwarder
from pybernetes.ingress.frontend import Server, Timeouts
from pybernetes.ingress.metrics import Metrics
from pybernetes.ingress.routes import Routes
from pybernetes.ingress.rules import compile_ingress
from pybernetes.ingress.upstream import Pool
from pybernetes.net import acceptor

WITHIN = 20.0
PREFIX = "nginx.ingress.kubernetes.io/"


def ingress(
    name: str,
    *paths: tuple[str, str, str],
    host: str = "",
    annotations: dict[str, str] | None = None,
    default: str = "",
    tls: list[dict[str, Any]] | None = None,
    created: str = "2026-01-01T00:00:00Z",
    port: dict[str, Any] | None = None,
) -> Ingress:
    """Each path: path, type, Service."""
    port = port or {"number": 80}
    rules = [
        {"path": path, "pathType": kind, "backend": {"service": {"name": service, "port": port}}}
        for path, kind, service in paths
    ]
    spec: dict[str, Any] = {"tls": tls}
    if rules:
        spec["rules"] = [{**({"host": host} if host else {}), "http": {"paths": rules}}]
    if default:
        spec["defaultBackend"] = {"service": {"name": default, "port": port}}
    notes = {PREFIX + key: value for key, value in (annotations or {}).items()}
    metadata = {"name": name, "namespace": "default", "annotations": notes, "creationTimestamp": created}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Ingress)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def echo(name: str) -> Handler:
    """Answers its name and what it was sent, and keeps the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await read_body(reader, head)
                said = b"%b|%b|%b" % (name.encode(), head, body)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nX-From: %b\r\nContent-Length: %d\r\n\r\n" % (name.encode(), len(said))
                )
                writer.write(said if not head.startswith(b"HEAD ") else b"")
        writer.close()

    return serve


async def read_body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """The body behind a head."""
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    if fields.get(b"transfer-encoding") == b"chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return body
    return await reader.readexactly(int(fields.get(b"content-length", b"0")))


@dataclass
class Proxy:
    """`put` an Ingress, `serve` a Service by handlers, `ask` over a new connection."""

    routes: Routes
    endpoints: Endpoints
    pool: Pool
    metrics: Metrics
    server: Server
    port: int = 0
    tls_port: int = 0
    services: dict[tuple[str, str], Service] = field(default_factory=dict)
    slices: dict[tuple[str, str], list[EndpointSlice]] = field(default_factory=dict)
    servers: list[asyncio.Server] = field(default_factory=list)

    def put(self, *made: Ingress) -> None:
        for each in made:
            self.routes.put(compile_ingress(each))

    async def listen(self, handler: Handler) -> int:
        """An endpoint; its port."""
        server = await asyncio.start_server(handler, "127.0.0.1", 0)
        self.servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def serve(self, name: str, *handlers: Handler) -> list[int]:
        """A Service with an endpoint for each handler; their ports."""
        ports = [await self.listen(each) for each in handlers]
        self.point(name, [(port, {"ready": True}) for port in ports])
        return ports

    def point(self, name: str, ports: list[tuple[int, dict[str, bool]]]) -> None:
        """A Service's endpoints: ports and conditions. (A slice for each, as its ports are those of all in it.)"""
        spec = {"ports": [{"port": 80, "name": "web"}]}
        self.services["default", name] = msgspec.convert({"metadata": {"name": name}, "spec": spec}, Service)
        self.slices["default", name] = [
            msgspec.convert(
                {
                    "addressType": "IPv4",
                    "ports": [{"name": "web", "port": port}],
                    "endpoints": [{"addresses": ["127.0.0.1"], "conditions": conditions}],
                },
                EndpointSlice,
            )
            for port, conditions in ports
        ]
        self.endpoints.changed("default", name)
        wanted = self.endpoints.all()
        self.pool.retire(lambda address: address[:2] not in wanted)

    async def connect(self, tls: ssl.SSLContext | None = None, host: str = "") -> Client:
        port = self.tls_port if tls else self.port
        name = host if tls else None
        async with asyncio.timeout(WITHIN):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
        return Client(reader, writer)

    async def ask(self, path: str = "/", host: str = "", method: str = "GET", **more: Any) -> Answer:
        client = await self.connect()
        try:
            return await client.ask(path, host, method, **more)
        finally:
            client.writer.close()


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def sent(self) -> str:
        """What `echo` was sent."""
        return self.body.decode().partition("|")[2]

    @property
    def name(self) -> str:
        """Which `echo` has answered."""
        return self.body.decode().partition("|")[0]


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(
        self,
        path: str = "/",
        host: str = "",
        method: str = "GET",
        headers: tuple[str, ...] = (),
        body: bytes = b"",
    ) -> Answer:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host or 'any.example'}", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        await self.send("\r\n".join([*lines, "", ""]).encode() + body)
        return await self.answer(method)

    async def answer(self, method: str = "GET") -> Answer:
        """The next answer. IncompleteReadError if the connection ends before."""
        async with asyncio.timeout(WITHIN):
            head = await self.reader.readuntil(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            status = int(lines[0].split()[1])
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:-2])}
            if method == "HEAD" or status in (100, 101, 204, 304):
                return Answer(status, headers, b"")
            if "content-length" not in headers and "transfer-encoding" not in headers:
                return Answer(status, headers, await self.reader.read())
            return Answer(status, headers, await read_body(self.reader, head))

    async def ended(self) -> bytes:
        """What still comes until the connection is closed."""
        async with asyncio.timeout(WITHIN):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@contextlib.asynccontextmanager
async def proxy(
    timeouts: Timeouts | None = None, certificates: Certificates | None = None, most_connections: int = 4096
) -> AsyncIterator[Proxy]:
    routes, pool, metrics = Routes(), Pool(), Metrics()
    made: Proxy
    endpoints = Endpoints(
        lambda namespace, name: made.services.get((namespace, name)),
        lambda namespace, name: made.slices.get((namespace, name), []),
    )
    forwarder = Forwarder(
        routes,
        endpoints,
        pool,
        metrics,
        has_certificate=certificates.covers if certificates else lambda _: False,
        https_port=lambda: made.tls_port,
        verbosity=3,
    )
    server = Server(
        forwarder.serve,
        timeouts=timeouts,
        most_connections=most_connections,
        refused=lambda status: metrics.refused.inc(str(status)),
    )
    made = Proxy(routes, endpoints, pool, metrics, server)
    loop = asyncio.get_running_loop()
    listening = [await loop.create_server(server, "127.0.0.1", 0)]
    made.port = listening[0].sockets[0].getsockname()[1]
    if certificates is not None:
        listening.append(await loop.create_server(acceptor.securely(server, certificates), "127.0.0.1", 0))
        made.tls_port = listening[1].sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        for each in listening:
            each.close()
        await server.drain(0.1)
        pool.close()
        for each in made.servers:
            each.close()
