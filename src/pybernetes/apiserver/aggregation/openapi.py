"""The documents of extension servers, for ours: asked for when a client asks us, and looked at again every minute then.

Version 3 has a document for each group and version: those of others are passed on by the proxy, and only the index is
merged. A server that does not know version 3 has its version 2 converted. Version 2 is one document for all, so that
the paths of the group, and what they refer to, are cut out and put into ours. What a server says wrongly is left out.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import ssl
from collections.abc import Iterable
from hashlib import sha512
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from ..openapi.build import FRAGMENTS, Packed
from ..user import User
from ..webhooks.services import Unresolved
from .openapi_conversion import definitions_of, paths_below, to_v3

if TYPE_CHECKING:
    from ..registry.registry import Registry
    from .service import RemoteService

log = logging.getLogger(__name__)

_USER = User("system:aggregator")
_FAILURES = (OSError, TimeoutError, ssl.SSLError, Unresolved, ValueError, RecursionError)
_OURS = "io.k8s."  # what names of definitions begin with that every server has alike


class _Known(msgspec.Struct):
    """The documents read from a server, by path: etag or hash, and content."""

    read: dict[str, tuple[str, Any]]


class RemoteOpenAPI:
    """The documents of all extension servers that are available."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: WeakKeyDictionary[RemoteService, _Known] = WeakKeyDictionary()

    async def index(self) -> dict[str, tuple[str, RemoteService | Packed]]:
        """By path: the URL, and who has the document."""
        found: dict[str, tuple[str, RemoteService | Packed]] = {}
        services = self._services()
        for service, paths in zip(services, await asyncio.gather(*map(self._index_of, services)), strict=True):
            found.update(paths if paths is not None else await self._converted(service))
        return found

    async def _index_of(self, service: RemoteService) -> dict[str, tuple[str, RemoteService | Packed]] | None:
        paths = await self._read(service, "/openapi/v3")
        if paths is None:
            return None
        made: dict[str, tuple[str, RemoteService | Packed]] = {}
        for path, entry in (paths.get("paths") or {}).items() if isinstance(paths, dict) else ():
            url = entry.get("serverRelativeURL") if isinstance(entry, dict) else None
            if isinstance(url, str):
                made[str(path)] = (url, service)
        return made

    async def _converted(self, service: RemoteService) -> dict[str, tuple[str, RemoteService | Packed]]:
        swagger = await self._read(service, "/openapi/v2")
        path = f"apis/{service.group}/{service.version}"
        if not isinstance(swagger, dict):
            return {}
        try:
            body = await asyncio.to_thread(lambda: msgspec.json.encode(to_v3(swagger, f"/{path}")))
        except Exception as error:  # they may have sent anything
            log.warning("openapi of apiservice %s: %s", service.name, error)
            return {}
        packed = Packed(sha512(body).hexdigest().upper(), gzip.compress(body))
        return {path: (f"/openapi/v3/{path}?hash={packed.etag}", packed)}

    async def parts(self, base: Packed, others: Iterable[Packed], protobuf: bool) -> list[Packed]:
        """The parts of all servers for the version 2 document `base` (JSON), to which `others` are added too (in
        JSON)."""
        services = self._services()
        read = await asyncio.gather(*[self._read(each, "/openapi/v2") for each in services])
        found = [(each, document) for each, document in zip(services, read, strict=True) if isinstance(document, dict)]
        return await asyncio.to_thread(_parts, base, list(others), found, protobuf) if found else []

    def _services(self) -> list[RemoteService]:
        return [each for each in self._registry.aggregated.values() if each.available]

    async def _read(self, service: RemoteService, path: str) -> Any:
        """A document; None if there is none. What is known is not read again here."""
        known = self._known.setdefault(service, _Known({}))
        if path not in known.read:
            await self._download(service, known, path)
            service.refresh = lambda: self._refresh(service)
        return known.read.get(path, ("", None))[1]

    async def _refresh(self, service: RemoteService) -> None:
        known = self._known.get(service)
        for path in list(known.read) if known is not None and service.available else ():
            assert known is not None
            before = known.read[path][0]
            await self._download(service, known, path)
            if known.read[path][0] != before:
                self._registry.generation += 1

    async def _download(self, service: RemoteService, known: _Known, path: str) -> None:
        tag, document = known.read.get(path, ("", None))
        headers = {"If_None_Match": tag} if tag.startswith('"') else {}
        try:
            answer = await service.fetch(path, _USER, Accept="application/json", **headers)
            if answer.status == 304:
                return
            if answer.status == 200:
                tag = answer.headers.get("etag") or sha512(answer.body).hexdigest()
                document = await asyncio.to_thread(msgspec.json.decode, answer.body)
            elif answer.status == 404:
                tag, document = "", None
            else:
                log.warning("openapi of apiservice %s: %s: %d", service.name, path, answer.status)
        except _FAILURES as error:
            log.warning("openapi of apiservice %s: %s: %s", service.name, path, error or type(error).__name__)
        known.read[path] = (tag, document)


class _Definitions(msgspec.Struct):
    definitions: dict[str, msgspec.Raw] = {}


def _parts(
    base: Packed, others: list[Packed], found: list[tuple[RemoteService, dict[str, Any]]], protobuf: bool
) -> list[Packed]:
    from ..openapi.protobuf import encode_v2

    taken = set(msgspec.json.decode(gzip.decompress(base.body), type=_Definitions).definitions)
    for other in others:
        taken |= set(msgspec.json.decode(b"{" + other.body.split(FRAGMENTS)[1] + b"}"))
    made = []
    for service, document in found:
        try:
            part = cut(document, f"/apis/{service.group}/{service.version}", taken)
            json = [msgspec.json.encode(part[name])[1:-1] for name in ("paths", "definitions")]
            body = encode_v2(part) if protobuf else FRAGMENTS.join(json)
        except Exception as error:  # they may have sent anything
            log.warning("openapi of apiservice %s: %s", service.name, error)
            continue
        if json[0]:
            taken |= part["definitions"].keys()
            made.append(Packed(sha512(FRAGMENTS.join(json)).hexdigest().upper(), body))
    return made


def cut(document: dict[str, Any], prefix: str, taken: set[str]) -> dict[str, Any]:
    """The paths below a prefix and the definitions that they need. Those whose names are taken get another, or, where
    every server has them alike, are left out."""
    paths = paths_below(document, prefix)
    parameters = document.get("parameters") or {}
    if parameters:
        paths = _inlined(paths, parameters)
    definitions = definitions_of(paths, document.get("definitions") or {})
    part = msgspec.json.encode({"paths": paths, "definitions": definitions})
    for name in definitions:
        if name in taken and not name.startswith(_OURS):
            number = 2
            while f"{name}_v{number}" in taken or f"{name}_v{number}" in definitions:
                number += 1
            part = part.replace(f'"{name}":'.encode(), f'"{name}_v{number}":'.encode(), 1)
            part = part.replace(f'"#/definitions/{name}"'.encode(), f'"#/definitions/{name}_v{number}"'.encode())
    made: dict[str, Any] = msgspec.json.decode(part)
    made["definitions"] = {name: each for name, each in made["definitions"].items() if name not in taken}
    return made


def _inlined(value: Any, parameters: dict[str, Any]) -> Any:
    """With shared parameters written out, since ours have other names."""
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/parameters/"):
            return parameters.get(reference.removeprefix("#/parameters/"), value)
        return {key: _inlined(each, parameters) for key, each in value.items()}
    if isinstance(value, list):
        return [_inlined(each, parameters) for each in value]
    return value
