"""The kinds of policy/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..meta.v1.deleteoptions import DeleteOptions
from ..meta.v1.labelselector import LabelSelector
from ..meta.v1.objectmeta import Condition
from ..types import Always, Enum, Int32, Int64, IntOrString, ListType, Patch, Pointer, Time


class Eviction(Kind):
    """Asks to delete a pod, unless a PodDisruptionBudget objects."""

    delete_options: DeleteOptions | None = None


class PodDisruptionBudget(Kind):
    """How many pods may be missing on purpose."""

    spec: Annotated[PodDisruptionBudgetSpec | None, Always({})] = None
    status: Annotated[PodDisruptionBudgetStatus | None, Always({})] = None


class PodDisruptionBudgetSpec(Struct):
    min_available: IntOrString | None = None
    selector: Annotated[LabelSelector | None, Patch("replace")] = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: Annotated[str | None, Pointer, Enum("AlwaysAllow", "IfHealthyBudget")] = None


class PodDisruptionBudgetStatus(Struct):
    observed_generation: Int64 | None = None
    disrupted_pods: dict[str, Time] | None = None
    disruptions_allowed: Annotated[Int32 | None, Always(0)] = None
    current_healthy: Annotated[Int32 | None, Always(0)] = None
    desired_healthy: Annotated[Int32 | None, Always(0)] = None
    expected_pods: Annotated[Int32 | None, Always(0)] = None
    conditions: Annotated[list[Condition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = None
