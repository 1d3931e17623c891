"""Parses an Ingress's annotations, by the names that ingress-nginx gave them (pure).

An invalid or unsupported annotation is a problem of that Ingress with a text for its events, and has no effect.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pybernetes.api.addresses import IPNetwork

PREFIX = "nginx.ingress.kubernetes.io/"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"(\d{1,12})([kmg]?)", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9.:_\[\]-]{1,255}")
_VISIBLE = re.compile(r"[\x21-\x7e]{1,2048}")
_LONGEST = 86400.0


class Options(msgspec.Struct, frozen=True):
    """How requests of an Ingress are treated."""

    rewrite_target: str = ""
    use_regex: bool = False
    app_root: str = ""
    ssl_redirect: bool = True
    """Plain requests for a host with TLS are redirected."""
    force_ssl_redirect: bool = False
    redirect: str = ""
    redirect_code: int = 302
    body_size: int = 0
    """Bytes of a request's body; 0 = any."""
    connect_timeout: float = 5.0
    read_timeout: float = 60.0
    """Seconds between two pieces of an answer, the first included."""
    send_timeout: float = 60.0
    """Seconds in which the endpoint must take something of the request's body."""
    https_backend: bool = False
    upstream_host: str = ""
    """The Host that endpoints see; empty: the client's."""
    forwarded_prefix: str = ""
    sources: tuple[IPNetwork, ...] | None = None
    """Clients that are served; None: all."""


def parse(annotations: Mapping[str, str]) -> tuple[Options, list[str]]:
    """The options, and what is wrong with the annotations."""
    found: dict[str, Any] = {}
    problems: list[str] = []
    for name in sorted(annotations):
        if not name.startswith(PREFIX):
            continue
        short, text = name.removeprefix(PREFIX), annotations[name].strip()
        read = _KNOWN.get(short)
        if read is None:
            problems.append(f"annotation {name} is not supported and has no effect")
            continue
        try:
            found |= read(text)
        except ValueError as error:
            problems.append(f"annotation {name}: {error}; it has no effect")
    permanent, temporal, code = found.pop("permanent", ""), found.pop("temporal", ""), found.pop("code", 301)
    if permanent or temporal:
        found |= {"redirect": permanent or temporal, "redirect_code": code if permanent else 302}
    return Options(**found), problems


def _flag(field: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return {field: text.lower() == "true"}

    return read


def _seconds(field: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        digits = text.removesuffix("s")
        if not digits.isdecimal() or not 0 < int(digits) <= _LONGEST:
            raise ValueError(f"{text!r} is not a number of seconds from 1 to {_LONGEST:.0f}")
        return {field: float(digits)}

    return read


def _path(field: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        if not _VISIBLE.fullmatch(text) or not text.startswith("/"):
            raise ValueError(f"{text!r} is not a path: it begins with / and has neither blanks nor control characters")
        return {field: text}

    return read


def _rewrite(text: str) -> dict[str, Any]:
    if not _VISIBLE.fullmatch(text):
        raise ValueError(f"{text!r} has blanks, control characters or none at all")
    return {"rewrite_target": text}


def _url(field: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        if not _VISIBLE.fullmatch(text) or not text.startswith(("http://", "https://", "/")):
            raise ValueError(f"{text!r} is not a URL")
        return {field: text}

    return read


def _code(text: str) -> dict[str, Any]:
    if text not in ("300", "301", "302", "303", "307", "308"):
        raise ValueError(f"{text!r} is not the code of a redirect")
    return {"code": int(text)}


def _size(text: str) -> dict[str, Any]:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a size such as 8m")
    return {"body_size": int(found[1]) * _UNITS[found[2].lower()]}


def _protocol(text: str) -> dict[str, Any]:
    if text.upper() not in ("HTTP", "HTTPS"):
        raise ValueError(f"{text!r} is not supported: HTTP and HTTPS are (version 1.1)")
    return {"https_backend": text.upper() == "HTTPS"}


def _host(text: str) -> dict[str, Any]:
    if not _HOST.fullmatch(text):
        raise ValueError(f"{text!r} is not a host")
    return {"upstream_host": text}


def _sources(text: str) -> dict[str, Any]:
    try:
        return {"sources": tuple(ipaddress.ip_network(each.strip(), strict=False) for each in text.split(","))}
    except ValueError:
        # Without this an allowlist that cannot be read would let in all clients.
        return {"sources": ()}


_KNOWN: dict[str, Callable[[str], dict[str, Any]]] = {
    "app-root": _path("app_root"),
    "backend-protocol": _protocol,
    "force-ssl-redirect": _flag("force_ssl_redirect"),
    "permanent-redirect": _url("permanent"),
    "permanent-redirect-code": _code,
    "proxy-body-size": _size,
    "proxy-connect-timeout": _seconds("connect_timeout"),
    "proxy-read-timeout": _seconds("read_timeout"),
    "proxy-send-timeout": _seconds("send_timeout"),
    "rewrite-target": _rewrite,
    "ssl-redirect": _flag("ssl_redirect"),
    "temporal-redirect": _url("temporal"),
    "upstream-vhost": _host,
    "use-regex": _flag("use_regex"),
    "whitelist-source-range": _sources,
    "allowlist-source-range": _sources,
    "x-forwarded-prefix": _path("forwarded_prefix"),
}
SUPPORTED = tuple(_KNOWN)
