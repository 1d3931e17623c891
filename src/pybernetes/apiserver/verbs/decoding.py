"""From a request's body to an object of the kind the path speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pybernetes.api import scheme, strict
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request

from ..bodies import as_json
from ..registry.resource_store import ResourceStore


def decode_object(store: ResourceStore, request: Request, validation: str) -> Any:
    """The object in a create's or update's body. Raises BadRequest; what may be tolerated becomes a warning."""
    json, repeated = as_json(request, store.resource.kind, store.resource.api_version)
    if store.custom is not None:
        return store.custom.read(json, validation, request.warnings, repeated)
    return decode_json(store.resource, json, validation, request.warnings, repeated)


def decode_json(
    resource: Resource, json: bytes, validation: str, warnings: list[str], repeated: Sequence[str] = ()
) -> Any:
    """An object from JSON, in canonical form, with its unknown and duplicate fields treated as `validation` says."""
    api_version = resource.api_version
    obj, problems = strict.decode(resource.type, scheme.decoder(resource), json, api_version, validation, repeated)
    strict.check_kind(obj, resource.type, api_version, json)
    warnings.extend(problems)
    return obj
