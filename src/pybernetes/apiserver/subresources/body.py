"""Bodies and answers of subresources that speak another kind than their resource."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from pybernetes.api import strict, zeros
from pybernetes.api.base import Struct
from pybernetes.api.errors import BadRequest
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request, Response

from ..bodies import as_json
from ..negotiation import output_format
from ..output import TRANSFORMS, answer, write

T = TypeVar("T", bound=Struct)
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
        return write(zeros.encode(obj), output_format(request.headers, request.info.query), status)
    form = output_format(request.headers, request.info.query, transforms=TRANSFORMS)
    return answer(request, of, zeros.encode(obj), form, status)


def success(request: Request, status: int = 201) -> Response:
    """A Status that says it went well."""
    raw = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":%d}' % status
    return write(raw, output_format(request.headers, request.info.query), status)
