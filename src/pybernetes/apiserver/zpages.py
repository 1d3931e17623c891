"""`/flagz` and `/statusz`: how this server was started, and since when it runs.

Text for people, unless a client asks for the kind: `Accept: application/json;as=Statusz;v=v1beta1;g=config.k8s.io`.
The sign between a name and its value changes, as upstream's does, so that nobody takes the text for a format.
"""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from pybernetes.api.errors import NotAcceptable
from pybernetes.api.times import rfc3339
from pybernetes.net.http import Request, Response
from pybernetes.version import GIT_VERSION

from .negotiation import JSON, YAML, Format, clauses, wants_pretty
from .output import write

_COMPONENT: Final = "apiserver"
_TEXT: Final = "text/plain"
_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1alpha1", "v1beta1")
_SIGNS: Final = (":", ": ", "=", " ")
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_NOT_FOR_DEBUGGING: Final = ("api", "apis", "openid", "openapi", ".well-known")


class Flagz:
    """The flags of this server; `read` tells them by name."""

    def __init__(self, read: Callable[[], dict[str, str]]) -> None:
        self._read = read

    async def __call__(self, request: Request) -> Response:
        flags = dict(sorted(self._read().items()))
        sign = random.choice(_SIGNS)
        text = "".join(f"{name}{sign}{value}\n" for name, value in flags.items())
        return _answer(request, "Flagz", {"flags": flags}, text)


class Statusz:
    """How this server is; `paths` tells what it serves."""

    def __init__(self, paths: Callable[[], list[str]]) -> None:
        self._paths = paths
        self._started = time.time()

    async def __call__(self, request: Request) -> Response:
        started, now = self._started, time.time()
        folders = sorted({path.split("/")[1] for path in self._paths()} - {"", *_NOT_FOR_DEBUGGING})
        version = GIT_VERSION.removeprefix("v").partition("+")[0]
        status: dict[str, Any] = {
            "startTime": rfc3339(started),
            "uptimeSeconds": max(0, int(now - started)),
            "goVersion": f"python{platform.python_version()}",  # the field's name is upstream's
            "binaryVersion": version,
            "emulationVersion": version.rpartition(".")[0],
            "paths": [f"/{each}" for each in folders],
        }
        sign = random.choice(_SIGNS)
        lines = (
            ("Started", time.strftime("%a %b %e %H:%M:%S UTC %Y", time.gmtime(started))),
            ("Up", _duration(status["uptimeSeconds"])),
            ("Go version", status["goVersion"]),
            ("Binary version", version),
            ("Emulation version", status["emulationVersion"]),
            ("Paths", " ".join(status["paths"])),
        )
        text = "\n" + "".join(f"{name}{sign} {value}\n" for name, value in lines)
        return _answer(request, "Statusz", status, text)


def _answer(request: Request, kind: str, fields: dict[str, Any], text: str) -> Response:
    media, version = _negotiate(request.headers.get("accept", ""), kind)
    if media == _TEXT:
        page = f"\n{_COMPONENT} {kind.lower()}\n{_WARNING}\n{text}"
        return Response(page.encode(), content_type=f"{_TEXT}; charset=utf-8")
    head = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": _COMPONENT}}
    pretty = wants_pretty(request.headers, request.info.query)
    response = write(msgspec.json.encode({**head, **fields}), Format(media, pretty=pretty))
    response.content_type = f"{media};g={_GROUP};v={version};as={kind}"
    if version == "v1alpha1":
        old = f"This version of the {kind.lower()} endpoint is deprecated. Please use a newer version."
        response.headers = [("Warning", f'299 - "{old}"')]
    return response


def _negotiate(accept: str, kind: str) -> tuple[str, str]:
    """The media type and the version of the kind; text has none. Raises NotAcceptable."""
    if not accept.strip():
        return _TEXT, ""
    for media, parameters in clauses(accept):
        main, _, sub = media.partition("/")
        version = parameters.get("v", "")
        structured = (parameters.get("g"), parameters.get("as")) == (_GROUP, kind) and version in _VERSIONS
        text = () if "as" in parameters else (_TEXT,)
        for offered in (JSON, YAML) if structured else text:
            if main in ("*", offered.partition("/")[0]) and sub in ("*", offered.partition("/")[2]):
                return offered, version
    raise NotAcceptable((JSON, YAML, _TEXT))


def _duration(seconds: int) -> str:
    return f"{seconds // 3600} hr {seconds // 60 % 60:02d} min {seconds % 60:02d} sec"
