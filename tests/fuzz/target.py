"""Sends anything to a server over one connection, and checks that the answer is an answer."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import yaml

from pybernetes.api.resources import Resource
from tools import ApiServer

TOO_LARGE = b"Too large resource version"
"""The one failure that a client can ask for: upstream answers a resourceVersion of the future with 504."""

CONNECTIONS = ("/proxy", "/exec", "/attach", "/portforward", "/log")
"""Paths that are proxied to servers that may not exist: 500, 502, 503 as upstream."""


@dataclass(frozen=True)
class Reply:
    status: int
    media: str
    body: bytes = field(repr=False)


class Target:
    """A server and a connection to it."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._address = urlsplit(server.url)
        self._tls = ssl.create_default_context(cafile=str(server.ca_file))
        self._connection: http.client.HTTPSConnection | None = None

    def namespace(self, name: str) -> None:
        """Make a namespace, if it is not there yet."""
        assert self.send("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": name}}).encode()).status < 500

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Reply:
        """Send a request and check the answer: no fault of the server, and a Status if it is a refusal.

        The path may hold anything but blanks and control characters. Of a watch only the beginning is read.
        """
        headers = {"Authorization": f"Bearer {self._server.token}", **(headers or {})}
        response = self._response(method, path, body, headers)
        media = response.headers.get("Content-Type", "")
        streams = response.headers.get("Transfer-Encoding") == "chunked"
        reply = Reply(response.status, media, b"" if streams else response.read())
        if streams or response.will_close:
            self.close()
        check(reply, method, path)
        return reply

    def _response(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        if self._connection is not None:
            try:
                self._connection.request(method, path, body, headers)
                return self._connection.getresponse()
            except (http.client.HTTPException, OSError):  # closed while the next example was made, which may take long
                self.close()
        address = self._address
        self._connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=self._tls, timeout=30
        )
        self._connection.request(method, path, body, headers)
        return self._connection.getresponse()

    def raw(self, data: bytes) -> bytes:
        """Send bytes that need not be HTTP; what comes back until the server closes or falls silent."""
        with (
            socket.create_connection((self._address.hostname, self._address.port), timeout=30) as plain,
            self._tls.wrap_socket(plain, server_hostname=self._address.hostname) as connection,
        ):
            received = b""
            with contextlib.suppress(TimeoutError, ConnectionError, ssl.SSLError):  # it may close before it has all
                connection.sendall(data)
                connection.settimeout(0.3)
                while part := connection.recv(65536):
                    received += part
            return received


def check(reply: Reply, method: str, path: str) -> None:
    """An answer that blames no one but the client, and says so as a Status."""
    if TOO_LARGE not in reply.body and not any(each in path for each in CONNECTIONS):
        assert reply.status < 500, reply.body
    if reply.status < 400 or method == "HEAD" or not reply.media.startswith("application/"):
        return
    status = yaml.safe_load(reply.body) if reply.media == "application/yaml" else json.loads(reply.body)
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", reply.status)
    assert isinstance(status["message"], str)


def path_of(resource: Resource, name: str = "", subresource: str = "") -> str:
    """The path of a collection, an object or its subresource."""
    namespace = "/namespaces/fuzz" if resource.namespaced else ""
    return "/".join(part for part in (f"{resource.path}{namespace}/{resource.plural}", name, subresource) if part)
