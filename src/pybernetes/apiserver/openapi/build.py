"""Makes the documents in a process of its own.

It takes half a second of computing and tens of megabytes, once; the server's event loop has no time for the one and its
memory no room for the other. So a child process does it (`python -m pybernetes.apiserver.openapi.build`): it gets the
version on its standard input, answers with compressed bytes, and is gone. What custom kinds add is made likewise, but
alone, and put into the documents here.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Callable
from hashlib import sha512
from typing import Any

import msgspec

from pybernetes.api import scheme
from pybernetes.api.resources import OPTIONAL

from .kinds import CustomKind

_LEVEL = 6
_QUICK = 3  # for what changes with every definition


class Packed(msgspec.Struct, gc=False):
    """A document, ready to be sent to clients that take gzip."""

    etag: str
    """The hash of the JSON, as upstream makes it; both forms have the same, distinguished by `Vary: Accept`."""
    body: bytes


def optional_resources() -> list[tuple[str, str, str]]:
    """Group, version and plural of what --runtime-config has added."""
    names = ((each.group, each.version, each.plural) for each, _ in OPTIONAL)
    return [name for name in names if scheme.resource(*name) is not None]


class Order(msgspec.Struct, gc=False):
    """The documents to build: all built-in kinds in version 2 or 3, or the parts of custom kinds.

    These stand by their paths (`apis/GROUP/VERSION`). Their part of version 3 is a document of its own, their part of
    version 2 is `FRAGMENTS`, or in protobuf a message that adds to another by being appended.
    """

    version: int
    protobuf: bool = False
    custom: dict[str, list[CustomKind]] | None = None
    optional: list[tuple[str, str, str]] = msgspec.field(default_factory=optional_resources)
    """The built-in versions that are served although they are off by default."""


FRAGMENTS = b"\0"
"""Between the paths and the definitions, which have no braces around them."""

_documents = msgspec.msgpack.Decoder(dict[str, Packed])


async def build(order: Order) -> dict[str, Packed]:
    """The documents by their paths; version 2 has one only, with an empty path. Raises RuntimeError."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-P", "-m", __name__]
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    output, errors = await child.communicate(msgspec.json.encode(order))
    if child.returncode:
        raise RuntimeError(f"the OpenAPI documents could not be made: {errors.decode(errors='replace')[-2000:]}")
    return _documents.decode(output)


def make(order: Order) -> dict[str, Packed]:
    """The same, here and now."""
    from . import documents
    from .protobuf import encode_v2, encode_v3

    for resource, priority in OPTIONAL:
        name = (resource.group, resource.version, resource.plural)
        if name in order.optional and scheme.resource(*name) is None:
            scheme.add(resource, priority)
    if order.custom is not None:
        return {path: _custom_part(kinds, order) for path, kinds in order.custom.items()}
    if order.version == 2:
        return {"": _pack(documents.v2(), encode_v2 if order.protobuf else None)}
    encode = encode_v3 if order.protobuf else None
    return {path: _pack(document, encode) for path, document in sorted(documents.v3().items())}


def _custom_part(kinds: list[CustomKind], order: Order) -> Packed:
    from .custom import part_v2, part_v3
    from .protobuf import encode_v2, encode_v3

    if order.version == 3:
        return _pack(part_v3(kinds), encode_v3 if order.protobuf else None)
    part = part_v2(kinds)
    json = [msgspec.json.encode(part[name])[1:-1] for name in ("paths", "definitions")]
    body = encode_v2(part) if order.protobuf else FRAGMENTS.join(json)
    return Packed(sha512(FRAGMENTS.join(json)).hexdigest().upper(), body)


def merge(base: Packed, parts: list[Packed], protobuf: bool) -> Packed:
    """The version 2 document with the parts of custom kinds. Takes time: not for the event loop."""
    whole = gzip.decompress(base.body)
    etag = sha512("".join([base.etag, *(part.etag for part in parts)]).encode()).hexdigest().upper()
    if protobuf:
        whole = b"".join([whole, *(part.body for part in parts)])
    else:
        paths, definitions = zip(*(part.body.split(FRAGMENTS) for part in parts), strict=True)
        head, inside, rest = whole.partition(b'"paths":{')
        middle, between, tail = rest.partition(b'},"definitions":{')
        whole = b"".join([head, inside, *(each + b"," for each in paths if each), middle])
        whole = b"".join([whole, between, *(each + b"," for each in definitions if each), tail])
    return Packed(etag, gzip.compress(whole, _QUICK))


def _pack(document: dict[str, Any], encode: Callable[[Any], bytes] | None) -> Packed:
    json = msgspec.json.encode(document)
    body = encode(document) if encode else json
    return Packed(sha512(json).hexdigest().upper(), gzip.compress(body, _LEVEL))


def main() -> None:
    """Read an order, write the documents."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    sys.stdout.buffer.write(msgspec.msgpack.encode(make(order)))


if __name__ == "__main__":
    main()
