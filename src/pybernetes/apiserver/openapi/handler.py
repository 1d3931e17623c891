"""Serves `/openapi/v2`, the index `/openapi/v3`, and a document for each group and version below it.

Nothing is made before it is asked for; then it is made once (`build.py`) and kept compressed, as most clients take it.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
from email.utils import formatdate
from hashlib import sha512

import msgspec

from pybernetes.api.errors import NotAcceptable, PathNotFound, ServiceUnavailable

from ..http import Request, Response
from ..negotiation import JSON
from .build import Custom, Order, Packed, build

log = logging.getLogger(__name__)

_YEAR = 365 * 24 * 3600.0
_Form = tuple[int, bool]  # the version, and whether it is protobuf


class _Made(msgspec.Struct, gc=False):
    generation: int
    documents: dict[str, Packed]
    at: str
    """When, as HTTP says it."""


class OpenAPI:
    """The documents by version and path, and who is waiting for them."""

    def __init__(self) -> None:
        self._custom: dict[str, Custom] = {}
        self._generation = 0  # counts the changes of _custom; what was made before the last one is stale
        self._made: dict[_Form, _Made] = {}
        self._making: dict[_Form, asyncio.Task[_Made]] = {}

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
            return await self._document(request, 2, "")
        if path == "/openapi/v3":
            return await self._index(request)
        if path.startswith("/openapi/v3/"):
            return await self._document(request, 3, path.removeprefix("/openapi/v3/"))
        raise PathNotFound

    async def _index(self, request: Request) -> Response:
        made = await self._documents((3, False))
        paths = {path: {"serverRelativeURL": _url(path, document)} for path, document in made.documents.items()}
        body = msgspec.json.encode({"paths": paths})
        headers = _headers(sha512(body).hexdigest().upper(), made.at)
        return _unchanged(request, headers) or Response(body, headers=headers)

    async def _document(self, request: Request, version: int, path: str) -> Response:
        media = _accepted(request, version)
        made = await self._documents((version, media != JSON))
        document = made.documents.get(path)
        if document is None:
            raise PathNotFound
        headers = _headers(document.etag, made.at)
        wanted = request.info.query.get("hash", "") if version == 3 else ""
        if wanted and wanted != document.etag:
            return Response(b"", 301, "", [("Location", _url(path, document)), *headers])
        if wanted:
            headers = _headers(document.etag, made.at, "public, immutable")
            headers.append(("Expires", formatdate(time.time() + _YEAR, usegmt=True)))
        if unchanged := _unchanged(request, headers):
            return unchanged
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(document.body, 200, media, [*headers, ("Content-Encoding", "gzip")])
        return Response(await asyncio.to_thread(gzip.decompress, document.body), 200, media, headers)

    async def _documents(self, form: _Form) -> _Made:
        made = self._made.get(form)
        if made is not None and made.generation == self._generation:
            return made
        task = self._making.get(form)
        if task is None:
            task = self._making[form] = asyncio.create_task(self._make(form))
        try:
            return await asyncio.shield(task)  # others may be waiting for it when this client goes away
        except RuntimeError as error:
            log.error("%s", error)
            raise ServiceUnavailable("the OpenAPI documents are not available") from error

    async def _make(self, form: _Form) -> _Made:
        version, protobuf = form
        try:
            while True:
                generation = self._generation
                documents = await build(Order(version, protobuf, dict(self._custom)))
                if generation == self._generation:
                    break
        finally:
            del self._making[form]
        made = self._made[form] = _Made(generation, documents, formatdate(usegmt=True))
        return made


def _url(path: str, document: Packed) -> str:
    return f"/openapi/v3/{path}?hash={document.etag}"


def _headers(etag: str, at: str, caching: str = "no-cache, private") -> list[tuple[str, str]]:
    return [
        ("ETag", f'"{etag}"'),
        ("Last-Modified", at),
        ("Vary", "Accept-Encoding"),
        ("Vary", "Accept"),
        ("Cache-Control", caching),
    ]


def _unchanged(request: Request, headers: list[tuple[str, str]]) -> Response | None:
    """304, if the client has this already."""
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return Response(b"", 304, "", headers) if headers[0][1] in known or "*" in known else None


def _accepted(request: Request, version: int) -> str:
    """The media type to answer with, JSON or protobuf. Raises NotAcceptable."""
    protobuf = f"application/com.github.proto-openapi.spec.v{version}.v1.0+protobuf"
    known = dict.fromkeys((JSON, "*/*", "application/*"), JSON)
    known |= dict.fromkeys((protobuf, protobuf.replace(".v1.0", "@v1.0")), protobuf)  # kubectl asks in the second way
    for media in _by_quality(request.headers.get("accept", "") or "*/*"):
        if media in known:
            return known[media]
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
