"""Bodies as JSON, whatever they came as.

Reading YAML takes about two microseconds a byte, so a large one is read in a thread before its verb begins, while the
server goes on with other requests. Protobuf takes a tenth of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from pybernetes.api import scheme, strict
from pybernetes.api.errors import BadRequest, UnsupportedMediaType
from pybernetes.api.resources import Resource
from pybernetes.api.strict import cannot_be_handled_as, unrecognized
from pybernetes.net.http import Request

from .negotiation import JSON, MEDIA, YAML, body_media

LARGE = 32 << 10  # bytes of YAML that are read in a thread
_BARE = "DeleteOptions"  # what is wrong with them is said without a word around it

JSONBody = tuple[bytes, list[str]]
"""A body as JSON, and what it said twice as far as JSON cannot."""


async def read_ahead(request: Request) -> None:
    """Read a large body now, if it is YAML, so that `as_json` and `yaml_as_json` find it read."""
    if "yaml" not in request.headers.get("content-type", ""):
        return
    from pybernetes.api.yaml import YAMLProblem, yaml_to_json

    try:
        request.read = await asyncio.get_running_loop().run_in_executor(None, yaml_to_json, request.body)
    except YAMLProblem as problem:
        request.read = problem


def as_json(request: Request, kind: str, api_version: str) -> JSONBody:
    """The body of a request that carries an object of a kind. Raises BadRequest, UnsupportedMediaType."""
    if request.headers.get("content-type", JSON) == JSON or (media := body_media(request.headers)) == JSON:
        return request.body, []
    if media != YAML:
        return _protobuf_as_json(request.body, kind, api_version), []
    from pybernetes.api.yaml import YAMLProblem

    try:
        return yaml_as_json(request)
    except YAMLProblem as problem:
        why = str(problem)
        raise BadRequest(why if kind == _BARE else unrecognized(kind, request.body, why)) from problem


def yaml_as_json(request: Request) -> JSONBody:
    """The body of a request, which is YAML. Raises YAMLProblem."""
    if request.read is not None:
        if isinstance(request.read, Exception):
            raise request.read
        found: JSONBody = request.read
        return found
    from pybernetes.api.yaml import yaml_to_json

    return yaml_to_json(request.body)


def _protobuf_as_json(body: bytes, kind: str, api_version: str) -> bytes:
    from pybernetes.api.protobuf import ProtobufError, as_json, open_envelope

    options = kind == _BARE
    try:
        envelope = open_envelope(body)
    except ProtobufError as error:
        raise BadRequest(str(error) if options else unrecognized(kind, body, str(error))) from None
    try:
        json = as_json(envelope, api_version, kind)
    except ProtobufError as error:
        raise BadRequest(
            str(error)
            if options
            else cannot_be_handled_as(envelope.kind or kind, envelope.api_version or api_version, kind, str(error))
        ) from None
    if json is not None:
        return json
    named = {"kind": envelope.kind or kind, "apiVersion": envelope.api_version or api_version}
    if named == {"kind": kind, "apiVersion": api_version}:
        raise UnsupportedMediaType(MEDIA)  # a kind of the user's, which has no numbers
    return msgspec.json.encode(named)  # enough to refuse it by


def decode_json(
    resource: Resource, json: bytes, validation: str, warnings: list[str], repeated: Sequence[str] = ()
) -> Any:
    """An object from JSON, in canonical form, with its unknown and duplicate fields treated as `validation` says."""
    api_version = resource.api_version
    obj, problems = strict.decode(resource.type, scheme.decoder(resource), json, api_version, validation, repeated)
    strict.check_kind(obj, resource.type, api_version, json)
    warnings.extend(problems)
    return obj
