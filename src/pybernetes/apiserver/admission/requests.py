"""The AdmissionRequest: what a webhook is sent, and what expressions see as `request`."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.resources import Resource
from pybernetes.api.scheme import split_api_version

from .documents import kind_of
from .plugin import DELETE, Attributes

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def admission_request(attributes: Attributes, target: Resource) -> dict[str, Any]:
    """Everything but uid and the objects, the request being seen in the version of `target`."""
    requested = attributes.requested
    user = attributes.user
    info: dict[str, Any] = {}
    if user is not None:
        for key, value in (("username", user.name), ("uid", user.uid), ("groups", list(user.groups))):
            if value:
                info[key] = value
        if user.extra:
            info["extra"] = user.extra
    request: dict[str, Any] = {"kind": _kind(*kind_of(attributes, target)), "resource": _resource(target)}
    if attributes.subresource:
        request["subResource"] = attributes.subresource
    request["requestKind"] = _kind(*attributes.kind)
    request["requestResource"] = _resource(requested)
    if attributes.subresource:
        request["requestSubResource"] = attributes.subresource
    for key, value in (("name", attributes.name), ("namespace", attributes.namespace)):
        if value:
            request[key] = value
    request["operation"] = attributes.operation
    request["userInfo"] = info
    request["dryRun"] = attributes.dry_run
    request["options"] = _options(attributes)
    return request


def _kind(api_version: str, kind: str) -> dict[str, str]:
    group, version = split_api_version(api_version)
    return {"group": group, "version": version, "kind": kind}


def _resource(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _options(attributes: Attributes) -> Any:
    kind = _OPTIONS.get(attributes.operation)
    if kind is None:
        return None
    options = attributes.options
    made: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if attributes.operation == DELETE:
        if options is not None:
            found = msgspec.to_builtins(options)
            made |= {key: value for key, value in found.items() if value is not None and key not in made}
        return made
    if attributes.dry_run:
        made["dryRun"] = ["All"]
    if options is not None:
        for key, value in (("fieldManager", options.field_manager), ("fieldValidation", options.field_validation)):
            if value and value != "Warn":  # the default, which clients leave out
                made[key] = value
    return made
