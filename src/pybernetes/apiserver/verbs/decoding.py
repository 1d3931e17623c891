"""From a request's body to an object of the kind the path speaks of."""

from __future__ import annotations

from typing import Any

from pybernetes.api import normalize, scheme, strict
from pybernetes.api.errors import BadRequest
from pybernetes.api.resources import Resource

from ..http import Request
from ..negotiation import body_media, to_json
from ..registry.resource_store import ResourceStore


def decode_object(store: ResourceStore, request: Request, body: bytes, validation: str) -> Any:
    """The object in a create's or update's body. Raises BadRequest; what may be tolerated becomes a warning."""
    json = to_json(body, body_media(request.headers))
    return decode_json(store.resource, json, validation, request.warnings)


def decode_json(resource: Resource, json: bytes, validation: str, warnings: list[str]) -> Any:
    """An object from JSON, in canonical form, with its unknown and duplicate fields treated as `validation` says."""
    obj, problems = strict.decode(resource, scheme.decoder(resource), json, validation)
    if problems:
        if validation == "Strict":
            raise BadRequest(f"strict decoding error: {', '.join(problems)}")
        warnings.extend(problems)
    _check_type(resource, obj)
    normalize.normalize(obj)
    return obj


def _check_type(resource: Resource, obj: Any) -> None:
    """The body, if it says what it is, is what the path says."""
    kind, version = obj.kind, obj.api_version
    if kind and kind != resource.kind:
        said = scheme.split_api_version(version or resource.api_version)[1]
        raise BadRequest(
            f'{kind} in version "{said}" cannot be handled as a {resource.kind}: '
            f"no kind \"{kind}\" is served at this path"
        )
    if version and version != resource.api_version:
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )


def field_manager(request: Request) -> str:
    """Who owns the fields of a request that does not say: the client's name in its User-Agent."""
    return request.headers.get("user-agent", "").partition("/")[0][:128] or "unknown"
