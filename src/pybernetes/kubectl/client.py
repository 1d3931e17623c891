"""Requests to the API server: JSON in and out, a Status as an exception, lists in chunks, watches as iterators."""

from __future__ import annotations

import sys
import time

from pybernetes.kubectl import data
from pybernetes.kubectl.errors import CLIError, ConnectionFailed, StatusError
from pybernetes.kubectl.transport import Transport
from pybernetes.kubectl.verbose import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pybernetes.kubectl.restconfig import RestConfig
    from pybernetes.kubectl.transport import Response

_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
_RETRIES = 10
"""How often a request is sent again that the server was too busy for, as in client-go."""
PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


def escape(text: str) -> str:
    """A value for a query or a path."""
    return "".join(char if char in _SAFE else "".join(f"%{byte:02X}" for byte in char.encode()) for char in text)


def query(parameters: dict[str, Any]) -> str:
    """A query string with its keys sorted; None and empty text are left out."""
    pairs = []
    for key in sorted(parameters):
        value = parameters[key]
        for each in value if isinstance(value, list) else [value]:
            if each is None or each == "" or each is False:
                continue
            text = "true" if each is True else str(each)
            pairs.append(f"{key}={escape(text).replace('%20', '+')}")
    return "?" + "&".join(pairs) if pairs else ""


