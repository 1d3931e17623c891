"""`proxy` of pods, nodes and Services: any HTTP, passed on to a server in the cluster and back.

The user's credentials are not passed on to that server. Redirects and links in pages are rewritten so that a
browser comes back here; upgrades (WebSocket) are joined. A server that cannot be reached is a 503.
"""

from __future__ import annotations

import ssl
import zlib
from typing import Any
from urllib.parse import quote

from pybernetes.api.core.connect import Options
from pybernetes.api.errors import APIError, ServiceUnavailable
from pybernetes.net.http import Request, Response
from pybernetes.net.streams.duplex import request_head
from pybernetes.net.streams.websocket import is_upgrade
from pybernetes.net.upgrade import Target, UpgradeFailed, headers_of, pass_on

from ..aggregation.proxy import HOP, PATH, pass_back
from ..aggregation.transport import Backend
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..webhooks.client import words
from .kubelets import kubelets
from .locations import of_node, of_pod, of_service
from .rewriting import Rewriter, joined

MOST_PAGE = 32 << 20  # bytes of a page in which links are rewritten; longer ones are passed on as they are
_CORS = frozenset(f"access-control-allow-{each}" for each in ("credentials", "headers", "methods", "origin"))
_PORTS = {"https": 443}


async def proxy(registry: Registry, store: ResourceStore, request: Request, options: Options) -> Response | None:
    """Pass a request on and its answer back. Raises APIError."""
    info = request.info
    if store.resource.plural == "nodes":
        place = await of_node(registry, info.name)
    elif store.resource.plural == "pods":
        place = await of_pod(store, info.namespace, info.name)
    else:
        place = await of_service(registry, info.namespace, info.name)
    scheme, host, port = place.scheme, place.host, place.port
    asked: str = getattr(options, "path", None) or ""
    path = joined("", asked)
    known = kubelets(registry)
    way = known.way() if place.is_kubelet else known.proxy_way(scheme)
    target = Target(place.address, port or _PORTS.get(scheme, 80), "", way.tls, within=way.within)
    if is_upgrade(request):
        target.path = _target(path or "/", "")
        try:
            return await pass_on(request, target, words)
        except UpgradeFailed as error:
            raise APIError(str(error)) from None
    if not path.endswith("/") and info.path.endswith("/"):
        path += "/"
    if not path and request.method in ("GET", "HEAD"):
        query = f"?{request.query_string}" if request.query_string else ""
        return Response(b"", 301, "", [("Location", f"{quote(info.path, safe=PATH)}/{query}")])
    authority = f"[{host}]" if ":" in host else host
    if port:
        authority = f"{authority}:{port}"
    prepended = info.path.removesuffix(path if path else "")
    target.path = _target(path or "/", request.query_string)
    message = _message(request, target, joined(prepended, path or "/"))
    address = (target.host, target.port)
    try:
        backend = await way.transport.request(
            address, message, repeatable=request.method in ("GET", "HEAD"), bodyless=request.method == "HEAD"
        )
    except (OSError, ssl.SSLError, TimeoutError) as error:
        handshake = way.tls is not None and isinstance(error.__cause__, TimeoutError)
        why = "net/http: TLS handshake timeout" if handshake else words(error)
        raise ServiceUnavailable(f"error trying to reach service: {why}") from None
    try:
        answer = await _answer(request, backend, Rewriter(prepended, authority, request.headers.get("host", "")))
    except BaseException:
        way.transport.abort(backend)
        raise
    way.transport.release(address, backend)
    return answer


def _target(path: str, query: str) -> str:
    target = quote(path, safe=PATH)
    return f"{target}?{quote(query, safe=PATH + '%?')}" if query else target


def _message(request: Request, target: Target, uri: str) -> bytes:
    gone = HOP | {"content-length", "expect", "x-forwarded-uri"}
    gone |= {part.strip().lower() for part in request.headers.get("connection", "").split(",")}
    lines = headers_of(request, tuple(gone))
    lines.append(("X-Forwarded-Uri", quote(uri, safe=PATH)))
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        lines.append(("Content-Length", str(len(request.body))))
    return request_head(request.method, target.path, lines) + request.body


async def _answer(request: Request, backend: Backend, rewriter: Rewriter) -> Response | None:
    headers = {name.lower(): value for name, value in backend.headers}
    backend.headers = [pair for pair in backend.headers if pair[0].lower() not in _CORS]
    if "location" in headers:
        backend.headers = [
            (name, rewriter.url(value) if name.lower() == "location" else value) for name, value in backend.headers
        ]
    elif headers.get("content-type", "").partition(";")[0].strip() == "text/html" and request.method != "HEAD":
        return await _page(request, backend, rewriter, headers)
    return await pass_back(request, backend)


async def _page(request: Request, backend: Backend, rewriter: Rewriter, headers: dict[str, Any]) -> Response | None:
    encoding = headers.get("content-encoding", "")
    length = headers.get("content-length", "0")
    long = length.isdecimal() and (len(length) > 18 or int(length) > MOST_PAGE)
    if long or encoding not in ("", "gzip", "deflate"):
        return await pass_back(request, backend)
    body = b""
    while piece := await backend.read():
        body += piece
        if len(body) > MOST_PAGE:
            raise ServiceUnavailable(
                "error trying to reach service: the page is too long for its links to be rewritten"
            )
    try:
        text = _unpacked(body, encoding).decode("utf-8", "surrogateescape")
    except zlib.error as error:
        raise ServiceUnavailable(f"error trying to reach service: bad {encoding}: {error}") from None
    packed = _packed(rewriter.page(text).encode("utf-8", "surrogateescape"), encoding)
    ours = HOP | {"content-type", "content-length", "date"}
    left = [pair for pair in backend.headers if pair[0].lower() not in ours]
    return Response(packed, backend.status, headers["content-type"], left)


def _unpacked(body: bytes, encoding: str) -> bytes:
    if not encoding:
        return body
    return zlib.decompressobj(31 if encoding == "gzip" else -15).decompress(body, MOST_PAGE)


def _packed(body: bytes, encoding: str) -> bytes:
    if not encoding:
        return body
    packer = zlib.compressobj(wbits=31 if encoding == "gzip" else -15)
    return packer.compress(body) + packer.flush()
