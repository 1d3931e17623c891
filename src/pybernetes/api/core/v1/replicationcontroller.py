"""core/v1: replicationcontroller.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Kind, Struct
from ...types import Always, Default, Int32, Int64, ListType, MapType, Patch, Pointer, Required, Time
from .pod import PodTemplateSpec


class ReplicationController(Kind):
    """Keeps a number of pods alive; ReplicaSet took its place."""

    spec: Annotated[ReplicationControllerSpec | None, Always({})] = None
    status: Annotated[ReplicationControllerStatus | None, Always({})] = None


class ReplicationControllerSpec(Struct):
    replicas: Annotated[Int32 | None, Pointer, Default(1)] = None
    min_ready_seconds: Annotated[Int32 | None, Default(0)] = None
    selector: Annotated[dict[str, str] | None, MapType("atomic")] = None
    template: PodTemplateSpec | None = None


class ReplicationControllerStatus(Struct):
    replicas: Annotated[Int32 | None, Required, Always(0)] = None
    fully_labeled_replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    observed_generation: Int64 | None = None
    conditions: Annotated[
        list[ReplicationControllerCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")
    ] = None


class ReplicationControllerCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None