class Client:
    """One server as one user."""

    def __init__(self, config: RestConfig, log: Log, user_agent: str, warnings: Warnings | None = None) -> None:
        self.config = config
        self.log = log
        self.user_agent = user_agent
        self.warnings = warnings or Warnings()
        self.unlogged: list[tuple[str, str]] = []
        """Headers of every request that -v does not show, as upstream's does not."""
        self.transport = Transport(config, log)
        self._authorization = ""
        self._prepared = False

    def clone(self) -> Client:
        """The same client on another connection, for a thread."""
        other = Client(self.config, self.log, self.user_agent, self.warnings)
        other.unlogged = self.unlogged
        other.transport = self.transport.clone()
        other._authorization, other._prepared = self._authorization, self._prepared
        return other

    # -- requests

    def open(
        self,
        method: str,
        path: str,
        parameters: dict[str, Any] | None = None,
        body: Any = None,
        *,
        accept: str = "application/json",
        content_type: str = "application/json",
        headers: list[tuple[str, str]] | None = None,
        timeout: float | None = None,
    ) -> Response:
        """A request; returns a successful response with its body unread. Raises StatusError, ConnectionFailed."""
        response = self.raw(
            method, path, parameters, body, accept=accept, content_type=content_type, headers=headers, timeout=timeout
        )
        if response.status >= 400:
            raise self.status_error(response, method)
        return response

    def raw(
        self,
        method: str,
        path: str,
        parameters: dict[str, Any] | None = None,
        body: Any = None,
        *,
        accept: str = "application/json",
        content_type: str = "application/json",
        headers: list[tuple[str, str]] | None = None,
        timeout: float | None = None,
    ) -> Response:
        """A request; returns the response whatever its code."""
        target = path + (query(parameters) if parameters else "")
        payload = None
        extra = list(headers or ())
        if body is not None:
            payload = body if isinstance(body, bytes) else data.dumps(body).encode("utf-8", "surrogatepass")
            extra.append(("Content-Type", content_type))
        unlogged = self.unlogged
        if not (self.config.disable_compression or self.transport.host.startswith(("127.", "localhost"))):
            unlogged = [*unlogged, ("Accept-Encoding", "gzip")]
        url = self.config.server + target
        limit = self.config.timeout if timeout is None else timeout
        again = bool(self.config.exec_plugin)  # a plugin is asked once more where its credentials are refused
        attempt = 0
        while True:
            sent = [("Accept", accept), *self.headers(), *extra]
            self.log.request(method, url, sent, payload)
            began = time.monotonic()
            try:
                response = self.transport.request(method, target, [*sent, *unlogged], payload, limit)
            except ConnectionFailed:
                self.log.response(method, url, None, time.monotonic() - began, self.transport)
                raise
            response.url = url
            self.log.response(method, url, response, time.monotonic() - began, self.transport)
            for name, value in response.headers:
                if name.lower() == "warning":
                    self.warnings.add(value)
            if again and response.status == 401 and self._refresh():
                again = False
                continue
            seconds = _retry_after(response)
            if seconds is None or attempt == _RETRIES:
                return response
            attempt += 1
            self.content(response, method)
            self.log.retry(url, seconds, attempt)
            time.sleep(seconds)

    def headers(self) -> list[tuple[str, str]]:
        """The headers of every request: who asks."""
        if not self._prepared:
            self._prepare()
        found = [("User-Agent", self.user_agent), *self.config.headers]
        if self._authorization:
            found.append(("Authorization", self._authorization))
        return found

    def _prepare(self, refresh: bool = False) -> None:
        config = self.config
        self._prepared = True
        if config.token_file and not config.token:
            try:
                with open(config.token_file) as file:
                    self._authorization = f"Bearer {file.read().strip()}"
            except OSError as error:
                raise CLIError(f"open {config.token_file}: {(error.strerror or '').lower()}") from None
        elif config.token:
            self._authorization = f"Bearer {config.token}"
        elif config.username or config.password:
            from binascii import b2a_base64

            pair = f"{config.username}:{config.password}".encode()
            self._authorization = "Basic " + b2a_base64(pair, newline=False).decode()
        elif config.exec_plugin or config.auth_provider:
            from pybernetes.kubectl import credentials

            self._authorization = credentials.authorize(config, refresh=refresh)

    def _refresh(self) -> bool:
        before = self._authorization, self.config.cert_data
        self._prepare(refresh=True)
        self.transport.close()
        self.transport = Transport(self.config, self.log)
        return (self._authorization, self.config.cert_data) != before

    def json(
        self, method: str, path: str, parameters: dict[str, Any] | None = None, body: Any = None, **options: Any
    ) -> Any:
        """A request and the JSON of its response."""
        if body is None:
            self.log.no_body(method, path)
        response = self.open(method, path, parameters, body, **options)
        content = self.content(response, method)
        if not content:
            return None
        try:
            return data.loads(content)
        except ValueError as error:
            raise CLIError(f"couldn't get version/kind; json parse error: {error}") from None

    def content(self, response: Response, method: str = "Get") -> bytes:
        """The body of a response. Raises ConnectionFailed."""
        try:
            content = response.read()
        except (OSError, EOFError, ValueError) as error:
            raise self.broken(error, method) from None
        self.log.body(method, response.url, content)
        return content

    def broken(self, error: BaseException, method: str = "Get") -> ConnectionFailed:
        """The error of a connection that ended in the middle of a body."""
        self.transport.close()
        if isinstance(error, TimeoutError):
            return ConnectionFailed(
                "net/http: request canceled (Client.Timeout or context cancellation while reading body)"
            )
        if isinstance(error, EOFError | ValueError):
            return ConnectionFailed("unexpected EOF")
        return self.transport.failure(error, method, self.config.server)

    def status_error(self, response: Response, method: str) -> StatusError:
        """The error of an unsuccessful response, whether or not it has a Status."""
        content = self.content(response, method)
        try:
            status = data.loads(content)
        except ValueError:
            status = None
        if isinstance(status, dict) and status.get("kind") == "Status":
            return StatusError(status)
        return StatusError(_generic(response.status, response.reason, method, content))

    # -- verbs

    def get(self, path: str, parameters: dict[str, Any] | None = None, **options: Any) -> Any:
        """GET."""
        return self.json("GET", path, parameters, **options)

    def post(self, path: str, body: Any, parameters: dict[str, Any] | None = None, **options: Any) -> Any:
        """POST."""
        return self.json("POST", path, parameters, body, **options)

    def put(self, path: str, body: Any, parameters: dict[str, Any] | None = None) -> Any:
        """PUT."""
        return self.json("PUT", path, parameters, body)

    def patch(self, path: str, kind: str, body: Any, parameters: dict[str, Any] | None = None) -> Any:
        """PATCH of a type in PATCH_TYPES."""
        return self.json("PATCH", path, parameters, body, content_type=PATCH_TYPES[kind])

    def delete(self, path: str, options: dict[str, Any] | None = None, parameters: dict[str, Any] | None = None) -> Any:
        """DELETE."""
        return self.json("DELETE", path, parameters, options)

    def list(self, path: str, parameters: dict[str, Any], chunk: int = 500, **options: Any) -> dict[str, Any]:
        """A whole list (or Table), fetched in chunks."""
        asked = {**parameters, "limit": chunk or None}
        found: dict[str, Any] = self.get(path, asked, **options)
        metadata = found.setdefault("metadata", {})
        while metadata.get("continue"):
            more = self.get(path, {**asked, "continue": metadata["continue"]}, **options)
            for key in ("items", "rows"):
                if more.get(key):
                    found[key] = [*(found.get(key) or []), *more[key]]
            metadata["continue"] = (more.get("metadata") or {}).get("continue")
            metadata["resourceVersion"] = (more.get("metadata") or {}).get("resourceVersion", "")
        metadata.pop("continue", None)
        metadata.pop("remainingItemCount", None)
        return found

    def watch(
        self, path: str, parameters: dict[str, Any], timeout: float | None = None, **options: Any
    ) -> Iterator[dict[str, Any]]:
        """The events of a watch, until the server ends it or `--request-timeout` does.

        With a `timeout` of the caller's own, TimeoutError is raised when it is up, also before the server answers.
        """
        try:
            response = self.open("GET", path, {**parameters, "watch": True}, timeout=timeout, **options)
        except ConnectionFailed as error:
            if timeout and error.timed_out:
                raise TimeoutError from None
            raise
        try:
            for line in response.lines():
                if line.strip():
                    yield data.loads(line)
        except (EOFError, ConnectionError, ValueError):
            self.transport.close()
        except TimeoutError:
            if timeout:
                raise
            problem = "net/http: request canceled (Client.Timeout or context cancellation while reading body)"
            self.log.undecodable(problem)
        except OSError as error:
            raise self.broken(error) from None
        finally:
            self.transport.close()


