"""From a request's body to an object of the kind the path speaks of."""

from __future__ import annotations

from typing import Any

from pybernetes.net.http import Request

from ..bodies import as_json, decode_json
from ..registry.resource_store import ResourceStore


def decode_object(store: ResourceStore, request: Request, validation: str) -> Any:
    """The object in a create's or update's body. Raises BadRequest; what may be tolerated becomes a warning."""
    json, repeated = as_json(request, store.resource.kind, store.resource.api_version)
    if store.custom is not None:
        return store.custom.read(json, validation, request.warnings, repeated)
    return decode_json(store.resource, json, validation, request.warnings, repeated)
