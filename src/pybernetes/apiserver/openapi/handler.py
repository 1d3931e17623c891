"""Serves `/openapi/v2`, the index `/openapi/v3`, and a document for each group and version below it.

Nothing is made before it is asked for; then it is made once (`build.py`) and kept compressed, as most clients take it.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
from email.utils import formatdate

import msgspec

from pybernetes.api.errors import NotAcceptable, PathNotFound, ServiceUnavailable

from ..http import Request, Response
from ..negotiation import JSON
from .build import Custom, Order, Packed, build

log = logging.getLogger(__name__)

_YEAR = 365 * 24 * 3600.0


class OpenAPI:
    """The documents by version and path, and who is waiting for them."""

    def __init__(self) -> None:
        self._custom: dict[str, Custom] = {}
        self._made: dict[int, _Made] = {}
        self._making: dict[int, asyncio.Task[_Made]] = {}
        self._generation = 0  # counts the changes of _custom; what was made before the last one is stale

    def add_group_version(self, path: str, custom: Custom) -> None:
        """Publish kinds that are not built in, or new schemas of theirs; path is `apis/GROUP/VERSION`."""
        self._custom[path] = custom
        self._generation += 1

    def remove_group_version(self, path: str) -> None:
        """Take them back."""
        if self._custom.pop(path, None):
            self._generation += 1

    async def __call__(self, request: Request) -> Response:
        path = request.path.rstrip("/")
        if path == "/openapi/v2":
            media, protobuf = _accepted(request, 2)
            made = await self._documents(2)
            return await _answer(request, made, made.documents[""], media, protobuf)
        if path == "/openapi/v3":
            return _index(request, await self._documents(3))
        if path.startswith("/openapi/v3/"):
            return await self._group_version(request, path.removeprefix("/openapi/v3/"))
        raise PathNotFound

    async def _group_version(self, request: Request, path: str) -> Response:
        media, protobuf = _accepted(request, 3)
        made = await self._documents(3)
        document = made.documents.get(path)
        if document is None:
            raise PathNotFound
        wanted = request.info.query.get("hash", "")
        if wanted and wanted != document.etag:
            headers = [("Location", _url(path, document)), ("ETag", f'"{document.etag}"'), ("Vary", "Accept")]
            return Response(b"", 301, "", headers)
        return await _answer(request, made, document, media, protobuf, immutable=bool(wanted))

    async def _documents(self, version: int) -> _Made:
        made = self._made.get(version)
        if made is not None and made.generation == self._generation:
            return made
        task = self._making.get(version)
        if task is None:
            task = self._making[version] = asyncio.create_task(self._make(version))
        try:
            return await asyncio.shield(task)  # others may be waiting for it when this client goes away
        except RuntimeError as error:
            log.error("%s", error)
            raise ServiceUnavailable("the OpenAPI documents are not available") from error

    async def _make(self, version: int) -> _Made:
        try:
            while True:
                generation = self._generation
                documents = await build(Order(version, dict(self._custom)))
                if generation == self._generation:
                    break
        finally:
            del self._making[version]
        made = self._made[version] = _Made(generation, documents, formatdate(usegmt=True))
        return made


class _Made(msgspec.Struct, gc=False):
    generation: int
    documents: dict[str, Packed]
    at: str
    """When, as HTTP says it."""


def _accepted(request: Request, version: int) -> tuple[str, bool]:
    """The media type to answer with, and whether it is protobuf. Raises NotAcceptable."""
    protobuf = f"application/com.github.proto-openapi.spec.v{version}.v1.0+protobuf"
    known = dict.fromkeys((JSON, "*/*", "application/*"), False)
    known |= dict.fromkeys((protobuf, protobuf.replace(".v1.0", "@v1.0")), True)  # kubectl asks in the second way
    for media in _by_quality(request.headers.get("accept", "") or "*/*"):
        if media in known:
            return (protobuf, True) if known[media] else (JSON, False)
    raise NotAcceptable((JSON, protobuf))


def _by_quality(accept: str) -> list[str]:
    """The media types of an Accept header, the most wanted first."""
    clauses = []
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            clauses.append((-float(quality), media.lower()))
        except ValueError:
            continue
    return [media for quality, media in sorted(clauses, key=lambda clause: clause[0]) if quality]


def _index(request: Request, made: _Made) -> Response:
    paths = {path: {"serverRelativeURL": _url(path, document)} for path, document in made.documents.items()}
    return Response(msgspec.json.encode({"paths": paths}), headers=[("Last-Modified", made.at)])


def _url(path: str, document: Packed) -> str:
    return f"/openapi/v3/{path}?hash={document.etag}"


async def _answer(
    request: Request, made: _Made, document: Packed, media: str, protobuf: bool, *, immutable: bool = False
) -> Response:
    etag = f'"{document.etag}"'
    headers = [
        ("ETag", etag),
        ("Last-Modified", made.at),
        ("Vary", "Accept-Encoding"),
        ("Vary", "Accept"),
        ("Cache-Control", "public, immutable" if immutable else "no-cache, private"),
    ]
    if immutable:
        headers.append(("Expires", formatdate(time.time() + _YEAR, usegmt=True)))
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if etag in known or "*" in known:
        return Response(b"", 304, "", headers)
    body = document.protobuf if protobuf else document.json
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(body, 200, media, [*headers, ("Content-Encoding", "gzip")])
    return Response(await asyncio.to_thread(gzip.decompress, body), 200, media, headers)