def _retry_after(response: Response) -> int | None:
    """Seconds after which the server wants a request again that it did not serve, or None."""
    if response.status != 429 and response.status < 500:
        return None
    text = response.header("retry-after")
    return int(text) if text.isdecimal() and len(text) < 10 else None


class Warnings:
    """Warning headers, printed once each."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.color = False
        self.silent = False

    def add(self, header: str) -> None:
        """Prints the text of a Warning header on stderr."""
        code, _, rest = header.partition(" ")
        _, _, quoted = rest.partition(" ")
        if code != "299" or not quoted.startswith('"'):
            return
        text = quoted[1 : quoted.rfind('"')].replace('\\"', '"').replace("\\\\", "\\")
        if text in self.seen or self.silent:
            return
        self.seen.add(text)
        sys.stdout.flush()
        sys.stderr.write(f"\033[33;1mWarning:\033[0m {text}\n" if self.color else f"Warning: {text}\n")


_GENERIC = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", ""),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", ""),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Gone", "the requested resource is no longer available"),
    415: ("UnsupportedMediaType", ""),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "an error on the server"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


def _generic(code: int, phrase: str, method: str, content: bytes) -> dict[str, Any]:
    reason, message = _GENERIC.get(
        code, ("", f"the server responded with the status code {code} but did not return more information")
    )
    text = content[:2048].decode("utf-8", "replace").strip()
    if code in (403, 406, 415):
        message = text or "unknown"
    elif code == 500 or (code > 500 and code not in _GENERIC):
        reason = "InternalError"
        shown = data.go_quote(text or "unknown")
        message = f"an error on the server ({shown}) has prevented the request from succeeding"
    return {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}
