"""A client of one registry server: manifests and blobs over the distribution API (v2), for a thread.

A server that wants to know who asks says so (401); then a token is fetched where it points to, or the password is sent
to it, and the request is made again. Redirects are followed, without the password when they lead to another server. One
that asks for patience (Retry-After) has it, for a minute.
Errors are in containerd's words, since these end up in events that people search for.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from .hosts import Host

MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)
DIAL_TIMEOUT = 30.0
READ_TIMEOUT = 60.0
"""Seconds without a byte."""
LARGEST_MANIFEST = 4 << 20  # what registries take
LARGEST_ANSWER = 1 << 20
REDIRECTS = 10
WITHOUT_HEAD = (400, 403, 405, 501)
"""The responses to HEAD of servers that know only GET; containerd asks anew after 405."""
PATIENCE = 60.0
"""Seconds that one request waits, in all, for a server that says when to come back."""
LEAST_PAUSE = 1.0
USER_AGENT = "pybernetes"
_PARAMETER = re.compile(r'\s*([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')
_SCHEME = re.compile(r"[\s,]*([A-Za-z][A-Za-z0-9-]*)(?:\s+|\s*(?=,)|$)")


class RegistryError(Exception):
    """An error of one server. `code` is CRI's, `status` HTTP's (0 if there was no answer)."""

    def __init__(self, message: str, code: str = "Unknown", status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status

    @property
    def transient(self) -> bool:
        """Whether it may work a moment later."""
        return self.status in (0, 408, 429, 500, 502, 503, 504) and self.code == "Unknown"


@dataclass(frozen=True)
class Credentials:
    """The credentials of CRI's AuthConfig."""

    username: str = ""
    password: str = ""
    identity_token: str = ""
    """A refresh token of OAuth 2."""
    registry_token: str = ""
    """A bearer token for the registry itself."""

    @property
    def basic(self) -> str:
        """The value of an Authorization header; empty without a name."""
        if not self.username:
            return ""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


@dataclass(frozen=True)
class Manifest:
    """A manifest or an index: the bytes, what they are said to be and what digest is said to be theirs."""

    body: bytes
    media_type: str
    digest: str


