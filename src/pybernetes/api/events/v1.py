"""The kinds of events/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..core.v1.event import EventSource
from ..core.v1.reference import ObjectReference
from ..types import Always, Int32, MicroTime, Required, Time


class Event(Kind):
    """Something that happened to an object, kept for an hour."""

    event_time: Annotated[MicroTime | None, Required, Always(None)] = None
    series: EventSeries | None = None
    reporting_controller: str | None = None
    reporting_instance: str | None = None
    action: str | None = None
    reason: str | None = None
    regarding: Annotated[ObjectReference | None, Always({})] = None
    related: ObjectReference | None = None
    note: str | None = None
    type: str | None = None
    deprecated_source: Annotated[EventSource | None, Always({})] = None
    deprecated_first_timestamp: Annotated[Time | None, Always(None)] = None
    deprecated_last_timestamp: Annotated[Time | None, Always(None)] = None
    deprecated_count: Int32 | None = None


class EventSeries(Struct):
    count: Annotated[Int32 | None, Required, Always(0)] = None
    last_observed_time: Annotated[MicroTime | None, Required, Always(None)] = None
