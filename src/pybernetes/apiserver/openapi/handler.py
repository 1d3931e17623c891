"""Serves `/openapi/v2`, the index `/openapi/v3`, and a document for each group and version below it.

Nothing is made before it is asked for; then it is made once (`build.py`) and kept compressed, as most clients take it.
What custom resources add is made apart, so that a definition that comes or changes costs its own part only.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
from collections.abc import Callable
from email.utils import formatdate
from hashlib import sha512
from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.api.errors import NotAcceptable, PathNotFound, ServiceUnavailable
from pybernetes.net.http import Request, Response

from ..negotiation import JSON
from .build import Order, Packed, build, merge
from .kinds import CustomKind

if TYPE_CHECKING:
    from ..aggregation.openapi import RemoteOpenAPI
    from ..aggregation.service import RemoteService

log = logging.getLogger(__name__)

_YEAR = 365 * 24 * 3600.0
_Form = tuple[int, bool]  # the version, and whether it is protobuf


Custom = dict[str, tuple[Any, Callable[[], list[CustomKind]]]]
"""By `apis/GROUP/VERSION`: something that is the same as long as the kinds are, and the kinds."""


class _Made(msgspec.Struct, gc=False):
    generation: int
    documents: dict[str, Packed]
    at: str
    """When, as HTTP says it."""


class OpenAPI:
    """The documents by version and path, and who is waiting for them.

    `generation` counts the changes of what is not built in, `custom` tells what that is. Of these only what has changed
    is made anew.
    """

    def __init__(
        self,
        generation: Callable[[], int] = lambda: 0,
        custom: Callable[[], Custom] = dict,
        remote: Callable[[], RemoteOpenAPI | None] = lambda: None,
    ) -> None:
        """`remote` are the documents of other servers, if there are any."""
        self._generation = generation
        self._custom = custom
        self._remote = remote
        self._base: dict[_Form, dict[str, Packed]] = {}
        self._parts: dict[_Form, dict[str, tuple[Any, Packed]]] = {}
        self._made: dict[_Form, _Made] = {}
        self._making: dict[_Form, asyncio.Task[_Made]] = {}

    async def __call__(self, request: Request) -> Response | None:
        path = request.path
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
        if remote := self._remote():
            others = {path: {"serverRelativeURL": url} for path, (url, _) in (await remote.index()).items()}
            paths = dict(sorted({**others, **paths}.items()))
        body = msgspec.json.encode({"paths": paths})
        headers = _headers(sha512(body).hexdigest().upper(), made.at)
        return _unchanged(request, headers) or Response(body, headers=headers)

    async def _document(self, request: Request, version: int, path: str) -> Response | None:
        media = _accepted(request, version)
        made = await self._documents((version, media != JSON))
        document = made.documents.get(path)
        if document is None:
            found = await self._elsewhere(path)
            if not isinstance(found, Packed):
                return await found(request)
            document, media = found, JSON
        headers = _headers(document.etag, made.at)
        wanted = request.info.query.get("hash", "") if version == 3 else ""
        if wanted and wanted != document.etag:
            return Response(b"", 301, "", [("Location", _url(path, document)), *headers])
        if wanted:
            headers = _headers(document.etag, made.at, "public, immutable")
            headers.append(("Expires", formatdate(time.time() + _YEAR, usegmt=True)))
        if unchanged := _unchanged(request, headers):
            return unchanged
        if request.accepts_gzip():
            return Response(document.body, 200, media, [*headers, ("Content-Encoding", "gzip")])
        return Response(await asyncio.to_thread(gzip.decompress, document.body), 200, media, headers)

    async def _elsewhere(self, path: str) -> RemoteService | Packed:
        """The document of another server, or the server that has it. Raises PathNotFound."""
        remote = self._remote()
        _, found = (await remote.index()).get(path, ("", None)) if remote else ("", None)
        if found is None:
            raise PathNotFound
        return found

    async def _documents(self, form: _Form) -> _Made:
        made = self._made.get(form)
        if made is not None and made.generation == self._generation():
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
            base = self._base.get(form)
            if base is None:
                base = self._base[form] = await build(Order(version, protobuf))
            while True:
                generation = self._generation()
                parts = await self._custom_parts(form)
                if generation == self._generation():
                    break
            documents = base
            if version == 3:
                documents = dict(sorted({**base, **parts}.items()))
            else:
                added = [*parts.values(), *await self._remote_parts(protobuf)]
                if added:
                    documents = {"": await asyncio.to_thread(merge, base[""], added, protobuf)}
        finally:
            del self._making[form]
        made = self._made[form] = _Made(generation, documents, formatdate(usegmt=True))
        return made

    async def _remote_parts(self, protobuf: bool) -> list[Packed]:
        """The parts of other servers in version 2. The names already taken are found in the JSON form."""
        remote = self._remote()
        if not remote:
            return []
        form = (2, False)
        if form not in self._base:
            self._base[form] = await build(Order(2, False))
        custom = await self._custom_parts(form)
        return await remote.parts(self._base[form][""], custom.values(), protobuf)

    async def _custom_parts(self, form: _Form) -> dict[str, Packed]:
        """The parts of custom kinds, by path."""
        version, protobuf = form
        wanted, known = self._custom(), self._parts.get(form, {})
        missing = {path: each for path, each in wanted.items() if path not in known or known[path][0] != each[0]}
        parts = {path: known[path] for path in wanted if path not in missing}
        if missing:
            order = Order(version, protobuf, {path: kinds() for path, (_, kinds) in missing.items()})
            for path, packed in (await build(order)).items():
                parts[path] = (missing[path][0], packed)
        self._parts[form] = parts
        return {path: parts[path][1] for path in sorted(parts)}


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
