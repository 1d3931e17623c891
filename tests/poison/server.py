"""Clients of the poisoned cluster: one that sends requests, and one that holds a watch open on every resource."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from pybernetes.client.config import Config

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PATIENCE = 60.0


class Requests:
    """Sends one request after another over one connection, and counts the status codes."""

    def __init__(self, config: Config) -> None:
        address = urlsplit(config.server)
        assert address.hostname
        self._connection = http.client.HTTPSConnection(
            address.hostname, address.port, context=config.tls(), timeout=PATIENCE
        )
        self.codes: Counter[int] = Counter()
        self.faults: list[str] = []
        """Requests that were answered with a 5xx."""

    def __call__(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> tuple[int, Any]:
        raw = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": accept}
        self._connection.request(method, path, raw, headers)
        response = self._connection.getresponse()
        data = response.read()
        self.codes[response.status] += 1
        if response.status >= 500:
            self.faults.append(f"{method} {path}: {response.status} {data[:500]!r} for {(raw or b'')[:2000]!r}")
        return response.status, json.loads(data) if data[:1] in b"{[" else data

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


class Watches:
    """A plain watch and a Table watch on each path, in a thread of their own; `ended` names those that ended."""

    def __init__(self, config: Config, paths: list[str]) -> None:
        self._config, self._paths = config, paths
        self.events: Counter[str] = Counter()
        self.begun = 0
        self.ended: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="watches", daemon=True)
        self._stopping = False

    def __enter__(self) -> Watches:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join()

    def _cancel(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def _run(self) -> None:
        async def all_of_them() -> None:
            tls = self._config.tls()
            watches = [(path, accept) for path in self._paths for accept in ("application/json", TABLE)]
            await asyncio.gather(*(self._watch(path, accept, tls) for path, accept in watches), return_exceptions=True)

        try:
            self._loop.run_until_complete(all_of_them())
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.close()

    async def _watch(self, path: str, accept: str, tls: Any) -> None:
        address = urlsplit(self._config.server)
        name = f"{path} {'as Table' if accept is TABLE else 'plain'}"
        # A watch that ends by the server's own timeout (30 minutes at least) would be begun again by a client.
        reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=tls, limit=1 << 26)
        request = f"GET {path}?watch=1 HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: {accept}\r\n\r\n"
        writer.write(request.encode())
        try:
            status = await reader.readline()
            self.begun += 1
            if b" 200 " not in status:
                self.ended.append(f"{name}: {status!r}")
                return
            while data := await reader.read(1 << 20):
                self.events[name] += data.count(b'{"type":"')
                if b'"type":"ERROR"' in data:
                    self.ended.append(f"{name}: {data[data.index(b'ERROR') :][:500]!r}")
            if not self._stopping:
                self.ended.append(f"{name}: the server closed it")
        finally:
            writer.close()
