"""Makes the documents in a process of its own.

It takes half a second of computing and tens of megabytes, once; the server's event loop has no time for the one and its
memory no room for the other. So a child process does it (`python -m pybernetes.apiserver.openapi.build`): it gets the
version and the kinds that are not built in on its standard input, answers with compressed bytes, and is gone.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Callable
from hashlib import sha512
from typing import Any

import msgspec

_LEVEL = 6


class Packed(msgspec.Struct, gc=False):
    """A document, ready to be sent to clients that take gzip."""

    etag: str
    """The hash of the JSON, as upstream makes it; both forms have the same, told apart by `Vary: Accept`."""
    body: bytes


class Custom(msgspec.Struct, gc=False):
    """What a group and version that is not built in adds: `paths` and `definitions` to v2, and a document to v3."""

    v2: msgspec.Raw
    v3: msgspec.Raw


class Order(msgspec.Struct, gc=False):
    """What to make: everything of version 2 or 3, with these kinds besides, by their paths (`apis/GROUP/VERSION`)."""

    version: int
    protobuf: bool = False
    custom: dict[str, Custom] = {}


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

    if order.version == 2:
        custom = [msgspec.json.decode(each.v2) for each in order.custom.values()]
        return {"": _pack(documents.v2(custom), encode_v2 if order.protobuf else None)}
    made = documents.v3() | {path: msgspec.json.decode(each.v3) for path, each in order.custom.items()}
    encode = encode_v3 if order.protobuf else None
    return {path: _pack(document, encode) for path, document in sorted(made.items())}


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
