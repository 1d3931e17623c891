"""The kinds of scheduling/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind
from ..types import Always, Enum, Int32, Pointer


class PriorityClass(Kind):
    """A name for the importance of pods."""

    value: Annotated[Int32 | None, Always(0)] = None
    global_default: bool | None = None
    description: str | None = None
    preemption_policy: Annotated[str | None, Pointer, Enum("Never", "PreemptLowerPriority")] = None
