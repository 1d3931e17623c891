"""The HTTP request of an `httpGet` action (of a probe or a hook), as upstream's kubelet would write it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import urljoin, urlsplit

from pybernetes.api.core.v1 import HTTPGetAction
from pybernetes.version import GIT_VERSION

from ..runtime.types import AnyContainer
from .dialing import address
from .ports import resolve_port

_SAFE = frozenset(range(0x21, 0x7F)) - frozenset(b'"<>\\^`{|}')


@dataclass(frozen=True, slots=True)
class HTTPRequest:
    """A GET of `scheme://host:port/target`."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query."""
    headers: dict[str, list[str]] = field(default_factory=dict)
    """By canonical name. `Host` is the name to ask for, if not the address."""

    @property
    def authority(self) -> str:
        """Host and port as in the URL."""
        return address(self.host, self.port)

    @property
    def url(self) -> str:
        """How messages name the request."""
        return f"{self.scheme}://{self.authority}{self.target}"

    def head(self) -> bytes:
        """The bytes to send."""
        host = "".join(self.headers.get("Host") or ()[:1]) or self.authority
        lines = [f"GET {self.target or '/'} HTTP/1.1", f"Host: {host}"]
        agents = self.headers.get("User-Agent") or [""]
        if agents[0]:
            lines.append(f"User-Agent: {agents[0]}")
        lines.append("Connection: close")
        for name in sorted(self.headers.keys() - {"Host", "User-Agent", "Connection"}):
            lines += [f"{name}: {value}" for value in self.headers[name]]
        return "\r\n".join([*lines, "", ""]).encode("utf-8", "replace")

    def redirected(self, location: str) -> HTTPRequest:
        """The request that follows a `Location`. Raises ValueError for one that is no HTTP URL."""
        parts = urlsplit(urljoin(self.url, location))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f'unsupported protocol scheme "{parts.scheme}"')
        headers = (
            {**self.headers, "Referer": [self.url]}
            if self.scheme == "http" or parts.scheme == "https"
            else ({name: values for name, values in self.headers.items() if name != "Referer"})
        )
        if urlsplit(location).netloc:
            headers.pop("Host", None)
        target = _escaped(parts.path or "/") + (f"?{_escaped(parts.query)}" if parts.query else "")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return replace(self, scheme=parts.scheme, host=parts.hostname, port=port, target=target, headers=headers)


def request_for(action: HTTPGetAction, container: AnyContainer, pod_ip: str, purpose: str) -> HTTPRequest:
    """The request; `purpose` (probe, lifecycle) is in its User-Agent. Raises ProbeError for an invalid port."""
    headers: dict[str, list[str]] = {}
    for header in action.http_headers or ():
        headers.setdefault(canonical(header.name or ""), []).append(header.value or "")
    headers.setdefault("User-Agent", [f"kube-{purpose}/{'.'.join(GIT_VERSION.removeprefix('v').split('.')[:2])}"])
    if not headers.setdefault("Accept", ["*/*"])[0]:
        del headers["Accept"]
    path = (action.path or "").partition("#")[0]
    target = _escaped(path if path.startswith("/") or not path else f"/{path}")
    return HTTPRequest(
        scheme=(action.scheme or "http").lower(),
        host=action.host or pod_ip,
        port=resolve_port(action.port, container),
        target=target,
        headers=headers,
    )


def canonical(name: str) -> str:
    """A header's name as Go writes it: `x-foo` is `X-Foo`."""
    return "-".join(part[:1].upper() + part[1:].lower() for part in name.split("-"))


def _escaped(text: str) -> str:
    return "".join(chr(each) if each in _SAFE else f"%{each:02X}" for each in text.encode("utf-8", "replace"))
