"""The description of a custom resource for documents, small enough to be sent to the process that makes them."""

from __future__ import annotations

import msgspec


class CustomKind(msgspec.Struct, gc=False):
    """A custom resource in one version, as far as documents speak of it."""

    group: str
    version: str
    plural: str
    kind: str
    list_kind: str
    namespaced: bool
    status: bool
    scale: bool
    schema: msgspec.Raw
    preserves: bool = False
    selectable: list[str] = []
