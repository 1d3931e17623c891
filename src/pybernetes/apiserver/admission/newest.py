"""Of several objects that are marked as the default, the newest counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def newest_with(objects: Iterable[Any], annotations: Iterable[str]) -> str | None:
    """The name of the newest object with the value `true` for one of the annotations; by name among equals."""
    marked = [
        each.metadata
        for each in objects
        if any((each.metadata.annotations or {}).get(key) == "true" for key in annotations)
    ]
    if not marked:
        return None
    newest = max(meta.creation_timestamp or "" for meta in marked)
    return str(min(meta.name for meta in marked if (meta.creation_timestamp or "") == newest))
