"""Defaults for a PriorityClass: its pods push others aside unless it says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .v1 import PriorityClass


def default_priority_class(priority_class: PriorityClass) -> None:
    """Preemption."""
    if priority_class.preemption_policy is None:
        priority_class.preemption_policy = "PreemptLowerPriority"


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"PriorityClass": default_priority_class}
