"""Bodies of requests as the audit log shows them: with what the server has made of them when it read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api import scheme
from pybernetes.api.authentication.defaults import set_token_request_defaults
from pybernetes.api.gocompat import goencoder
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource, Subresource
from pybernetes.net.http import Request

from ..bodies import as_json
from ..registry.strategy import defaults_of


def as_sent(request: Request) -> bytes:
    """The body in JSON, whatever form it came in. Raises ValueError or APIError."""
    info = request.info
    if info.verb == "patch":
        from pybernetes.api.yaml import yaml_to_json

        is_yaml = "yaml" in request.headers.get("content-type", "")
        return msgspec.json.format(yaml_to_json(request.body)[0] if is_yaml else request.body, indent=-1)
    resource = scheme.resource(info.group, info.version, info.resource)
    kind, version = (resource.kind, resource.api_version) if resource else ("", "")
    body, _ = as_json(request, kind, version)
    return msgspec.json.format(body, indent=-1)


def kind_at(request: Request) -> tuple[str, str] | None:
    """The version and kind that a body must have; None if they are not known."""
    info = request.info
    resource = scheme.resource(info.group, info.version, info.resource)
    if resource is None or info.subresource:
        return None
    return resource.api_version, resource.kind


def as_decoded(request: Request, body: bytes) -> bytes:
    """With its kind, defaults and the fields that are always there; what is not strictly its kind stays as it came."""
    info = request.info
    resource = scheme.resource(info.group, info.version, info.resource)
    if resource is None:
        return body
    subresource = resource.subresource(info.subresource) if info.subresource else None
    try:
        if subresource is None or subresource.kind is None:
            obj = scheme.decoder(resource).decode(body)
            default = defaults_of(resource)
            own = resource.api_version, resource.kind
        else:
            obj, own = _of_subresource(resource, subresource, body)
            default = _SUBRESOURCE_DEFAULTS.get(subresource.kind)
        if default is not None:
            default(obj)
        obj.api_version, obj.kind = obj.api_version or own[0], obj.kind or own[1]
        if obj.metadata is None:
            obj.metadata = ObjectMeta()
        goencoder.fill(obj)
        return goencoder.encode(obj)
    except (ValueError, RecursionError):
        return body


def _of_subresource(resource: Resource, subresource: Subresource, body: bytes) -> tuple[Any, tuple[str, str]]:
    """The object posted to a subresource, and its version and kind. Raises ValueError."""
    group = resource.group if subresource.group is None else subresource.group
    version = subresource.version or resource.version
    api_version, kind = f"{group}/{version}" if group else version, subresource.kind or ""
    cls = scheme.type_for(api_version, kind)
    if cls is None:
        raise ValueError(f"{api_version} has no {kind}")
    return msgspec.json.decode(body, type=cls), (api_version, kind)


_SUBRESOURCE_DEFAULTS: dict[str, Callable[[Any], object]] = {"TokenRequest": set_token_request_defaults}
