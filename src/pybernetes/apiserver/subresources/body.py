"""Bodies and answers of subresources that speak another kind than their resource."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from pybernetes.api import strict
from pybernetes.api.base import Struct
from pybernetes.api.scheme import encoder

from ..http import Request, Response
from ..negotiation import body_media, output_format, to_json
from ..output import write

T = TypeVar("T", bound=Struct)
_decoders: dict[type[Struct], msgspec.json.Decoder[Any]] = {}


def decode_body(request: Request, cls: type[T], api_version: str, validation: str, body: bytes | None = None) -> T:
    """The object of this class in the body. Raises BadRequest."""
    decoder = _decoders.get(cls)
    if decoder is None:
        decoder = _decoders[cls] = msgspec.json.Decoder(cls)
    repeated: list[str] = []
    if body is None:
        body, repeated = to_json(request.body, body_media(request.headers), cls.__name__)
    obj: T
    obj, problems = strict.decode(cls, decoder, body, api_version, validation, repeated)
    request.warnings.extend(problems)
    strict.check_kind(obj, cls, api_version, body)
    return obj


def answer_object(request: Request, obj: Any, api_version: str, status: int = 200) -> Response:
    """An object of a kind that is not stored."""
    obj.kind, obj.api_version = type(obj).__name__, api_version
    return write(encoder.encode(obj), output_format(request.headers, request.info.query), status)


def success(request: Request, status: int = 201) -> Response:
    """A Status that says it went well."""
    raw = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":%d}' % status
    return write(raw, output_format(request.headers, request.info.query), status)
