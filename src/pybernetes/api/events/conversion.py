"""An Event is one object with two faces: core/v1, which is stored, and events.k8s.io/v1.

The fields are the same under other names; nothing is lost in either direction.
"""

from __future__ import annotations

from ..core.v1 import event as core
from . import v1

_CORE_NAMES = {
    "regarding": "involved_object",
    "note": "message",
    "reporting_controller": "reporting_component",
    "deprecated_source": "source",
    "deprecated_first_timestamp": "first_timestamp",
    "deprecated_last_timestamp": "last_timestamp",
    "deprecated_count": "count",
}


def to_core(event: v1.Event) -> core.Event:
    """The event as core/v1 shows it."""
    values = {_CORE_NAMES.get(name, name): getattr(event, name) for name in v1.Event.__struct_fields__}
    if event.series is not None:
        series = event.series
        values["series"] = core.EventSeries(count=series.count, last_observed_time=series.last_observed_time)
    return core.Event(**(values | {"api_version": "v1" if event.api_version else None}))


def from_core(event: core.Event) -> v1.Event:
    """The event as events.k8s.io/v1 shows it."""
    values = {name: getattr(event, _CORE_NAMES.get(name, name)) for name in v1.Event.__struct_fields__}
    if event.series is not None:
        series = event.series
        values["series"] = v1.EventSeries(count=series.count, last_observed_time=series.last_observed_time)
    for name in ("reporting_controller", "reporting_instance"):  # which core/v1 writes even when they are empty
        values[name] = values[name] or None
    return v1.Event(**(values | {"api_version": "events.k8s.io/v1" if event.api_version else None}))
