"""Requests as the user of a `Config`: credentials, retries that the server asks for, exceptions for refusals."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec

from pybernetes.api import errors
from pybernetes.api.resources import Resource
from pybernetes.trace import recorder
from pybernetes.version import GIT_VERSION

from .clock import Clock, SystemClock
from .config import Config, load_identity
from .exec_credentials import ExecCredential, ExecCredentials
from .http import REQUEST_TIMEOUT, Headers, HTTPClient, Response, Stream
from .metrics import Counter, Histogram
from .ratelimit import TokenBucket

JSON = "application/json"
MAX_RETRIES = 10  # client-go's, for answers with Retry-After
TOKEN_FILE_AGE = 60.0
REQUESTS = Counter(
    "rest_client_requests_total",
    "[ALPHA] Requests to API servers, by status code, method and host.",
    ("code", "host", "method"),
)
DURATIONS = Histogram(
    "rest_client_request_duration_seconds",
    "[ALPHA] Seconds for requests to API servers, by method and host.",
    (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0),
    ("host", "verb"),
)
log = logging.getLogger(__name__)


class Transport:
    """One server, one user; shared by every `Client` made from it."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        qps: float = 0.0,
        burst: int = 0,
        limit: int = 64,
        replay: bool = False,
    ) -> None:
        """`replay` is for servers that may be sent any request twice."""
        self.config = config
        self.clock = clock or SystemClock()
        hostname = config.tls_server_name or None
        self.http = HTTPClient(config.server, config.tls(), server_hostname=hostname, limit=limit, replay=replay)
        self._bucket = TokenBucket(qps, burst or max(1, int(qps)), self.clock) if qps > 0 else None
        self._token = config.token
        self._token_until = 0.0
        plugin = None if config.token or config.token_file else config.exec_plugin
        self._exec = ExecCredentials(plugin, self.clock) if plugin else None
        self._certificate: tuple[bytes, bytes] = (b"", b"")
        """The client certificate and key of the credential plugin that new connections are made with."""

    async def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes = b"",
        headers: Headers | None = None,
        within: float | None = REQUEST_TIMEOUT,
    ) -> Response:
        """Send; comes back later as often as the server asks for it; raises an `errors.APIError` for a refusal."""
        for attempt in range(MAX_RETRIES + 1):
            if self._bucket:
                await self._bucket.take()
            credential = await self._plugin_credential()
            sent = await self._headers(headers, body, credential)
            begun = time.monotonic()
            response = await self.http.request(method, target, sent, body, within)
            REQUESTS.inc(str(response.status), self.http.host_header, method)
            DURATIONS.observe(time.monotonic() - begun, self.http.host_header, method)
            if response.status < 300:
                return response
            if response.status == 401:
                self._refused(credential)
            delay = _retry_after(response.status, response.headers)
            if delay is None or attempt == MAX_RETRIES:
                break
            log.debug("%s %s: %d, again in %g s", method, target, response.status, delay)
            await self.clock.sleep(delay)
        raise error_of(response.status, response.headers, response.body)

    async def stream(self, method: str, target: str, *, headers: Headers | None = None) -> Stream:
        """Send, and return the answer as it comes; raises for a refusal."""
        if self._bucket:
            await self._bucket.take()
        credential = await self._plugin_credential()
        stream = await self.http.stream(method, target, await self._headers(headers, b"", credential))
        REQUESTS.inc(str(stream.status), self.http.host_header, method)
        if stream.status == 401:
            self._refused(credential)
        if stream.status >= 300:
            try:
                body = await stream.read()
            finally:
                stream.close()
            raise error_of(stream.status, stream.headers, body)
        return stream

    def use_certificate(self, certificate: bytes, key: bytes) -> None:
        """Use another client certificate (PEM), on connections that are made from now on."""
        if self.http.tls is not None:
            load_identity(self.http.tls, certificate, key)

    async def close(self) -> None:
        """Close all connections."""
        if self._exec:
            await self._exec.close()
        await self.http.close()

    async def headers_for(self, body: bytes) -> Headers:
        """The headers of a request with this body, credentials included."""
        return await self._headers(None, body, await self._plugin_credential())

    async def _headers(
        self, headers: Headers | None, body: bytes, credential: ExecCredential | None = None
    ) -> dict[str, str | Sequence[str]]:
        result: dict[str, str | Sequence[str]] = {"Accept": JSON}
        if body:
            result["Content-Type"] = JSON
        config = self.config
        if config.token or config.token_file:
            result["Authorization"] = f"Bearer {self._bearer()}"
        elif credential:
            if credential.token:
                result["Authorization"] = f"Bearer {credential.token}"
        elif config.username:
            pair = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
            result["Authorization"] = f"Basic {pair}"
        if config.impersonate_user:
            result["Impersonate-User"] = config.impersonate_user
            if config.impersonate_groups:
                result["Impersonate-Group"] = config.impersonate_groups
        if headers:
            result.update(headers)
        trace = recorder.header()
        if trace:
            result["traceparent"] = trace  # the last one: what is before it is the same in every such request
        return result

    def _bearer(self) -> str:
        config = self.config
        if config.token_file and self.clock.monotonic() >= self._token_until:
            try:
                self._token = _read(config.token_file)
            except OSError as error:
                if not self._token:
                    raise
                log.warning("the token file cannot be read, the last token is used: %s", error)
            self._token_until = self.clock.monotonic() + TOKEN_FILE_AGE
        return self._token

    async def _plugin_credential(self) -> ExecCredential | None:
        """The credential of the plugin, if there is one; its certificate is used from the next connection on."""
        if self._exec is None:
            return None
        credential = await self._exec.get()
        if credential.certificate and self._certificate != (credential.certificate, credential.key):
            self.use_certificate(credential.certificate, credential.key)
            self.http.retire_connections()  # they were made with the old certificate
            self._certificate = (credential.certificate, credential.key)
        return credential

    def _refused(self, credential: ExecCredential | None) -> None:
        if self._exec and credential:
            self._exec.refused(credential)


