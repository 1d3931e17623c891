"""core: Bindings (the old way to bind a pod), and ComponentStatuses (how the parts of the control plane are)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from pybernetes.api import zeros
from pybernetes.api.core.v1 import Binding, ComponentStatus
from pybernetes.api.errors import BadRequest
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request, Response

from ..negotiation import output_format
from ..output import TRANSFORMS, ListMeta, answer, answer_list
from ..registry.registry import Registry
from ..subresources.binding import assign
from ..subresources.body import check_namespace, decode_body, success
from ..verbs.admitting import admit_body
from ..verbs.options import write_options
from ..verbs.writing import context_for
from .component_status import component_statuses as statuses_of


async def bindings(registry: Registry, resource: Resource, request: Request) -> Response:
    """Bind the pod that the body names."""
    options = write_options(request.info.query, "CreateOptions")
    binding = decode_body(request, Binding, "v1", options.field_validation)
    check_namespace(binding.metadata, request)
    name = binding.metadata.name if binding.metadata else None
    if not name:
        raise BadRequest("Name parameter required.")
    binding = await admit_body(registry, request, resource, binding, "v1", dry_run=options.dry_run, options=options)
    context = context_for(registry, request, dry_run=options.dry_run)
    context.subresource = "binding"
    await assign(registry.store("", "v1", "pods"), name, binding, context)
    return success(request)


async def component_statuses(registry: Registry, resource: Resource, request: Request) -> Response:
    """How the parts of the control plane are."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    found = [_raw(each) for each in await statuses_of(registry, "" if info.verb == "list" else info.name)]
    if info.verb == "list":
        return answer_list(request, resource, found, ListMeta(), form)
    return answer(request, resource, found[0], form)


def _raw(status: ComponentStatus) -> bytes:
    return zeros.encode(msgspec.structs.replace(status, kind="ComponentStatus", api_version="v1"))


HANDLERS: dict[str, Callable[[Registry, Resource, Request], Awaitable[Response]]] = {
    "bindings": bindings,
    "componentstatuses": component_statuses,
}
