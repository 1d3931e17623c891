"""Plain HTTP for those who ask a node how it is: /healthz, /livez, /metrics, /proxyMode, /configz.

Like kube-proxy's: no TLS and no authentication, so metrics listen on the loopback device by default.
"""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .metrics import Metrics

LIMIT = 16 * 1024
TIMEOUT = 30.0
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class Answer(NamedTuple):
    """Status, content type, body and further headers."""

    status: int
    kind: str
    body: bytes
    headers: Mapping[str, str] = {}


NOT_FOUND = Answer(404, "text/plain; charset=utf-8", b"404 page not found\n")


class PlainServer:
    """Answers one GET on each connection."""

    def __init__(self, answer: Callable[[str], Answer]) -> None:
        self._answer = answer
        self._servers: list[asyncio.Server] = []

    async def start(self, addresses: tuple[str, ...], port: int) -> int:
        """Listens; the port. An IP version that the machine does not have is left out if there is another."""
        failure: OSError | None = None
        for address in addresses:
            try:
                made = await asyncio.start_server(self._serve, address, port, limit=LIMIT)
            except OSError as error:
                failure = error
                continue
            self._servers.append(made)
            port = int(made.sockets[0].getsockname()[1])
        if not self._servers and failure:
            raise failure
        return port

    async def stop(self) -> None:
        """Listens no more."""
        for server in self._servers:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, _, rest = head.partition("\r\n")[0].partition(" ")
                answer = Answer(405, "text/plain", b"") if method not in ("GET", "HEAD") else self._answer(_path(rest))
                lines = [f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}", f"Content-Type: {answer.kind}"]
                lines += [f"{name}: {value}" for name, value in answer.headers.items()]
                lines += [f"Content-Length: {len(answer.body)}", "Connection: close", "", ""]
                writer.write("\r\n".join(lines).encode() + (answer.body if method == "GET" else b""))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()


def _path(rest: str) -> str:
    return rest.partition(" ")[0].partition("?")[0]


def health_pages(
    metrics: Metrics, problem: Callable[[], str], eligible: Callable[[], bool], synced: Callable[[], float]
) -> Callable[[str], Answer]:
    """`/healthz` fails when the rules are not in step or the node is about to go, `/livez` only in the first case."""

    def answer(path: str) -> Answer:
        if path not in ("/healthz", "/livez"):
            return NOT_FOUND
        good = not problem() and (eligible() or path == "/livez")
        status = 200 if good else 503
        (metrics.healthz if path == "/healthz" else metrics.livez).inc(str(status))
        now = datetime.datetime.now(datetime.UTC)
        updated = datetime.datetime.fromtimestamp(synced(), datetime.UTC) if synced() else now
        body = {"lastUpdated": str(updated), "currentTime": str(now), "nodeEligible": eligible()}
        if problem():
            body["problem"] = problem()
        return Answer(status, "application/json", json.dumps(body).encode(), {"X-Content-Type-Options": "nosniff"})

    return answer


def metrics_pages(metrics: Metrics, configuration: Callable[[], Any]) -> Callable[[str], Answer]:
    """`/metrics`, `/proxyMode`, `/configz`, `/healthz`."""

    def answer(path: str) -> Answer:
        if path == "/metrics":
            return Answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics.registry.render())
        if path == "/proxyMode":
            return Answer(200, "text/plain; charset=utf-8", b"nftables")
        if path == "/healthz":
            return Answer(200, "text/plain; charset=utf-8", b"ok")
        if path == "/configz":
            import msgspec

            return Answer(200, "application/json", msgspec.json.encode({"kubeproxy.config.k8s.io": configuration()}))
        return NOT_FOUND

    return answer
