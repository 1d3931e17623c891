"""Events about claims and volumes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UserEvent:
    """An event for the user."""

    type: str
    reason: str
    message: str
