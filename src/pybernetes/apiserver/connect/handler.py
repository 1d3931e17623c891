"""From a request for a connection to who serves it: options, admission, permission.

To admission a connection is the operation CONNECT, and its options are the object. Only `log` is none: it is a read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

import msgspec

from pybernetes.api.core.connect import OPTIONS, Options, decode
from pybernetes.api.errors import APIError, BadRequest, Forbidden
from pybernetes.net.http import Request, Response

from ..admission.plugin import CONNECT, Attributes
from ..authz.authorizer import ALLOW
from ..authz.union import decide
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from .log import log
from .proxy import proxy
from .streams import stream

Serve = Callable[[Registry, ResourceStore, Request, Options], Awaitable[Response | None]]

_SERVES: dict[str, Serve] = {"log": log, "exec": stream, "attach": stream, "portforward": stream, "proxy": proxy}


async def connect(registry: Registry, store: ResourceStore, request: Request) -> Response | None:
    """Serve a connection."""
    info = request.info
    options = _options(store, request)
    if info.subresource != "log":
        options = await _admitted(registry, store, request, options)
    if info.subresource in ("exec", "attach", "portforward"):
        await _may_create(registry, request)
    request.connection.lasting = True
    if request.audit is not None:
        request.audit.passed_on()
    info.verb = "connect"  # as what metrics count it; who may has been asked, and the audit log has it as it came
    return await _SERVES[info.subresource](registry, store, request, options)


def _options(store: ResourceStore, request: Request) -> Options:
    info = request.info
    subresource = store.resource.subresource(info.subresource)
    assert subresource is not None
    query = parse_qs(request.query_string, keep_blank_values=True, errors="replace")
    if info.subresource != "log" and query.get("dryRun"):
        raise BadRequest("dryRun is not supported")
    if info.subresource == "proxy":
        path = "/".join(info.parts)
        if path and not path.startswith("/"):
            path = "/" + path
        if info.path.endswith("/") and not path.endswith("/"):
            path += "/"
        query["path"] = [path]
    kind = subresource.kind or "PodLogOptions"
    try:
        options = decode(OPTIONS[kind], query)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    return options


async def _admitted(registry: Registry, store: ResourceStore, request: Request, options: Options) -> Options:
    """Run mutating admission on the options. Raises APIError."""
    info = request.info
    attributes = Attributes(
        CONNECT,
        store.resource,
        info.subresource,
        info.namespace,
        info.name,
        options,
        None,
        request.user,
        False,
        request.warnings,
        None,
        store.resource,
        ("v1", type(options).__name__),
        annotations=None if request.audit is None else request.audit.annotations,
    )
    await registry.admission.admit(attributes)
    await registry.admission.validate(attributes)
    admitted: Options = attributes.new
    return admitted


async def _may_create(registry: Registry, request: Request) -> None:
    """SPDY comes with POST, WebSocket with GET: who may not create is not to get in by the other. Raises Forbidden."""
    info = request.info
    if info.verb == "create":
        return
    asked = msgspec.structs.replace(info, verb="create")
    decision, reason, error = await decide(registry.authorizers, request.user, asked)
    if decision is ALLOW:
        return
    if error:
        raise APIError(error)
    raise Forbidden(info.group, info.resource, info.name, reason)
