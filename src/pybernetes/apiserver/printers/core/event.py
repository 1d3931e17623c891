"""Events: what happened to which object, when first, when last, how often.

An event of the newer API has an `eventTime` and perhaps a series instead of first, last and count.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import Event, EventSource, ObjectReference

from ..duration import since
from ..printer import Cells, Column, Printer, name, text, wide


def _cells(event: Event, now: float) -> Cells:
    subject = event.involved_object or ObjectReference()
    first = event.first_timestamp or event.event_time
    last, count = event.last_timestamp or first, event.count or 1
    if event.series is not None:
        last, count = event.series.last_observed_time, event.series.count or 0
    return [
        since(last, now),
        event.type or "",
        event.reason or "",
        (subject.kind or "").lower() + (f"/{subject.name}" if subject.name else ""),
        subject.field_path or "",
        _source(event),
        (event.message or "").strip(),
        since(first, now),
        count,
        name(event),
    ]


def _source(event: Event) -> str:
    source = event.source or EventSource()
    component = source.component or event.reporting_component or ""
    instance = source.host or event.reporting_instance
    return f"{component}, {instance}" if instance else component


EVENT: Final = Printer(
    (
        text("Last Seen", "Time since it happened last"),
        text("Type", "Normal or Warning"),
        text("Reason", "What happened, in a word"),
        text("Object", "To what it happened"),
        wide("Subobject", "To which part of it"),
        wide("Source", "Who says so"),
        text("Message", "What happened"),
        wide("First Seen", "Time since it happened first"),
        wide("Count", "How often it happened"),
        Column("Name", format="name", description="Name of the event", priority=1),
    ),
    _cells,
)
