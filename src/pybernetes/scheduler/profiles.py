"""The scheduler's profiles, each with its plugins by extension point.

This is the form that the configuration files are read into (`config/`), with all merging and defaulting done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .framework.extender import Extender

DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(slots=True)
class ProfileSpec:
    """One profile: which plugins, in which order, with which weights and args."""

    scheduler_name: str = DEFAULT_SCHEDULER
    points: dict[str, list[str]] = field(default_factory=dict)
    """For each extension point (`framework.plugin.EXTENSION_POINTS`) the plugins enabled there, in order."""
    weights: dict[str, int] = field(default_factory=dict)
    """Of the score plugins; 1 if not said."""
    args: dict[str, Any] = field(default_factory=dict)
    """By plugin: an object of its `Args`."""
    percentage_of_nodes_to_score: int | None = None
    check_all_filters: bool = False
    """Whether all filters run on a node after one rejected it, so that an unschedulable pod's message has all
    reasons."""


@dataclass(slots=True)
class SchedulerSpec:
    """The whole scheduler."""

    profiles: list[ProfileSpec] = field(default_factory=list)
    extenders: Sequence[Extender] = ()
    percentage_of_nodes_to_score: int | None = None
    """None or 0 = all nodes are looked at; they are looked at all at once, so sampling has nothing to save."""
    pod_initial_backoff_seconds: float = 1.0
    pod_max_backoff_seconds: float = 10.0
    pod_max_in_unschedulable_seconds: float = 300.0
