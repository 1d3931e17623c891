"""`/healthz`, `/livez`, `/readyz`, `/metrics` and what else tells of a component, over TLS.

Health is public, as upstream (`--authorization-always-allow-paths`). All else is for whom the API server knows and
allows: a bearer token is reviewed by it (TokenReview), a client certificate of the cluster's authority is believed, and
a SubjectAccessReview decides. `/configz`, `/flagz` and `/statusz` are written when a client asks.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pybernetes.api import errors
from pybernetes.net import inherited_sockets

from .checks import Check, Checks
from .client import Client
from .metrics import Registry

HEADER_LIMIT = 16 * 1024
REQUEST_TIMEOUT = 30.0
log = logging.getLogger(__name__)

Page = Callable[[str, str], Awaitable[tuple[str, str, bytes]]]
"""From path and query to status line (`200 OK`), content type and body."""
User = tuple[str, tuple[str, ...]]
"""A name and groups."""
_PLAIN = "text/plain; charset=utf-8"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_REASONS = {200: "OK", 401: "Unauthorized", 403: "Forbidden", 406: "Not Acceptable", 500: "Internal Server Error"}


@dataclass(frozen=True, slots=True)
class About:
    """The description of a component: its flags by name, and its configuration, by a name, for `/configz`."""

    program: str
    flags: Callable[[], Mapping[str, str]]
    configuration: Callable[[], Mapping[str, Any]]


class HealthServer:
    """Answers one request for each connection: requests are rare."""

    def __init__(
        self,
        metrics: Registry,
        checks: Mapping[str, Mapping[str, Check]],
        client: Client,
        pages: Mapping[str, Page] | None = None,
        about: About | None = None,
    ) -> None:
        """`checks` by path (`healthz`); `pages` are answered below these paths, to those who may get the path."""
        self._pages = pages or {}
        self.metrics = metrics
        self._checks = Checks(checks)
        self._client = client
        self._about = about
        self._started = time.time()
        self._server: asyncio.Server | None = None

    async def start(self, address: str, port: int, tls: ssl.SSLContext) -> int:
        """Listen, there or on a socket that the parent process has made for it; returns the port."""
        made = inherited_sockets.listener()
        where: dict[str, Any] = {"sock": made} if made else {"host": address, "port": port}
        self._server = await asyncio.start_server(self._serve, ssl=tls, limit=HEADER_LIMIT, **where)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Listen no more."""
        if self._server:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status, kind, body = await self._answer(head, writer)
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                    "Connection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: str, writer: asyncio.StreamWriter) -> tuple[str, str, bytes]:
        lines = head.split("\r\n")
        method, _, rest = lines[0].partition(" ")
        path, _, query = rest.partition(" ")[0].partition("?")
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", _PLAIN, b"method not allowed\n"
        if health := self._checks.answer(path, query):
            return f"{health[0]} {_REASONS[health[0]]}", _PLAIN, health[1].encode()
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        user = await self._user(headers.get("authorization", ""), writer)
        if user is None:
            return _refusal(errors.Unauthorized())
        if not await self._allowed(user, path):
            return _refusal(errors.Forbidden("", "", "", f'User "{user[0]}" cannot get path "{path}"'))
        for prefix, page in self._pages.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                return await page(path, query)
        if path == "/metrics":
            return "200 OK", _METRICS, self.metrics.render()
        if path == "/metrics/slis":
            return "200 OK", _METRICS, self._checks.slis()
        if self._about and path in ("/configz", "/flagz", "/statusz"):
            return self._tell(self._about, path, headers.get("accept", ""))
        return "404 Not Found", _PLAIN, b"404 page not found\n"

    def _tell(self, about: About, path: str, accept: str) -> tuple[str, str, bytes]:
        from pybernetes.net import zpages

        if path == "/configz":
            return "200 OK", "application/json", msgspec.json.encode(about.configuration())
        try:
            if path == "/flagz":
                found = zpages.flagz(about.program, about.flags(), accept)
            else:
                paths = ["/configz", "/flagz", "/metrics", *(f"/{each}" for each in self._checks.paths)]
                found = zpages.statusz(about.program, self._started, paths, accept)
        except errors.NotAcceptable as error:
            return _refusal(error)
        return "200 OK", found.content_type, found.body

    async def _user(self, authorization: str, writer: asyncio.StreamWriter) -> User | None:
        certificate: dict[str, Any] = writer.get_extra_info("peercert") or {}
        if certificate:
            subject = [pair for part in certificate.get("subject", ()) for pair in part]
            name = next((value for key, value in subject if key == "commonName"), "")
            return name, (*(value for key, value in subject if key == "organizationName"), "system:authenticated")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return "system:anonymous", ("system:unauthenticated",)
        review = await self._review("authentication.k8s.io", "tokenreviews", "TokenReview", {"token": token.strip()})
        if not review.get("authenticated"):
            return None
        user = review.get("user") or {}
        return str(user.get("username") or ""), tuple(user.get("groups") or ())

    async def _allowed(self, user: User, path: str) -> bool:
        spec = {
            "user": user[0],
            "groups": list(user[1]),
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        review = await self._review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", spec)
        return bool(review.get("allowed"))

    async def _review(self, group: str, plural: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        try:
            answer = await self._client.call("POST", f"/apis/{group}/v1/{plural}", body)
        except Exception as error:  # unknown is not allowed
            log.warning("%s failed: %s", kind, error)
            return {}
        return dict((answer or {}).get("status") or {})


def _refusal(error: errors.APIError) -> tuple[str, str, bytes]:
    return f"{error.code} {_REASONS[error.code]}", "application/json", msgspec.json.encode(error.status())


def serving_tls(certificate: str, key: str, client_ca: str) -> ssl.SSLContext:
    """TLS for a server that asks for client certificates and lives without."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
