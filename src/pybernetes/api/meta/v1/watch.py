"""meta/v1: watch.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Struct
from ...types import Always, RawExtension, Required


class WatchEvent(Struct):
    """A change, as a watch delivers it."""

    type: Annotated[str | None, Required, Always("")] = None
    object: Annotated[RawExtension, Required, Always(None)] = None
