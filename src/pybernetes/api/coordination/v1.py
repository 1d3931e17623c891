"""The kinds of coordination/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..types import Always, Int32, MicroTime, Pointer


class Lease(Kind):
    """Who holds a lock, and until when; also the heartbeat of nodes."""

    spec: Annotated[LeaseSpec | None, Always({})] = None


class LeaseSpec(Struct):
    holder_identity: Annotated[str | None, Pointer] = None
    lease_duration_seconds: Annotated[Int32 | None, Pointer] = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: Annotated[Int32 | None, Pointer] = None
    strategy: Annotated[str | None, Pointer] = None
    preferred_holder: Annotated[str | None, Pointer] = None
