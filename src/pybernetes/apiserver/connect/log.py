"""pods/log: what the kubelet has, passed on as it comes; in WebSocket too, for browsers."""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import Any
from urllib.parse import quote as escaped
from urllib.parse import urlencode

from pybernetes.api.core.connect import Options, PodLogOptions, validate_log_options
from pybernetes.api.errors import APIError, BadRequest, InternalError, Invalid
from pybernetes.api.gocompat.quote import quote
from pybernetes.net.http import Request, Response
from pybernetes.net.streams.duplex import Upgraded, request_head
from pybernetes.net.streams.websocket import HandshakeError, ProtocolError, WebSocket, accept, is_websocket

from ..aggregation.transport import Backend
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..webhooks.client import words
from .kubelets import kubelets
from .locations import container_of

_MOST_REFUSAL = 50_000  # bytes of a kubelet's error that are passed on; upstream's maxReadLength
_PROTOCOLS = {"": False, "binary.k8s.io": False, "base64.binary.k8s.io": True}
_PIECE = 2048  # bytes in a message; upstream's


async def log(registry: Registry, store: ResourceStore, request: Request, options: Options) -> Response | None:
    """Serve a container's log. Raises APIError."""
    assert isinstance(options, PodLogOptions)
    info = request.info
    problems = validate_log_options(options)
    if problems:
        raise Invalid("", "PodLogOptions", info.name, problems)
    pod = store.decode(await store.get(info.namespace, info.name))
    container = container_of(pod, options.container)
    if not pod.spec.node_name:
        return Response(b"", 204, "")
    known = kubelets(registry)
    kubelet = await known.find(pod.spec.node_name, info.resource)
    way = known.way(insecure=bool(options.insecure_skip_tls_verify_backend))
    path = f"/containerLogs/{info.namespace}/{info.name}/{escaped(container)}"
    query = urlencode(parameters(options))
    target = f"{path}?{query}" if query else path
    address = (kubelet.host, kubelet.port)
    authority = f"[{kubelet.host}]" if ":" in kubelet.host else kubelet.host
    url = f"https://{authority}:{kubelet.port}{target}"
    lines = [("Host", f"{authority}:{kubelet.port}"), ("User-Agent", "kube-apiserver")]
    try:
        backend = await way.transport.request(address, request_head("GET", target, lines), repeatable=True)
    except (OSError, ssl.SSLError, TimeoutError) as error:
        raise APIError(f"Get {quote(url)}: {words(error)}") from None
    try:
        await _check(backend, url, info.name)
        answer = None
        if is_websocket(request):
            answer = await _messages(request, backend)
        else:
            await _text(request, backend)
    except BaseException:
        way.transport.abort(backend)
        raise
    way.transport.release(address, backend)
    return answer


def parameters(options: PodLogOptions) -> list[tuple[str, str]]:
    """The query that a kubelet is asked with."""
    found: list[tuple[str, Any]] = [
        ("follow", options.follow and "true"),
        ("limitBytes", options.limit_bytes),
        ("previous", options.previous and "true"),
        ("sinceSeconds", options.since_seconds),
        ("sinceTime", options.since_time),
        ("tailLines", options.tail_lines),
        ("timestamps", options.timestamps and "true"),
    ]
    return [(name, str(value)) for name, value in found if value is not None]


async def _text(request: Request, backend: Backend) -> None:
    stream = request.connection.stream(request, 200, "text/plain")
    try:
        while piece := await backend.read():
            stream.write(piece)
            await stream.drain()
    except ConnectionError:
        request.connection.transport.close()  # not all has come: the answer must not look complete
        raise
    stream.end()


async def _messages(request: Request, backend: Backend) -> Response | None:
    try:
        protocol, answer = accept(request, _PROTOCOLS)
    except HandshakeError as error:
        return error.answer()
    if request.audit is not None:
        request.audit.started(101)
    websocket = WebSocket(Upgraded(request.connection, answer, cancel=True))
    text = _PROTOCOLS[protocol]
    websocket.send(b"", text=text)  # so that a client knows that it is connected
    ending = asyncio.create_task(_until_closed(websocket))
    sending = asyncio.create_task(_send(websocket, backend, text=text))
    try:
        await asyncio.wait((ending, sending), return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            raise ConnectionResetError("the client went away")
    finally:
        for task in (ending, sending):
            task.cancel()
        websocket.close()
    return None


async def _send(websocket: WebSocket, backend: Backend, *, text: bool) -> None:
    while piece := await backend.read():
        for start in range(0, len(piece), _PIECE):
            part = piece[start : start + _PIECE]
            websocket.send(base64.b64encode(part) if text else part, text=text)
        await websocket.drain()


async def _until_closed(websocket: WebSocket) -> None:
    """Read and ignore messages until the client closes."""
    try:
        while await websocket.receive() is not None:
            pass
    except ProtocolError:
        pass


# -- refusals ------------------------------------------------------------------------------------------------------

_WORDS = {
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


async def _check(backend: Backend, url: str, name: str) -> None:
    """Raises what a kubelet's answer stands for, if that is no log."""
    status = backend.status
    if 200 <= status <= 206:
        return
    if 300 <= status < 400:
        raise APIError(f"Get {quote(url)}: redirects forbidden")
    body = b""
    while len(body) < _MOST_REFUSAL and (piece := await backend.read()):
        body += piece
    said = body[:_MOST_REFUSAL].decode("utf-8", "replace")
    if status == 500:
        raise InternalError(said)
    if status == 400:
        raise BadRequest(said)
    reason, message = _WORDS.get(status, ("", ""))
    if status in (403, 415):
        reason, message = {403: "Forbidden", 415: "UnsupportedMediaType"}[status], said
    elif not reason:
        message = f"the server responded with the status code {status} but did not return more information"
        if status >= 500:
            reason = "InternalError"
            message = f"an error on the server ({quote(said)}) has prevented the request from succeeding"
    details = {"name": name, "kind": "pods/log"}
    raise APIError(f"{message} ( pods/log {name})", details, code=status, reason=reason)
