"""The base of every kind.

All fields are optional and `None` means absent: what is required is a matter of validation, which can name the
field and the object, and not of decoding. Unknown fields are refused by the decoder because that is free; callers that
ignore or report them prune first (`api/strict.py`).

`gc=False`: kinds are trees, never cycles, and the collector need not walk them.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from .types import Always


class Struct(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """A piece of a kind: snake_case here, camelCase on the wire."""


class Kind(Struct):
    """A kind that is served by itself. These fields are encoded first, in this order; the store relies on it."""

    kind: str | None = None
    api_version: str | None = None
    metadata: Annotated[objectmeta.ObjectMeta | None, Always({})] = None


# Last, and the module instead of the class: ObjectMeta is a Struct too, and annotations are resolved when first used.
from .meta.v1 import objectmeta  # noqa: E402
