"""The end of the chain: from what a request asks for to the verb that answers it.

A route is (verb, has a subresource); a resource that is not kept, and most subresources, have handlers of their own,
found by name. What is no resource goes to the path handlers (`/api`, `/version`, `/healthz`, ...).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from pybernetes.api.errors import BadRequest, MethodNotAllowed, MethodNotSupported, NotFound, PathNotFound, Timeout
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.resources import RESOURCES, Resource
from pybernetes.api.times import parse_duration
from pybernetes.net.http import OVERDUE, Answer, Handler, Request, Response

from . import unstored
from .bodies import LARGE, read_ahead
from .large_objects import collecting_later, is_large
from .pipeline.respond import YamlResponse
from .registry.registry import Registry
from .registry.resource_store import ResourceStore
from .requestinfo import RequestInfo, lasts
from .verbs.create import create
from .verbs.delete import delete
from .verbs.deletecollection import deletecollection
from .verbs.get import get
from .verbs.list import list_
from .verbs.patch import patch
from .verbs.update import update
from .verbs.watch import watch

WriteVerb = Callable[[Registry, ResourceStore, Request], Answer]

_READS: dict[str, Callable[[ResourceStore, Request], Answer]] = {"get": get, "list": list_, "watch": watch}
_WRITES: dict[str, WriteVerb] = {
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": deletecollection,
}


_NAMED = frozenset(("get", "update", "patch", "delete"))
LONGEST_TIMEOUT = 60.0  # seconds that a client can ask for; upstream's default of --request-timeout
_LAST_WORD = 0.1  # seconds


def _deprecated() -> dict[Resource, str]:
    """Resources that are on their way out, with the warning that every answer about them carries."""
    warnings = {
        "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
        "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    }
    return {each: warnings[each.plural] for each in RESOURCES if not each.group and each.plural in warnings}


DEPRECATED = _deprecated()


class Route(NamedTuple):
    """The handlers of requests with the same head, as long as the same resources are served."""

    generation: int
    namespaced: bool
    verb: Handler


class Dispatcher:
    """Calls the verb."""

    def __init__(self, registry: Registry, paths: Handler, longest: float = LONGEST_TIMEOUT) -> None:
        """`longest`: seconds that any request may take; looked at only where it is less than upstream's default."""
        self.registry = registry
        self.paths = paths
        self._longest = longest
        self._limits = longest < LONGEST_TIMEOUT

    async def __call__(self, request: Request, *, in_time: bool = False) -> Response | None:
        try:
            head = request.head
            if head is not None and head.route is not None:
                route: Route = head.route
                if route.generation == self.registry.generation and len(request.body) < LARGE:
                    if not route.namespaced:
                        request.info.namespace = ""
                    response = await route.verb(request)
                else:
                    response = await self._dispatch(request, in_time)
            else:
                response = await self._dispatch(request, in_time)
            if type(response) is YamlResponse:
                await response.complete()
            return response
        except asyncio.CancelledError as cancelled:
            if cancelled.args != (OVERDUE,):
                raise
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            raise Timeout("request did not complete within the allotted timeout") from None

    async def _dispatch(self, request: Request, in_time: bool) -> Response | None:
        info = request.info
        if ("timeout" in info.query or self._limits) and not in_time and not lasts(info):
            longest = self._longest
            seconds = min(_timeout(info.query.get("timeout", "")) or longest, longest)
            elsewhere = self.registry.aggregated and group_version(info) in self.registry.aggregated
            if (seconds < longest or self._limits) and not elsewhere:  # the way to another server has its own clock
                return await self._within(request, seconds)
        registry = self.registry
        if registry.aggregated:
            server = registry.aggregated.get(group_version(info))
            if server is not None:
                if request.audit is not None:
                    request.audit.passed_on()
                return await server(request)
        if not info.is_resource:
            return await self.paths(request)
        resource = registry.served(info.group, info.version, info.resource)
        if resource is None:
            resource = await registry.find(info.group, info.version, info.resource)
        if info.subresource:
            return await self._subresource(request)
        if len(request.body) >= LARGE:
            await read_ahead(request)
        verb = info.verb
        if not _placed(info, resource):
            raise PathNotFound
        if verb not in resource.verbs or (verb in _NAMED) != bool(info.name) or request.method == "HEAD":
            if resource.package != "unstructured":
                raise MethodNotAllowed
            _check_custom(info, resource)
        if not resource.namespaced:
            info.namespace = ""
        elif not info.namespace and verb not in ("list", "watch"):
            raise PathNotFound if resource.package == "unstructured" else MethodNotAllowed
        if info.name:
            _check_name(info.name)
        warning = DEPRECATED.get(resource)
        if warning is not None:
            request.warnings.append(warning)
        if not resource.stored:
            return await unstored.handler(resource)(registry, resource, request)
        store = registry.store(info.group, info.version, info.resource)
        if store.warning:
            request.warnings.append(store.warning)
        read = _READS.get(verb)
        call = partial(_WRITES[verb], registry, store) if read is None else partial(read, store)
        if request.head is not None and not in_time and not self._limits and not store.warning and warning is None:
            request.head.route = Route(registry.generation, resource.namespaced, call)
        if len(request.body) >= LARGE and is_large(request.body):
            with collecting_later:
                return await call(request)
        return await call(request)

    async def _within(self, request: Request, seconds: float) -> Response | None:
        """Answer in the time that the client is willing to wait. What it asked for may be done all the same."""
        try:
            # A handler with a timeout of its own, for as long as the client waits, reports the better error.
            async with asyncio.timeout(seconds + _LAST_WORD):
                return await self(request, in_time=True)
        except TimeoutError:
            why = "request did not complete within requested timeout - context deadline exceeded"
            raise Timeout(why) from None

    async def _subresource(self, request: Request) -> Response | None:
        info = request.info
        registry = self.registry
        resource = registry.resource(info.group, info.version, info.resource)
        if not _placed(info, resource):
            raise PathNotFound
        if info.parts and info.subresource != "proxy":  # nothing else has anything below it
            raise PathNotFound
        subresource = resource.subresource(info.subresource)
        if subresource is None and info.name and resource.package == "unstructured":
            raise NotFound(info.group, info.resource, info.name)
        if subresource is None or not info.name:
            raise PathNotFound
        if info.verb not in subresource.verbs or request.method == "HEAD":
            proxied = info.subresource == "proxy" and request.method in ("HEAD", "OPTIONS")
            if not proxied:
                raise MethodNotAllowed
        _check_name(info.name)
        if not resource.namespaced:
            info.namespace = ""
        store = registry.store(info.group, info.version, info.resource)
        from .subresources import HANDLERS

        if subresource.kind is None and info.subresource != "log":  # the object itself, by other rules
            return await (get(store, request) if info.verb == "get" else _WRITES[info.verb](registry, store, request))
        handler = HANDLERS.get(info.subresource)
        if handler is None:
            raise PathNotFound
        return await handler(registry, store, request)


