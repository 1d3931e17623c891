"""Health check node ports: a load balancer asks each node whether it has endpoints of a Service.

Only Services of type LoadBalancer with external traffic policy Local have one. The answer is 200 while the node has an
endpoint and 503 otherwise, with kube-proxy's JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable

from pybernetes.client.keys import Key

from .serving import Answer, PlainServer

RETRY = 5.0
"""Seconds between two tries to listen on a port that something else has."""
log = logging.getLogger(__name__)


class HealthChecks:
    """A server for each health check node port."""

    def __init__(
        self, healthy: Callable[[], bool] = lambda: True, addresses: tuple[str, ...] = ("0.0.0.0", "::")
    ) -> None:
        self._healthy = healthy
        self._addresses = addresses
        self._ports: dict[Key, int] = {}
        self._counts: dict[Key, int] = {}
        self._servers: dict[Key, asyncio.Task[None]] = {}

    def put(self, key: Key, port: int, count: int) -> None:
        """Answers for a Service on a port (0 = no more), with so many endpoints on this node."""
        self._counts[key] = count
        if self._ports.get(key, 0) == port:
            return
        if running := self._servers.pop(key, None):
            running.cancel()
        if port:
            self._ports[key] = port
            self._servers[key] = asyncio.create_task(self._serve(key, port))
        else:
            self._ports.pop(key, None)
            self._counts.pop(key, None)

    async def close(self) -> None:
        """Answers no more."""
        for task in self._servers.values():
            task.cancel()
        await asyncio.gather(*self._servers.values(), return_exceptions=True)
        self._servers.clear()

    async def _serve(self, key: Key, port: int) -> None:
        server, problem = PlainServer(lambda path: self._answer(key)), ""
        try:
            while True:
                try:
                    await server.start(self._addresses, port)
                    break
                except OSError as error:
                    if str(error) != problem:
                        problem = str(error)
                        log.error("service %s/%s: cannot listen on health check node port %d: %s", *key, port, error)
                    await asyncio.sleep(RETRY)
            await asyncio.Event().wait()
        finally:
            await server.stop()

    def _answer(self, key: Key) -> Answer:
        count, healthy = self._counts.get(key, 0), self._healthy()
        body = {
            "service": {"namespace": key.namespace, "name": key.name},
            "localEndpoints": count,
            "serviceProxyHealthy": healthy,
        }
        return Answer(
            200 if count and healthy else 503,
            "application/json",
            json.dumps(body).encode(),
            {"X-Content-Type-Options": "nosniff", "X-Load-Balancing-Endpoint-Weight": str(count)},
        )
