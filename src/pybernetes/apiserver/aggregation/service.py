"""One APIService that another server serves: how to reach it, whether it is there, what it serves.

A task of its own looks after it: at once when its spec, its Service or its endpoints change, every 30 seconds, and more
often while it does not answer. What it finds is written to the APIService's status, and it is the status that decides
whether requests are passed on, so that all servers on a store agree.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from pybernetes.api.apiregistration.v1 import APIService, APIServiceCondition
from pybernetes.api.gocompat.quote import quote
from pybernetes.client.http import ConnectionFailed
from pybernetes.net.http import Request, Response

from ..registry.lister import lister
from ..registry.registry import Registry
from ..user import User
from ..webhooks.client import words
from ..webhooks.services import Unresolved, candidates
from . import availability, discovery
from .identity import AGGREGATOR, ProxyClient, user_headers
from .proxy import proxy, request_bytes
from .transport import Address, Transport

log = logging.getLogger(__name__)

RESYNC = 30.0  # seconds between checks; upstream's
REFRESH = 60.0  # seconds between looks at what is served; upstream's
_FIRST_RETRY = 0.005  # seconds; doubles to RESYNC, as upstream's
_PATIENCE = 5.0  # seconds for an answer
_ATTEMPTS = 5  # endpoints that are asked at once; one that answers is enough
_MAX_ANSWER = 64 << 20  # bytes; documents of large servers have some megabytes

WriteCondition = Callable[[str, APIServiceCondition], Awaitable[None]]


class Answer(msgspec.Struct):
    """A complete answer; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class RemoteService:
    """An APIService with a Service."""

    def __init__(self, registry: Registry, obj: APIService, client: ProxyClient, write: WriteCondition) -> None:
        self._registry = registry
        self._client = client
        self._write = write
        self._wake = asyncio.Event()
        self._transport: Transport | None = None
        self._generation = -1
        self._discovered = float("-inf")  # when what is served was last asked for
        self.problem = ""
        """Why there can be no connection, if that is known beforehand."""
        self.entry: dict[str, Any] = {}
        self.refresh: Callable[[], Awaitable[None]] | None = None
        """Looks whether what else was read of the server is still so."""
        self._spec: Any = None
        self.update(obj)
        self.entry = {"version": self.version, "freshness": "Stale"}

    def update(self, obj: APIService) -> None:
        """The APIService has changed."""
        assert obj.spec is not None
        assert obj.spec.service is not None
        self.name = (obj.metadata and obj.metadata.name) or ""
        self.available = availability.is_available(obj)
        self._object = obj
        if self._spec == obj.spec:
            return
        self._spec = obj.spec
        self.group, self.version = obj.spec.group or "", obj.spec.version or ""
        self.priority = obj.spec.group_priority_minimum or 0
        self.version_priority = obj.spec.version_priority or 0
        self.namespace, self.service = obj.spec.service.namespace or "", obj.spec.service.name or ""
        self._forget_transport()
        self.look()

    @property
    def passes_redirects(self) -> bool:
        """Whether it may send our clients elsewhere."""
        return self._registry.passes_redirects

    async def __call__(self, request: Request) -> Response | None:
        """Serve a request."""
        return await proxy(self, request)

    # -- reaching it --------------------------------------------------------------------------------------------

    @property
    def transport(self) -> Transport:
        """The connections; `problem` says why there are none to be had."""
        self._client.refresh()
        if self._transport is None or self._generation != self._client.generation:
            self._forget_transport()
            self._generation = self._client.generation
            spec = self._spec
            try:
                context = self._client.context(spec.ca_bundle, insecure=bool(spec.insecure_skip_tls_verify))
                self.problem = ""
            except ValueError as error:
                self.problem = str(error)
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without trusted CAs
            self._transport = Transport(context, f"{self.service}.{self.namespace}.svc")
        return self._transport

    def _forget_transport(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    async def addresses(self) -> list[Address]:
        """Where it is, at least one. Raises Unresolved."""
        return await candidates(self._registry, self.namespace, self.service, self._spec.service.port or 443)

    async def fetch(self, target: str, user: User = AGGREGATOR, **headers: str) -> Answer:
        """GET something for ourselves. Raises OSError, TimeoutError or Unresolved."""
        addresses = await self.addresses()
        return await self._fetch_from(addresses[0], target, user, headers)

    async def _fetch_from(self, address: Address, target: str, user: User, headers: dict[str, str]) -> Answer:
        transport = self.transport
        if self.problem:
            raise ConnectionFailed(self.problem)
        lines = [(name.replace("_", "-"), value) for name, value in headers.items()]
        message = request_bytes(target, address, [*lines, *user_headers(user)])
        async with asyncio.timeout(_PATIENCE):
            backend = await transport.request(address, message, repeatable=True)
            try:
                body = bytearray()
                while piece := await backend.read():
                    body += piece
                    if len(body) > _MAX_ANSWER:
                        raise ConnectionFailed(f"the answer is longer than {_MAX_ANSWER} bytes")
            except BaseException:
                transport.abort(backend)
                raise
        transport.release(address, backend)
        return Answer(backend.status, {name.lower(): value for name, value in backend.headers}, bytes(body))

    # -- looking after it ---------------------------------------------------------------------------------------

    def look(self) -> None:
        """Look at it now."""
        self._discovered = float("-inf")
        self._wake.set()

    async def run(self) -> None:
        """Look after it until cancelled."""
        loop = asyncio.get_running_loop()
        failures, seen = 0, None
        while True:
            self._wake.clear()
            try:
                found = await self._check()
                failures = failures + 1 if found.reason == "FailedDiscoveryCheck" else 0
                if not availability.says(self._object, found):
                    await self._write(self.name, found)
                if found.reason != seen or loop.time() - self._discovered >= REFRESH:
                    self._discovered = loop.time()
                    await self._discover(found)
                seen = found.reason
            except Exception:  # it must not keep us from looking again
                log.exception("apiservice %s", self.name)
                failures += 1
            delay = min(_FIRST_RETRY * 2.0 ** min(failures, 16), RESYNC) if failures else RESYNC
            try:
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def close(self) -> None:
        """Close connections: no request goes there any more."""
        self._forget_transport()

    async def _check(self) -> APIServiceCondition:
        registry = self._registry
        service = await lister(registry, "", "v1", "services").find(self.namespace, self.service)
        slices = [
            each
            for each in lister(registry, "discovery.k8s.io", "v1", "endpointslices").list(self.namespace)
            if (each.metadata.labels or {}).get("kubernetes.io/service-name") == self.service
        ]
        obstacle = availability.obstacle(self._spec, service, slices)
        if obstacle is not None:
            return obstacle
        try:
            addresses = await self.addresses()
        except Unresolved as error:
            return availability.condition("False", "FailedDiscoveryCheck", str(error))
        tasks = [asyncio.create_task(self._answers(each)) for each in addresses[:_ATTEMPTS]]
        problem = ""
        try:
            for each in asyncio.as_completed(tasks):
                problem = await each
                if not problem:
                    return availability.PASSED
        finally:
            for task in tasks:
                task.cancel()
        return availability.condition("False", "FailedDiscoveryCheck", problem)

    async def _answers(self, address: Address) -> str:
        """Why one of the endpoints does not answer; empty if it does."""
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        target = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        url = f"https://{host}:{address[1]}{target}"
        try:
            answer = await self._fetch_from(address, target, AGGREGATOR, {})
        except TimeoutError:
            why = f"Get {quote(url)}: context deadline exceeded"
        except (OSError, ssl.SSLError) as error:
            why = f"Get {quote(url)}: {words(error)}"
        else:
            if 200 <= answer.status < 300:
                return ""
            why = f"bad status from {url}: {answer.status}"
        return f"failing or missing response from {url}: {why}"

    async def _discover(self, found: APIServiceCondition) -> None:
        entry = {"version": self.version, "freshness": "Stale"}
        if found.status == "True":
            try:
                entry = {**await self._ask(), "freshness": "Current"}
            except (OSError, TimeoutError, ssl.SSLError, Unresolved, ValueError, RecursionError) as error:
                log.warning("discovery of apiservice %s: %s", self.name, error or type(error).__name__)
        if entry != self.entry:
            self.entry = entry
            self._registry.generation += 1
        if self.refresh is not None:
            await self.refresh()

    async def _ask(self) -> dict[str, Any]:
        """Fetch its discovery. Raises ValueError for an invalid response."""
        answer = await self.fetch("/apis", Accept=discovery.ACCEPT)
        if answer.status == 200 and discovery.is_aggregated(answer.headers.get("content-type", "")):
            versions = discovery.from_aggregated(answer.body)
            return versions.get((self.group, self.version), {"version": self.version})
        if answer.status == 503:
            raise ValueError(f"service {self.namespace}/{self.service} returned non-success response code: 503")
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        answer = await self.fetch(path, Accept="application/json")
        if answer.status != 200:
            raise ValueError(f"failed to download legacy discovery for {path}: {answer.status}")
        return discovery.from_resource_list(answer.body, self.version)
