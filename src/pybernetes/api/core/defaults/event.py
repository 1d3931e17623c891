"""Defaults for Events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..v1.event import Event, EventSource
from ..v1.reference import ObjectReference


def default_event(obj: Event) -> None:
    """Nothing has a default; these fields are shown even if they are empty."""
    if obj.involved_object is None:
        obj.involved_object = ObjectReference()
    if obj.source is None:
        obj.source = EventSource()
    if obj.reporting_component is None:
        obj.reporting_component = ""
    if obj.reporting_instance is None:
        obj.reporting_instance = ""


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"Event": default_event}
