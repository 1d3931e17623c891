"""PartialObjectMetadata, and the metadata of lists."""

from __future__ import annotations

import msgspec


class ListMeta(msgspec.Struct, omit_defaults=True, rename="camel", gc=False):
    """The metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _OnlyMetadata(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_metadata = msgspec.json.Decoder(_OnlyMetadata).decode


def partial_metadata(raw: bytes, version: str) -> bytes:
    """An object reduced to its metadata."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b","metadata":%b}' % (
        version.encode(),
        _metadata(raw).metadata,
    )
