"""What is served besides resources: the index, versions, health, metrics, discovery."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable

import msgspec

from pybernetes.api.errors import MethodNotAllowed, PathNotFound
from pybernetes.net.http import Request, Response
from pybernetes.version import GIT_VERSION

from .discovery import Discovery
from .health import Health
from .metrics import Metrics
from .negotiation import output_format
from .output import write

PathHandler = Callable[[Request], Awaitable[Response | None]]
_READS = ("get", "head")
_WITH_SLASH = ("/api", "/version")
"""Paths that are the same with a slash at the end."""


class Paths:
    """Finds the handler of a path: an exact match, else the longest prefix that ends in a slash."""

    def __init__(self, health: Health, metrics: Metrics, discovery: Discovery) -> None:
        self._metrics = metrics
        self._exact: dict[str, PathHandler] = {
            "/": self._index,
            "/version": _version,
            "/metrics": self._metrics_page,
        }
        self._unlisted: set[str] = set()
        self._prefixes: dict[str, PathHandler] = {"/api": discovery, "/apis": discovery}
        for path in health.checks:
            self._prefixes[f"/{path}"] = health

    def add(self, path: str, handler: PathHandler, *, prefix: bool = False, listed: bool = True) -> None:
        """Serve one more path, and tell of it in the index if it is to be `listed`."""
        (self._prefixes if prefix else self._exact)[path] = handler
        if not listed:
            self._unlisted.add(path)

    async def __call__(self, request: Request) -> Response | None:
        path = request.info.path
        if path.startswith(_WITH_SLASH):
            path = path.rstrip("/")
        handler = self._exact.get(path) or self._prefixes.get("/" + path[1:].partition("/")[0])
        if handler is None:
            raise PathNotFound
        if request.info.verb not in _READS:
            raise MethodNotAllowed
        return await handler(request)

    async def _index(self, request: Request) -> Response:
        paths = sorted({*self._exact, *self._prefixes} - {"/"} - self._unlisted)
        return write(msgspec.json.encode({"paths": paths}), output_format(request.headers, request.info.query))

    async def _metrics_page(self, request: Request) -> Response:
        return Response(self._metrics.render(), content_type="text/plain; version=0.0.4; charset=utf-8")


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
    return Response(msgspec.json.format(msgspec.json.encode(version), indent=2))  # indented for everybody
