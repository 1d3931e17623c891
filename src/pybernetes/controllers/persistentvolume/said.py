"""What users are told by events."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """What the user is told by an event."""

    type: str
    reason: str
    message: str
