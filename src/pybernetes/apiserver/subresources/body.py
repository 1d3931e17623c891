"""Bodies and answers of subresources that speak another kind than their resource."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from pybernetes.api import strict
from pybernetes.api.base import Kind, Struct
from pybernetes.api.errors import BadRequest
from pybernetes.api.gocompat import goencoder
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request, Response

from ..admission.plugin import CREATE, Attributes
from ..bodies import as_json
from ..negotiation import output_format
from ..pipeline.respond import TRANSFORMS, answer, write
from ..registry.registry import Registry

T = TypeVar("T", bound=Struct)
K = TypeVar("K", bound=Kind)
_decoders: dict[type[Struct], msgspec.json.Decoder[Any]] = {}


def decode_body(
    request: Request,
    cls: type[T],
    api_version: str,
    validation: str,
    body: bytes | None = None,
    *,
    also: tuple[str, ...] = (),
) -> T:
    """The object of this class in the body; `also` are older versions that look the same. Raises BadRequest."""
    decoder = _decoders.get(cls)
    if decoder is None:
        decoder = _decoders[cls] = msgspec.json.Decoder(cls)
    repeated: list[str] = []
    if body is None:
        body, repeated = as_json(request, cls.__name__, api_version)
    obj: T
    obj, problems = strict.decode(cls, decoder, body, api_version, validation, repeated)
    request.warnings.extend(problems)
    if getattr(obj, "api_version", None) not in also:
        strict.check_kind(obj, cls, api_version, body)
    return obj


def check_place(meta: ObjectMeta | None, request: Request, kind: str) -> None:
    """Check that an object posted to a subresource names the object of the path. Raises BadRequest."""
    check_namespace(meta, request)
    if meta is None or meta.name != request.info.name:
        raise BadRequest(f"name in URL does not match name in {kind} object")


def check_namespace(meta: ObjectMeta | None, request: Request) -> None:
    """Check that a posted object is in the namespace of the path, for which permission was given. Raises BadRequest."""
    if meta is not None and meta.namespace and meta.namespace != request.info.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def answer_object(
    request: Request, obj: Any, api_version: str, status: int = 200, *, of: Resource | None = None
) -> Response:
    """An object of a kind that is not stored. One that belongs to a resource can be a Table as well."""
    obj.kind, obj.api_version = type(obj).__name__, api_version
    if of is None:
        return write(goencoder.encode(obj), output_format(request.headers, request.info.query), status)
    form = output_format(request.headers, request.info.query, transforms=TRANSFORMS)
    return answer(request, of, goencoder.encode(obj), form, status)


def success(request: Request, status: int = 201) -> Response:
    """A Status that says it went well."""
    raw = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":%d}' % status
    return write(raw, output_format(request.headers, request.info.query), status)


async def admit_body(
    registry: Registry,
    request: Request,
    resource: Resource,
    obj: K,
    api_version: str,
    *,
    dry_run: bool,
    options: object,
) -> K:
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
    admitted: K = attributes.new
    return admitted
