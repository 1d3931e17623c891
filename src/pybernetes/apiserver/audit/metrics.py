"""Metrics of the audit log, with upstream's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..counters import Counter
from ..metrics import COLLECTORS

if TYPE_CHECKING:
    from prometheus_client.core import Metric

EVENTS = Counter("apiserver_audit_event_total", "Events that were recorded.", ())
ERRORS = Counter("apiserver_audit_error_total", "Events that were lost, by the backend that lost them.", ("plugin",))
LEVELS = Counter("apiserver_audit_level_total", "Requests by the level they are recorded at.", ("level",))
REJECTED = Counter("apiserver_audit_requests_rejected_total", "Requests refused as they could not be recorded.", ())


def collect() -> Iterator[Metric]:
    """The families, for the library."""
    for each in (EVENTS, ERRORS, LEVELS, REJECTED):
        yield from each.collect()


for each in (EVENTS, REJECTED):
    each.add(times=0)  # so that they are there before the first event, as upstream's
COLLECTORS.append(collect)
