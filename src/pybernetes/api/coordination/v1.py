"""The kinds of coordination/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..types import Always, Int32, MicroTime


class Lease(Kind):
    """Who holds a lock, and until when; also the heartbeat of nodes."""

    spec: Annotated[LeaseSpec | None, Always({})] = None


class LeaseSpec(Struct):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None
