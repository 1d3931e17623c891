"""The non-resource paths: the index, versions, health, metrics, discovery.

Most of it is answered whatever the method, as upstream's is; what its router serves is for GET alone.
"""

from __future__ import annotations

import platform

import msgspec

from pybernetes.api.errors import MethodNotAllowed, PathNotFound
from pybernetes.net.http import Handler, Request, Response
from pybernetes.version import GIT_VERSION

from .discovery import Discovery
from .health import Health
from .metrics import Metrics, text_of
from .negotiation import output_format
from .pipeline.respond import write
from .zpages import Statusz

_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_WITH_SLASH = ("/api", "/version", "/.well-known/openid-configuration", "/openid/v1/jwks")
"""Paths that are the same with a slash at the end, and so is what is below them."""


class Paths:
    """Finds the handler of a path: an exact match, else the longest prefix that ends in a slash."""

    def __init__(self, health: Health, metrics: Metrics, discovery: Discovery) -> None:
        self._health = health
        self._metrics = metrics
        self._discovery = discovery
        self._exact: dict[str, Handler] = {
            "/": self._index,
            "/version": _version,
            "/metrics": self._metrics_page,
            "/metrics/slis": self._healthchecks_page,
            "/statusz": Statusz(lambda: self.listed),
        }
        self._unlisted: set[str] = {"/"}
        self._only_get: set[str] = {"/version"}
        self._more: list[str] = []
        self._prefixes: dict[str, Handler] = {"/api": discovery, "/apis": discovery}
        for path in health.checks:
            self._prefixes[f"/{path}"] = health

    def add(self, path: str, handler: Handler, *, listed: bool = True, only_get: bool = False) -> None:
        """Serve one more path, and tell of it in the index if it is to be `listed`."""
        self._exact[path] = handler
        if not listed:
            self._unlisted.add(path)
        if only_get:
            self._only_get.add(path)

    def add_folder(self, path: str, handler: Handler, *listed: str) -> None:
        """Serve everything below a path of one part; the index tells of the `listed` ones."""
        self._prefixes[path] = handler
        self._more += listed

    @property
    def countable(self) -> frozenset[str]:
        """Every path that may be counted by itself: all but those of folders and of what is not there."""
        return frozenset((*self._exact, *self._prefixes, *self._more, *self._discovery.paths, *self._health.paths))

    @property
    def listed(self) -> list[str]:
        """The paths that the index lists."""
        exact = set(self._exact) - self._unlisted
        return sorted({*exact, *self._more, *self._discovery.paths, *self._health.paths})

    async def __call__(self, request: Request) -> Response | None:
        path = request.info.path
        if path.endswith("/") and path.startswith(_WITH_SLASH):
            path = path.rstrip("/")
        handler = self._exact.get(path) or self._prefixes.get("/" + path[1:].partition("/")[0])
        if handler is None or request.info.path == "/apis//":
            raise PathNotFound
        if path in self._only_get and request.method != "GET":
            raise MethodNotAllowed
        return await handler(request)

    async def _index(self, request: Request) -> Response:
        return write(msgspec.json.encode({"paths": self.listed}), output_format(request.headers, request.info.query))

    async def _metrics_page(self, request: Request) -> Response:
        if request.method == "DELETE":  # upstream forgets what it has counted; ours cannot all be forgotten
            raise MethodNotAllowed
        return Response(self._metrics.render(), content_type=_METRICS)

    async def _healthchecks_page(self, request: Request) -> Response:
        if request.method == "DELETE":
            raise MethodNotAllowed
        return Response(text_of(self._health), content_type=_METRICS)


async def _version(request: Request) -> Response:
    major, minor = GIT_VERSION.removeprefix("v").split(".")[:2]
    system = platform.system().lower()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    version = {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{system}/{machine}",
    }
    return Response(msgspec.json.format(msgspec.json.encode(version), indent=2))  # indented for all clients
