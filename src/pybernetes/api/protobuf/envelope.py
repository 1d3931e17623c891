"""The envelope of every object: a magic number of four bytes, and a message that names the kind.

The kind and the version of an object are in the envelope only, so they are put into the JSON from there.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from .messages import message
from .wire import ProtobufError, read

PREFIX: Final = b"k8s\x00"

# Kinds that every group and version knows.
_EVERYWHERE: Final = frozenset(
    ("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "Status", "UpdateOptions")
)
_encode = msgspec.json.Encoder().encode


class Envelope(NamedTuple):
    """An object that is not read yet."""

    api_version: str
    kind: str
    raw: bytes


def open_envelope(body: bytes) -> Envelope:
    """Decode the envelope of a body. Raises ProtobufError."""
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(PREFIX):
        raise ProtobufError(
            f"provided data does not appear to be a protobuf message, expected prefix [{' '.join(map(str, PREFIX))}]"
        )
    if len(body) == len(PREFIX):
        raise ProtobufError("empty body")
    unknown = message("", "Unknown")
    assert unknown is not None
    found = read(unknown, body[len(PREFIX) :])
    about = found.get("typeMeta", {})
    api_version = about.get("apiVersion", "")
    if api_version.count("/") > 1:
        api_version = ""  # as if it were not there, as upstream does
    return Envelope(api_version, about.get("kind", ""), found.get("raw", b""))


def as_json(envelope: Envelope, api_version: str = "", kind: str = "") -> bytes | None:
    """The object in JSON, None if nothing is known of its kind. Raises ProtobufError.

    `api_version` and `kind` say what it is if the envelope does not.
    """
    group, _, version = (envelope.api_version or api_version).rpartition("/")
    kind = envelope.kind or kind
    known = message(f"{group.partition('.')[0] or 'core'}/{version}", kind)
    if known is None and kind in _EVERYWHERE:
        known = message("meta/v1", kind)
    if known is None:
        return None
    value: dict[str, Any] = {}
    if envelope.kind:
        value["kind"] = envelope.kind
    if envelope.api_version:
        value["apiVersion"] = envelope.api_version
    return _encode(value | read(known, envelope.raw))
