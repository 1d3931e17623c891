"""A plain HTTPS client for tests that look at the wire: status, headers and body as they are."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tools import ApiServer


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    warnings: list[str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))


class Client:
    """One server, one token. Bodies that are not bytes are sent as JSON."""

    def __init__(self, server: ApiServer, token: str | None = None) -> None:
        self.server = server
        self.address = urlsplit(server.url)
        self.token = server.token if token is None else token

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.server.ca_file))
        assert self.address.hostname
        return http.client.HTTPSConnection(self.address.hostname, self.address.port, context=context, timeout=30)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = self.connect()
        try:
            connection.request(method, path, self._body(body), self._headers(body, headers))
            response = connection.getresponse()
            warnings = response.headers.get_all("Warning") or []
            return Answer(response.status, dict(response.headers.items()), response.read(), warnings)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self("POST", path, body, **headers)

    def put(self, path: str, body: Any, **headers: str) -> Answer:
        return self("PUT", path, body, **headers)

    def delete(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self("DELETE", path, body, **headers)

    def patch(self, path: str, body: Any, kind: str = "merge") -> Answer:
        media = {
            "merge": "application/merge-patch+json",
            "json": "application/json-patch+json",
            "strategic": "application/strategic-merge-patch+json",
            "apply": "application/apply-patch+yaml",
        }[kind]
        return self("PATCH", path, body, Content_Type=media)

    def namespace(self, prefix: str = "t-") -> str:
        """A new namespace, and the path of its core resources."""
        made = self.post("/api/v1/namespaces", {"metadata": {"generateName": prefix}})
        assert made.status == 201, made.body
        return str(made.json["metadata"]["name"])

    def watch(self, path: str) -> Watching:
        return Watching(self, path)

    def _headers(self, body: Any, extra: dict[str, str]) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        return {**headers, **{name.replace("_", "-"): value for name, value in extra.items()}}

    def _body(self, body: Any) -> bytes | None:
        return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()


class Watching:
    """A watch as a context manager and an iterator of events."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self._path = path

    def __enter__(self) -> Watching:
        self._connection = self._client.connect()
        self._connection.request("GET", self._path, headers=self._client._headers(None, {}))
        self.response = self._connection.getresponse()
        assert self.response.status == 200, self.response.read()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while line := self.response.readline():
            yield json.loads(line)

    def take(self, count: int) -> list[dict[str, Any]]:
        """The next events; fails if the server takes longer than the connection's timeout."""
        return [next(iter(self)) for _ in range(count)]