def _read(file: str) -> str:
    """Small and local: not worth a thread."""
    return Path(file).read_text().strip()


def user_agent(program: str, component: str = "") -> str:
    """The User-Agent; the server takes the part before the slash as the field manager."""
    return f"{program}/{GIT_VERSION} pybernetes" + (f"/{component}" if component else "")


def path(resource: Resource, namespace: str | None, name: str = "", subresource: str = "") -> str:
    """The URL's path of a collection, an object or a part of one."""
    result = resource.path
    if resource.namespaced and namespace:
        result += f"/namespaces/{quote(namespace, safe='')}"
    result += f"/{resource.plural}"
    if name:
        result += f"/{quote(name, safe=':')}"
    return f"{result}/{subresource}" if subresource else result


def with_query(target: str, query: Mapping[str, str | int | bool | None]) -> str:
    """A path and the parameters that are set."""
    pairs = [
        (name, ("true" if value else "false") if isinstance(value, bool) else str(value))
        for name, value in query.items()
        if value is not None and value != ""
    ]
    return f"{target}?{urlencode(pairs)}" if pairs else target


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> errors.APIError:
    """The exception for a refusal; something between us and the server may not speak Status."""
    try:
        found = msgspec.json.decode(body)
        if isinstance(found, dict) and found.get("kind") == "Status":
            found.setdefault("code", status)
            return errors.from_status(found)
    except msgspec.DecodeError:
        pass
    text = body[:2048].decode("utf-8", "replace").strip()
    if status == 404:  # a path that no group has is answered in plain text
        text = errors.PathNotFound().message
    reason = _REASONS.get(status, "InternalError" if status >= 500 else "")
    found = {"message": text or f"the server answered {status}", "reason": reason, "code": status}
    if (delay := _retry_after(status, headers)) is not None:
        found["details"] = {"retryAfterSeconds": int(delay)}
    return errors.from_status(found)


_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def _retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """As client-go: 429 and 5xx with a Retry-After of whole seconds."""
    text = headers.get("retry-after", "")
    return float(text) if (status == 429 or status >= 500) and text.isdecimal() else None