def _check_custom(info: RequestInfo, resource: Resource) -> None:
    """Upstream has no router for custom resources: HEAD reads, and other methods are reported as verbs."""
    if info.verb not in resource.verbs:
        raise MethodNotSupported(info.group, info.resource, info.verb)
    if info.verb in _NAMED and not info.name:
        raise BadRequest("name must be provided")
    if info.verb not in ("get", "list"):
        raise MethodNotAllowed


def group_version(info: RequestInfo) -> tuple[str, str]:
    """The group and version that a path is below, whether it is of a resource or of what there is."""
    if info.is_resource:
        return info.group, info.version
    parts = info.path.split("/", 4)
    if len(parts) > 3 and parts[1] == "apis":
        return parts[2], parts[3]
    return "", "v1" if len(parts) > 1 and parts[1] == "api" else ""


def _placed(info: RequestInfo, resource: Resource) -> bool:
    """Whether the path is one of the resource's: with or without a namespace, with or without a name.

    It was authorized for the namespace of the path. So what is in none must not be reached by a path that has one, or
    who may do everything in a namespace could do it to the cluster; but a Namespace is in itself.
    """
    if not resource.namespaced:
        if info.namespace:
            itself = resource.plural == "namespaces" and not resource.group and info.object_name == info.namespace
            if not itself or f"/namespaces/{info.namespace}/namespaces" in info.path:
                return False
    elif not info.namespace and (info.name or not (resource.stored or "list" in resource.verbs)):
        return False
    return not info.name or not _NAMED.isdisjoint(resource.verbs)


def _timeout(text: str) -> float:
    """For how many seconds the client is willing to wait; 0 = it does not say. Raises BadRequest."""
    try:
        return parse_duration(text or "0") / 1e9
    except ValueError as error:
        raise BadRequest(f"invalid timeout specified in the request URL - {error}") from None


def _check_name(name: str) -> None:
    """Names that could not be part of a key or a path. Raises BadRequest."""
    if name in (".", ".."):
        raise BadRequest(f"Name parameter invalid: {quote(name)}: may not be '{name}'")
    if "%" in name:
        raise BadRequest(f"Name parameter invalid: {quote(name)}: may not contain '%'")
