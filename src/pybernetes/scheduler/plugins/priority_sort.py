"""Orders the queue: higher priority first, then who waits longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..framework import EventWithHint, QueuedPodInfo
from ..framework.plugin import QueueSortPlugin


class PrioritySort(QueueSortPlugin):
    """By priority, then by time."""

    name = "PrioritySort"

    def sort_key(self, queued: QueuedPodInfo) -> Any:
        return (-queued.info.priority, queued.timestamp)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return ()
