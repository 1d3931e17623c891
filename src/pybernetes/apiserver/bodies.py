"""Bodies as JSON, whatever they came as.

Reading YAML takes about two microseconds a byte, so a large one is read in a thread before its verb begins, while the
server goes on with other requests.
"""

from __future__ import annotations

import asyncio

from pybernetes.api.errors import BadRequest
from pybernetes.api.strict import unrecognized

from .http import Request
from .negotiation import YAML, body_media

LARGE = 32 << 10  # bytes of YAML that are read in a thread

JSONBody = tuple[bytes, list[str]]
"""A body as JSON, and what it said twice as far as JSON cannot."""


async def read_ahead(request: Request) -> None:
    """Read a large YAML body now, so that `as_json` and `yaml_as_json` find it read."""
    if len(request.body) < LARGE or "yaml" not in request.headers.get("content-type", ""):
        return
    from .yaml import YAMLProblem, yaml_to_json

    try:
        request.read = await asyncio.get_running_loop().run_in_executor(None, yaml_to_json, request.body)
    except YAMLProblem as problem:
        request.read = problem


def as_json(request: Request, kind: str) -> JSONBody:
    """The body of a request that carries an object of a kind. Raises BadRequest, UnsupportedMediaType."""
    if body_media(request.headers) != YAML:
        return request.body, []
    from .yaml import YAMLProblem

    try:
        return yaml_as_json(request)
    except YAMLProblem as problem:
        raise BadRequest(unrecognized(kind, request.body, str(problem))) from problem


def yaml_as_json(request: Request) -> JSONBody:
    """The body of a request, which is YAML. Raises YAMLProblem."""
    if request.read is not None:
        if isinstance(request.read, Exception):
            raise request.read
        found: JSONBody = request.read
        return found
    from .yaml import yaml_to_json

    return yaml_to_json(request.body)
