"""meta/v1: listmeta.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Struct
from ...types import Always, Int64, Pointer, Required


class ListMeta(Struct):
    """What every list says about itself."""

    self_link: str | None = None
    resource_version: str | None = None
    continue_: str | None = None
    remaining_item_count: Annotated[Int64 | None, Pointer] = None
    shard_info: ShardInfo | None = None


class ShardInfo(Struct):
    selector: Annotated[str | None, Required, Always("")] = None