class Registry:
    """See the module. `registry` is the host of the image's name, which a mirror gets as `?ns=`.

    `wait` sleeps for some seconds and returns whether the pull was cancelled.
    """

    def __init__(
        self,
        host: Host,
        registry: str,
        repository: str,
        credentials: Credentials | None,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self.host = host
        self.repository = repository
        self._wait = wait
        self._credentials = credentials or Credentials()
        self._authorization = ""
        self._contexts: dict[str, ssl.SSLContext] = {}
        if self._credentials.registry_token:
            self._authorization = f"Bearer {self._credentials.registry_token}"
        own = {registry, "registry-1.docker.io"} if registry == "docker.io" else {registry}
        self._query = "" if host.authority in own else "?" + urlencode({"ns": registry})

    def resolve(self, reference: str) -> Manifest:
        """Resolve a tag or digest, without the bytes if HEAD suffices; the digest may be empty."""
        try:
            with self._ask("HEAD", f"manifests/{reference}", _accepting(MANIFESTS)) as answer:
                return Manifest(b"", _media_type(answer), answer.headers.get("Docker-Content-Digest", ""))
        except RegistryError as error:
            if error.status not in WITHOUT_HEAD:
                raise
        return self.manifest(reference)

    def manifest(self, reference: str, accept: tuple[str, ...] = MANIFESTS) -> Manifest:
        """The manifest or index of a tag or digest."""
        with self._ask("GET", f"manifests/{reference}", _accepting(accept)) as answer:
            body = answer.read(LARGEST_MANIFEST + 1)
            if len(body) > LARGEST_MANIFEST:
                raise RegistryError(f"the manifest of {reference} is larger than {LARGEST_MANIFEST} bytes", "Internal")
            return Manifest(body, _media_type(answer), answer.headers.get("Docker-Content-Digest", ""))

    @contextmanager
    def blob(self, digest: str, start: int = 0) -> Iterator[tuple[http.client.HTTPResponse, int]]:
        """A stream of a blob's bytes, and where it begins: at `start`, or at 0 if the server can only begin there."""
        headers = {"Range": f"bytes={start}-"} if start else {}
        with self._ask("GET", f"blobs/{digest}", headers) as answer:
            begins = 0
            if answer.status == 206:
                found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
                begins = int(found[1]) if found else -1
                if begins != start:
                    raise RegistryError(f"{self.host.authority} sent another part of {digest} than was asked for")
            yield answer, begins

    @contextmanager
    def _ask(self, method: str, path: str, headers: dict[str, str]) -> Iterator[http.client.HTTPResponse]:
        url = f"{self.host.scheme}://{self.host.authority}{self.host.path}/{self.repository}/{path}{self._query}"
        introduced, waited = False, 0.0
        while True:
            sent = dict(headers)
            if self._authorization:
                sent["Authorization"] = self._authorization
            with self._follow(method, url, sent) as (answer, at):
                if answer.status in (200, 206):
                    yield answer
                    return
                # The target of a redirect must not get credentials that are meant for the registry.
                own = urlsplit(at).netloc == self.host.authority
                if answer.status == 401 and own and not introduced and self._authorize(answer):
                    introduced = True
                    continue
                pause, refusal = _retry_after(answer), _refusal(method, at, answer)
            if pause is None or waited + pause > PATIENCE or self._wait(pause):
                raise refusal
            waited += pause

    @contextmanager
    def _follow(self, method: str, url: str, headers: dict[str, str]) -> Iterator[tuple[http.client.HTTPResponse, str]]:
        """The answer, and who gave it."""
        here = urlsplit(url)
        for _ in range(REDIRECTS):
            with self._send(method, url, headers) as answer:
                target = answer.headers.get("Location", "")
                if answer.status not in (301, 302, 303, 307, 308) or not target:
                    yield answer, url
                    return
                url = urljoin(url, target)
            there = urlsplit(url)
            if there.scheme not in ("http", "https") or (here.scheme, there.scheme) == ("https", "http"):
                raise RegistryError(f"{here.netloc} leads from {here.scheme} to {there.scheme}: refused", "Internal")
            if there.netloc != here.netloc:
                headers = {name: value for name, value in headers.items() if name != "Authorization"}
        raise RegistryError(f"stopped after {REDIRECTS} redirects", "Internal")

    @contextmanager
    def _send(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        parts = urlsplit(url)
        connection = self._connect(method, url)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.putrequest(method, path, skip_accept_encoding=True)
            own = self.host.headers if parts.netloc == self.host.authority else {}
            for name, value in [*headers.items(), ("User-Agent", USER_AGENT)]:
                connection.putheader(name, value)
            for name, values in own.items():
                for value in values:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            yield answer
        except (OSError, http.client.HTTPException) as error:
            raise RegistryError(f"failed to do request: {_asked(method, url)}: {_words(error)}") from error
        finally:
            connection.close()

    def _connect(self, method: str, url: str) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        within = self.host.dial_timeout or DIAL_TIMEOUT
        proxy = _proxy(parts.scheme, parts.netloc)
        to, via = (host, port), None
        if proxy is not None and parts.scheme == "https":
            to, via = proxy, (host, port)
        tls = self._tls(parts.netloc) if parts.scheme == "https" else None
        connection = http.client.HTTPConnection(*to, timeout=within)
        if via is not None:
            connection.set_tunnel(*via)
        try:
            connection.connect()
            sock = connection.sock
            if tls is not None:
                connection.sock = sock = tls.wrap_socket(sock, server_hostname=host)
            sock.settimeout(READ_TIMEOUT)
        except ssl.SSLError as error:
            connection.close()
            if self.host.plain_too and parts.netloc == self.host.authority and error.reason in _NO_TLS:
                raise SpeaksPlainHTTP(self.host) from error
            raise RegistryError(f"failed to do request: {_asked(method, url)}: {_words(error)}") from error
        except OSError as error:
            connection.close()
            where = f"[{to[0]}]:{to[1]}" if ":" in to[0] else f"{to[0]}:{to[1]}"
            told = f"dial tcp: lookup {to[0]}: no such host"
            if not isinstance(error, socket.gaierror):
                told = f"dial tcp {where}: {_words(error, 'connect: ')}"
            raise RegistryError(f"failed to do request: {_asked(method, url)}: {told}") from error
        return connection

    def _tls(self, authority: str) -> ssl.SSLContext:
        """Made once for each server: reading all authorities of the machine takes longer than many a request."""
        if authority not in self._contexts:
            # What is set for the host is not for others that it leads to.
            own = self.host if authority == self.host.authority else Host("https", authority)
            self._contexts[authority] = own.tls()
        return self._contexts[authority]

    def _authorize(self, refused: http.client.HTTPResponse) -> bool:
        """Prepares the answer to a 401; whether there is any."""
        offered = challenges(refused.headers.get_all("WWW-Authenticate") or [])
        for kind, parameters in sorted(offered, key=lambda each: each[0] != "bearer"):  # a password is shown last
            if kind == "bearer" and not self._credentials.registry_token:
                self._authorization = f"Bearer {self._token(parameters)}"
                return True
            if kind == "basic" and self._credentials.basic:
                self._authorization = self._credentials.basic
                return True
        return False

    def _token(self, parameters: dict[str, str]) -> str:
        realm = parameters.get("realm", "")
        if urlsplit(realm).scheme not in ("http", "https"):
            raise RegistryError(f"failed to authorize: {self.host.authority} names no realm for tokens: {realm!r}")
        fields = [("service", parameters["service"])] if "service" in parameters else []
        scopes = parameters.get("scope", "").split() or [f"repository:{self.repository}:pull"]
        try:
            if self._credentials.identity_token:
                what = "oauth token"
                wanted = [("grant_type", "refresh_token"), ("refresh_token", self._credentials.identity_token)]
                fields = [*wanted, *fields, ("scope", " ".join(scopes)), ("client_id", USER_AGENT)]
                headers = {"Content-Type": "application/x-www-form-urlencoded"}
                with self._send("POST", realm, headers, urlencode(fields).encode()) as answer:
                    token = _token_in("POST", realm, answer)
            else:
                headers = {"Authorization": self._credentials.basic} if self._credentials.basic else {}
                what = "oauth token" if headers else "anonymous token"
                query = urlencode([*fields, *(("scope", each) for each in scopes)])
                with self._follow("GET", f"{realm}{'&' if '?' in realm else '?'}{query}", headers) as (answer, at):
                    token = _token_in("GET", at, answer)
        except RegistryError as error:
            raise RegistryError(
                f"failed to authorize: failed to fetch {what}: {error}", error.code, error.status
            ) from None
        if not token:
            raise RegistryError(f"failed to authorize: failed to fetch {what}: the answer has no token")
        return token


class SpeaksPlainHTTP(Exception):
    """A registry on loopback that does not speak TLS; `host` is how it can be asked."""

    def __init__(self, host: Host) -> None:
        super().__init__(host.authority)
        self.host = replace(host, scheme="http", plain_too=False)


_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING", "HTTP_REQUEST")


def challenges(headers: list[str]) -> list[tuple[str, dict[str, str]]]:
    """WWW-Authenticate's ways to come in, by kind in lower case, each with its parameters; one header may have many."""
    found: list[tuple[str, dict[str, str]]] = []
    for rest in headers:
        while rest:
            if match := _PARAMETER.match(rest):
                if found:
                    quoted = re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
                    found[-1][1].setdefault(match[1].lower(), quoted)
            elif match := _SCHEME.match(rest):
                found.append((match[1].lower(), {}))
            else:
                break
            rest = rest[match.end() :]
    return found


def _token_in(method: str, url: str, answer: http.client.HTTPResponse) -> str:
    """The token that an answer has, in Docker's or in OAuth's place; empty if it has none."""
    if answer.status != 200:
        raise _refusal(method, url, answer)
    try:
        content = json.loads(answer.read(LARGEST_ANSWER))
        token = content.get("token") or content.get("access_token")
    except (ValueError, AttributeError):
        return ""
    return token if isinstance(token, str) and not any(character.isspace() for character in token) else ""


def _accepting(kinds: tuple[str, ...]) -> dict[str, str]:
    return {"Accept": ", ".join([*kinds, "*/*"])}


def _media_type(answer: http.client.HTTPResponse) -> str:
    return answer.headers.get("Content-Type", "").partition(";")[0].strip()


def _refusal(method: str, url: str, answer: http.client.HTTPResponse) -> RegistryError:
    if answer.status == 404:
        return RegistryError("not found", "NotFound", 404)
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.netloc}{parts.path}"
    text = f"unexpected status from {method} request to {where}: {answer.status} {answer.reason}".rstrip()
    if details := _details(answer):
        text += f": {details}"
    return RegistryError(text, status=answer.status)


def _retry_after(answer: http.client.HTTPResponse) -> float | None:
    """The seconds after which a busy server wants to be asked again; None if it does not say."""
    said = answer.headers.get("Retry-After", "").strip()
    if answer.status not in (429, 503) or not said:
        return None
    if said.isdecimal():
        return max(LEAST_PAUSE, float(said[:9]))
    try:
        return max(LEAST_PAUSE, parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _details(answer: http.client.HTTPResponse) -> str:
    """The error details in the registry's response."""
    try:
        errors = json.loads(answer.read(LARGEST_ANSWER))["errors"]
        told = [f"{str(each['code']).lower()}: {each.get('message', '')}".rstrip(": ") for each in errors]
        return ", ".join(told)[:500]
    except (ValueError, KeyError, TypeError, AttributeError, OSError, http.client.HTTPException):
        return ""


def _asked(method: str, url: str) -> str:
    return f'{method.capitalize()} "{url}"'


def _words(error: BaseException, doing: str = "") -> str:
    """In Go's words, as far as people know them."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason or error}"
    if isinstance(error, TimeoutError):
        return "i/o timeout"
    if isinstance(error, http.client.IncompleteRead):
        return "unexpected EOF"
    if isinstance(error, (http.client.RemoteDisconnected, http.client.BadStatusLine)):
        return "EOF"
    if isinstance(error, OSError) and error.errno:
        return doing + os.strerror(error.errno).lower()
    return str(error) or type(error).__name__


def _proxy(scheme: str, authority: str) -> tuple[str, int] | None:
    """The machine's proxy (HTTPS_PROXY, NO_PROXY); only for HTTPS, which it cannot look into."""
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

    proxies: dict[str, Any] = getproxies_environment()
    if scheme != "https" or not proxies.get("https") or proxy_bypass_environment(authority, proxies):
        return None
    parts = urlsplit(proxies["https"] if "://" in proxies["https"] else f"http://{proxies['https']}")
    return (parts.hostname, parts.port or 3128) if parts.hostname else None
