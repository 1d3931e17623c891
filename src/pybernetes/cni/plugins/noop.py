"""Does nothing and passes on what plugins before it did; for lists that need a plugin but no network."""

from __future__ import annotations

from ..results import Result
from ..skel import Call, Plugin


def add(call: Call) -> Result:
    """What was done before, or nothing."""
    return call.prev_result or {}


def delete(call: Call) -> None:
    """There is nothing to take down."""


PLUGIN = Plugin("noop", add, delete)
