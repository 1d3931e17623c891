"""The interface between the scheduler and its plugins. docs/scheduler.md is its guide, with an example."""

from __future__ import annotations

from .diagnosis import Diagnosis
from .events import Action, ClusterEvent, EventWithHint, Hint, Resource
from .handle import Handle
from .plugin import (
    MAX_SCORE,
    BindPlugin,
    FilterPlugin,
    Mask,
    Normalize,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    Refusals,
    ReservePlugin,
    RowArray,
    Rows,
    Scope,
    ScorePlugin,
    Scores,
    default_normalize,
)
from .podinfo import AffinityTerm, PodInfo
from .queued import QueuedPodInfo
from .recorder import Attempt, AttemptRecorder
from .state import CycleState
from .status import ERROR, PENDING, SKIP, UNRESOLVABLE, UNSCHEDULABLE, WAIT, Code, Status

__all__ = [
    "ERROR",
    "MAX_SCORE",
    "PENDING",
    "SKIP",
    "UNRESOLVABLE",
    "UNSCHEDULABLE",
    "WAIT",
    "Action",
    "AffinityTerm",
    "Attempt",
    "AttemptRecorder",
    "BindPlugin",
    "ClusterEvent",
    "Code",
    "CycleState",
    "Diagnosis",
    "EventWithHint",
    "FilterPlugin",
    "Handle",
    "Hint",
    "Mask",
    "Normalize",
    "PermitPlugin",
    "Plugin",
    "PodInfo",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QueuedPodInfo",
    "Refusals",
    "ReservePlugin",
    "Resource",
    "RowArray",
    "Rows",
    "Scope",
    "ScorePlugin",
    "Scores",
    "Status",
    "default_normalize",
]
