"""`url` and `isURL`: absolute URLs and absolute paths, as an HTTP request names them."""

from __future__ import annotations

import re
from urllib.parse import quote as percent
from urllib.parse import unquote, unquote_plus

from ...gocompat.quote import quote
from ..functions import Library, function, method
from ..types import BOOL, STRING, Type, list_of, map_of
from ..values import EvaluationError, Opaque

URL = Type("object", "kubernetes.URL", fields={})
TYPES = {URL.name: URL}


class URLValue(Opaque):
    """The parts of a URL."""

    __slots__ = ("host", "path", "query", "scheme", "text")
    cel_type = URL

    def __init__(self, text: str, scheme: str, host: str, path: str, query: str) -> None:
        self.text, self.scheme, self.host, self.path, self.query = text, scheme, host, path, query

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URLValue) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})(.{0,2})", re.DOTALL)
_PORT = re.compile(r"(?::\d*)?")
_PATH_SAFE = "/:@&=+$,;!'()*~-._"


def _parse(text: str) -> URLValue:
    try:
        return parse_url(text)
    except ValueError as error:
        raise EvaluationError(f"URL parse error during conversion from string: parse {quote(text)}: {error}") from None


def parse_url(text: str) -> URLValue:
    """An absolute URL or path. Raises ValueError in Go's words."""
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise ValueError("net/url: invalid control character in URL")
    if not text:
        raise ValueError("empty url")
    whole = text
    text, _, _fragment = text.partition("#")
    scheme, rest = "", text
    match = _SCHEME.fullmatch(text)
    if match:
        scheme, rest = match[1].lower(), match[2]
    elif text.startswith(":"):
        raise ValueError("missing protocol scheme")
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:  # something like mailto:a@b
            return URLValue(whole, scheme, "", "", query)
        raise ValueError("invalid URI for request")
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = _host(authority)
    bad = _PERCENT.search(rest)
    if bad:
        raise ValueError(f"invalid URL escape {quote('%' + bad[1])}")
    return URLValue(whole, scheme, host, rest, query)


def _host(authority: str) -> str:
    _, _, host = authority.rpartition("@")
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise ValueError("missing ']' in host")
        if not _PORT.fullmatch(host[end + 1 :]):
            raise ValueError(f"invalid port {quote(host[end + 1 :])} after host")
        return unquote(host)
    _, colon, port = host.rpartition(":")
    if colon and not port.isdigit() and port:
        raise ValueError(f"invalid port {quote(':' + port)} after host")
    for char in host:
        if char in ' "<>\\^`{|}':
            raise ValueError(f"invalid character {quote(char)} in host name")
    return unquote(host)


def _hostname(url: URLValue) -> str:
    if url.host.startswith("["):
        return url.host[1 : url.host.rfind("]")]
    return url.host.rpartition(":")[0] if ":" in url.host else url.host


def _port(url: URLValue) -> str:
    rest = url.host[url.host.rfind("]") + 1 :] if url.host.startswith("[") else url.host
    return rest.rpartition(":")[2] if ":" in rest else ""


def _escaped_path(url: URLValue) -> str:
    if re.fullmatch(r"(?:[A-Za-z0-9\-._~$&+,/:;=@!'()*\[\]]|%[0-9A-Fa-f]{2})*", url.path):
        return url.path
    return percent(unquote(url.path), safe=_PATH_SAFE)


def _query(url: URLValue) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        if _PERCENT.search(key) or _PERCENT.search(value):
            continue
        found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found


def _is(text: str) -> bool:
    try:
        parse_url(text)
    except ValueError:
        return False
    return True


def uri_problem(text: str) -> str | None:
    """Why a text is no URI, in Go's words."""
    try:
        parse_url(text)
    except ValueError as error:
        return f"parse {quote(text)}: {error}"
    return None


LIBRARY: Library = {
    "url": [function("string_to_url", (STRING,), URL, _parse)],
    "isURL": [function("is_url_string", (STRING,), BOOL, _is)],
    "getScheme": [method("url_get_scheme", (URL,), STRING, lambda url: url.scheme)],
    "getHost": [method("url_get_host", (URL,), STRING, lambda url: url.host)],
    "getHostname": [method("url_get_hostname", (URL,), STRING, _hostname)],
    "getPort": [method("url_get_port", (URL,), STRING, _port)],
    "getEscapedPath": [method("url_get_escaped_path", (URL,), STRING, _escaped_path)],
    "getQuery": [method("url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query)],
}
