"""core/v1: event.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Kind, Struct
from ...meta.v1.objectmeta import ObjectMeta
from ...types import Always, Int32, MicroTime, Required, Time
from .reference import ObjectReference


class Event(Kind):
    """Something that happened to an object, kept for an hour."""

    metadata: Annotated[ObjectMeta | None, Required, Always({})] = None
    involved_object: Annotated[ObjectReference | None, Required, Always({})] = None
    reason: str | None = None
    message: str | None = None
    source: Annotated[EventSource | None, Always({})] = None
    first_timestamp: Annotated[Time | None, Always(None)] = None
    last_timestamp: Annotated[Time | None, Always(None)] = None
    count: Int32 | None = None
    type: str | None = None
    event_time: Annotated[MicroTime | None, Always(None)] = None
    series: EventSeries | None = None
    action: str | None = None
    related: ObjectReference | None = None
    reporting_component: Annotated[str | None, Always("")] = None
    reporting_instance: Annotated[str | None, Always("")] = None


class EventSeries(Struct):
    count: Int32 | None = None
    last_observed_time: Annotated[MicroTime | None, Always(None)] = None


class EventSource(Struct):
    component: str | None = None
    host: str | None = None
