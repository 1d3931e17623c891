"""Calls of webhooks that objects describe: by URL or by Service, over TLS that a caBundle vouches for.

Connections are kept for each server and used again. A call is over when its time is, whatever the other side does: it
may hang, send without end, close in the middle or speak no HTTP; each of these is `CallFailed`, with Go's words.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from pybernetes.api.gocompat.quote import quote
from pybernetes.client.http import ConnectionFailed, HTTPClient, TooLarge
from pybernetes.trace import recorder
from pybernetes.version import GIT_VERSION

from ..registry.registry import Registry
from .answers import refusal
from .bundles import client_tls
from .identities import Identities, Identity
from .services import Unresolved, resolve

MAX_ANSWER = 16 << 20  # a patch for the largest object, in base64, and room
_KEPT = 64  # servers whose connections are kept


class CallFailed(Exception):
    """There is no answer; `code` is what the failure counts as."""

    def __init__(self, message: str, code: int = 503) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class WebhookClient:
    """All webhooks that this server calls."""

    def __init__(self, registry: Registry, identities: Identities | None = None) -> None:
        self._registry = registry
        self._identities = identities or Identities()
        self._servers: dict[tuple[str, str], tuple[HTTPClient, Identity]] = {}

    async def post(self, config: Any, body: bytes, within: float) -> bytes:
        """POST JSON to what a WebhookClientConfig describes and return the answer's body. Raises CallFailed."""
        origin, path = _target(config)
        seconds = -(-within // 1)
        target = f"{path}?timeout={seconds:.0f}s"
        shown = f"Post {quote(origin + target)}"
        try:
            http, identity = self._server(origin, config)
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json, */*",
                "User-Agent": f"kube-apiserver-admission/{GIT_VERSION}",
                **identity.headers(),
            }
            if trace := recorder.header():
                headers["traceparent"] = trace
            answer = await http.request("POST", target, headers, body, within)
        except TimeoutError:
            raise CallFailed(f"{shown}: context deadline exceeded") from None
        except (OSError, Unresolved, ssl.SSLError) as error:
            raise CallFailed(f"{shown}: {words(error)}") from None
        if answer.status < 200 or answer.status > 206:
            raise CallFailed(refusal(answer.status, answer.body), answer.status)
        return answer.body

    async def close(self) -> None:
        """Close all connections."""
        for http, _ in self._servers.values():
            await http.close()
        self._servers.clear()

    def _server(self, origin: str, config: Any) -> tuple[HTTPClient, Identity]:
        key = (origin, config.ca_bundle or "")
        found = self._servers.get(key)
        if found is not None:
            return found
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port or 443
        identity = self._identities.of(host, port)
        dial = None
        if config.service is not None:
            reference = config.service

            async def dial() -> tuple[str, int]:
                return await resolve(self._registry, reference.namespace or "", reference.name or "", port)

        http = HTTPClient(origin, _tls(config.ca_bundle, identity), max_body=MAX_ANSWER, dial=dial, replay=True)
        if len(self._servers) >= _KEPT:
            del self._servers[next(iter(self._servers))]  # calls under way go on; idle connections close themselves
        self._servers[key] = (http, identity)
        return http, identity


def _target(config: Any) -> tuple[str, str]:
    """Scheme and authority, and the path."""
    if config.service is not None:
        service = config.service
        return f"https://{service.name}.{service.namespace}.svc:{service.port or 443}", service.path or "/"
    if not config.url:
        raise CallFailed("webhook configuration must have either service or URL", 500)
    parts = urlsplit(config.url)
    return f"{parts.scheme}://{parts.netloc}", parts.path or "/"


def _tls(bundle: str | None, identity: Identity) -> ssl.SSLContext:
    try:
        context = client_tls(bundle)
    except ValueError as error:
        raise CallFailed(str(error), 500) from None
    identity.load(context)
    return context


def words(error: BaseException) -> str:
    """A failure as Go tells it."""
    cause: BaseException = error
    while cause.__cause__ is not None and not isinstance(cause, TimeoutError):
        cause = cause.__cause__
    if isinstance(cause, TooLarge):
        return f"http: response body too large: {cause}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {_certificate(cause)}"
    if isinstance(cause, ssl.SSLError):
        return f"remote error: tls: {cause.reason or cause}"
    if isinstance(cause, ConnectionRefusedError):
        return f"dial tcp {_address(error)}connect: connection refused"
    if isinstance(cause, socket.gaierror):
        return f"dial tcp: lookup {_host(error)}: no such host"
    if isinstance(cause, TimeoutError):
        return f"dial tcp {_address(error)}i/o timeout"
    if isinstance(cause, OSError) and cause.errno and str(error).startswith("cannot connect to "):
        return f"dial tcp {_address(error)}connect: {os.strerror(cause.errno).lower()}"
    if isinstance(error, ConnectionFailed) and "closed the connection" in str(error):
        return "EOF"
    return str(error)


def _certificate(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in (18, 19, 20, 21):
        return "x509: certificate signed by unknown authority"
    if error.verify_code in (9, 10):
        return "x509: certificate has expired or is not yet valid"
    return f"x509: {error.verify_message}"


def _address(error: BaseException) -> str:
    text = str(error).removeprefix("cannot connect to ").partition(": ")[0]
    return f"{text}: "


def _host(error: BaseException) -> str:
    return _address(error).removesuffix(": ").rpartition(":")[0]
