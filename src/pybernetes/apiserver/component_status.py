"""ComponentStatuses: whether scheduler, controller manager and store are healthy, checked at each request.

Scheduler and controller manager are asked for /healthz at the ports that upstream's have on the same machine, or at
those of `--component-health`. Their certificates are not verified, as upstream: the request contains no secrets.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import cache

import msgspec

from pybernetes.api.core.v1 import ComponentCondition, ComponentStatus
from pybernetes.api.errors import NotFound
from pybernetes.api.gocompat import goencoder
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request, Response
from pybernetes.net.streams.duplex import dial, request_head

from .negotiation import output_format
from .partial_metadata import ListMeta
from .pipeline.respond import TRANSFORMS, answer, answer_list
from .registry.registry import Registry

PORTS = {"scheduler": 10259, "controller-manager": 10257}
"""Where upstream's components serve their health."""
WITHIN = 5.0  # seconds for a component to answer
_HOST = "127.0.0.1"
_MOST = 1 << 12  # bytes of an answer that are shown


async def component_statuses(registry: Registry, name: str = "") -> list[ComponentStatus]:
    """All of them, or the one of that name. Raises NotFound."""
    ports = PORTS | registry.component_health
    if name and name not in ports and name != "etcd-0":
        raise NotFound("", "componentstatus", name)
    asked = {each: _healthz(port) for each, port in ports.items() if name in ("", each)}
    if name in ("", "etcd-0"):
        asked["etcd-0"] = _store(registry)
    conditions = await asyncio.gather(*asked.values())
    return [
        ComponentStatus(metadata=ObjectMeta(name=each), conditions=[condition])
        for each, condition in zip(asked, conditions, strict=True)
    ]


async def answer_component_statuses(registry: Registry, resource: Resource, request: Request) -> Response:
    """GET one ComponentStatus, or all of them."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    found = [_encode(each) for each in await component_statuses(registry, "" if info.verb == "list" else info.name)]
    if info.verb == "list":
        return answer_list(request, resource, found, ListMeta(), form)
    return answer(request, resource, found[0], form)


def _encode(status: ComponentStatus) -> bytes:
    return goencoder.encode(msgspec.structs.replace(status, kind="ComponentStatus", api_version="v1"))


async def _store(registry: Registry) -> ComponentCondition:
    try:
        await registry.cache.store.check()
    except Exception as error:
        return _unhealthy("", str(error))
    return ComponentCondition(type="Healthy", status="True", message="ok")


async def _healthz(port: int) -> ComponentCondition:
    url = f"https://{_HOST}:{port}/healthz"
    try:
        async with asyncio.timeout(WITHIN):
            connection = await dial(_HOST, port, _unverified(), _HOST, WITHIN)
            try:
                head = await connection.request(
                    request_head("GET", "/healthz", [("Host", f"{_HOST}:{port}"), ("Connection", "close")])
                )
                body = (await connection.body(head, _MOST)).decode(errors="replace")
            finally:
                connection.abort()
    except TimeoutError:
        return _unhealthy(f"Get {quote(url)}: context deadline exceeded", "")
    except OSError as error:
        why = error.strerror.lower() if error.strerror else str(error)
        return _unhealthy(f"Get {quote(url)}: dial tcp {_HOST}:{port}: connect: {why}", "")
    if head.status != 200:
        return _unhealthy(body, f"unhealthy http status code: {head.status}")
    return ComponentCondition(type="Healthy", status="True", message=body)


def _unhealthy(message: str, error: str) -> ComponentCondition:
    return ComponentCondition(type="Healthy", status="False", message=message or None, error=error or None)


@cache
def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
