"""Admission of what is posted but not stored as it came: bindings, evictions, token requests, reviews."""

from __future__ import annotations

from typing import TypeVar

from pybernetes.api.base import Kind
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request

from ..admission.plugin import CREATE, Attributes
from ..registry.registry import Registry

T = TypeVar("T", bound=Kind)


async def admit_body(
    registry: Registry,
    request: Request,
    resource: Resource,
    obj: T,
    api_version: str,
    *,
    dry_run: bool,
    options: object,
) -> T:
    """Let admission change and judge a posted object; what it makes of it. `resource` is the one of the path.

    To be called when the body is read and before it has any effect.
    """
    info = request.info
    if info.subresource and resource.namespaced and obj.metadata is not None:
        obj.metadata.namespace = info.namespace
    attributes = Attributes(
        CREATE,
        resource,
        info.subresource,
        info.namespace,
        info.name or (obj.metadata.name if obj.metadata else None) or "",
        obj,
        None,
        request.user,
        dry_run,
        request.warnings,
        options,
        resource,
        (api_version, type(obj).__name__),
        annotations=None if request.audit is None else request.audit.annotations,
    )
    await registry.admission.admit(attributes)
    await registry.admission.validate(attributes)
    admitted: T = attributes.new
    return admitted
