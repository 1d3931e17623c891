"""The base of every kind.

All fields are optional and `None` means absent: what is required is a matter of validation, which can name the
field and the object, and not of decoding. Unknown fields are refused by the decoder because that is free; whoever
wants to ignore or report them prunes first (`api/strict.py`).

`gc=False`: kinds are trees, never cycles, and the collector need not walk them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from .meta.v1 import ListMeta, ObjectMeta


class Struct(
    msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True, gc=False
):
    """A piece of a kind: snake_case here, camelCase on the wire."""
