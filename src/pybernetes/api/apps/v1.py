"""The kinds of apps/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..core.v1.persistentvolumeclaim import PersistentVolumeClaim
from ..core.v1.pod import PodTemplateSpec
from ..meta.v1.labelselector import LabelSelector
from ..types import Always, Enum, Int32, Int64, IntOrString, ListType, Patch, Pointer, RawExtension, Required, Time


class ControllerRevision(Kind):
    """A snapshot of what a controller ran, to roll back to."""

    data: Annotated[RawExtension, Always(None)] = None
    revision: Annotated[Int64 | None, Required, Always(0)] = None


class DaemonSet(Kind):
    """A pod on every node that fits."""

    spec: Annotated[DaemonSetSpec | None, Always({})] = None
    status: Annotated[DaemonSetStatus | None, Always({})] = None


class DaemonSetSpec(Struct):
    selector: Annotated[LabelSelector | None, Required, Always(None)] = None
    template: Annotated[PodTemplateSpec | None, Required, Always({})] = None
    update_strategy: Annotated[DaemonSetUpdateStrategy | None, Always({})] = None
    min_ready_seconds: Int32 | None = None
    revision_history_limit: Annotated[Int32 | None, Pointer] = None


class DaemonSetUpdateStrategy(Struct):
    type: Annotated[str | None, Enum("OnDelete", "RollingUpdate")] = None
    rolling_update: RollingUpdateDaemonSet | None = None


class RollingUpdateDaemonSet(Struct):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DaemonSetStatus(Struct):
    current_number_scheduled: Annotated[Int32 | None, Required, Always(0)] = None
    number_misscheduled: Annotated[Int32 | None, Required, Always(0)] = None
    desired_number_scheduled: Annotated[Int32 | None, Required, Always(0)] = None
    number_ready: Annotated[Int32 | None, Required, Always(0)] = None
    observed_generation: Int64 | None = None
    updated_number_scheduled: Int32 | None = None
    number_available: Int32 | None = None
    number_unavailable: Int32 | None = None
    collision_count: Annotated[Int32 | None, Pointer] = None
    conditions: Annotated[list[DaemonSetCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = (
        None
    )


class DaemonSetCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None


class Deployment(Kind):
    """Pods without identity, replaced step by step when the template changes."""

    spec: Annotated[DeploymentSpec | None, Always({})] = None
    status: Annotated[DeploymentStatus | None, Always({})] = None


class DeploymentSpec(Struct):
    replicas: Annotated[Int32 | None, Pointer] = None
    selector: Annotated[LabelSelector | None, Required, Always(None)] = None
    template: Annotated[PodTemplateSpec | None, Required, Always({})] = None
    strategy: Annotated[DeploymentStrategy | None, Always({}), Patch("retainKeys")] = None
    min_ready_seconds: Int32 | None = None
    revision_history_limit: Annotated[Int32 | None, Pointer] = None
    paused: bool | None = None
    progress_deadline_seconds: Annotated[Int32 | None, Pointer] = None


class DeploymentStrategy(Struct):
    type: Annotated[str | None, Enum("Recreate", "RollingUpdate")] = None
    rolling_update: RollingUpdateDeployment | None = None


class RollingUpdateDeployment(Struct):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DeploymentStatus(Struct):
    observed_generation: Int64 | None = None
    replicas: Int32 | None = None
    updated_replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    unavailable_replicas: Int32 | None = None
    terminating_replicas: Annotated[Int32 | None, Pointer] = None
    conditions: Annotated[list[DeploymentCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = (
        None
    )
    collision_count: Annotated[Int32 | None, Pointer] = None


class DeploymentCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_update_time: Annotated[Time | None, Always(None)] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None


class ReplicaSet(Kind):
    """Keeps a number of equal pods alive."""

    spec: Annotated[ReplicaSetSpec | None, Always({})] = None
    status: Annotated[ReplicaSetStatus | None, Always({})] = None


class ReplicaSetSpec(Struct):
    replicas: Annotated[Int32 | None, Pointer] = None
    min_ready_seconds: Int32 | None = None
    selector: Annotated[LabelSelector | None, Required, Always(None)] = None
    template: Annotated[PodTemplateSpec | None, Always({})] = None


class ReplicaSetStatus(Struct):
    replicas: Annotated[Int32 | None, Required, Always(0)] = None
    fully_labeled_replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    terminating_replicas: Annotated[Int32 | None, Pointer] = None
    observed_generation: Int64 | None = None
    conditions: Annotated[list[ReplicaSetCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = (
        None
    )


class ReplicaSetCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None


class StatefulSet(Kind):
    """Pods with identity: stable names, order, storage of their own."""

    spec: Annotated[StatefulSetSpec | None, Always({})] = None
    status: Annotated[StatefulSetStatus | None, Always({})] = None


class StatefulSetSpec(Struct):
    replicas: Annotated[Int32 | None, Pointer] = None
    selector: Annotated[LabelSelector | None, Required, Always(None)] = None
    template: Annotated[PodTemplateSpec | None, Required, Always({})] = None
    volume_claim_templates: Annotated[list[PersistentVolumeClaim] | None, ListType("atomic")] = None
    service_name: Annotated[str | None, Always("")] = None
    pod_management_policy: Annotated[str | None, Enum("OrderedReady", "Parallel")] = None
    update_strategy: Annotated[StatefulSetUpdateStrategy | None, Always({})] = None
    revision_history_limit: Annotated[Int32 | None, Pointer] = None
    min_ready_seconds: Int32 | None = None
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetUpdateStrategy(Struct):
    type: Annotated[str | None, Enum("OnDelete", "RollingUpdate")] = None
    rolling_update: RollingUpdateStatefulSetStrategy | None = None


class RollingUpdateStatefulSetStrategy(Struct):
    partition: Annotated[Int32 | None, Pointer] = None
    max_unavailable: IntOrString | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(Struct):
    when_deleted: str | None = None
    when_scaled: str | None = None


class StatefulSetOrdinals(Struct):
    start: Annotated[Int32 | None, Always(0)] = None


class StatefulSetStatus(Struct):
    observed_generation: Int64 | None = None
    replicas: Annotated[Int32 | None, Required, Always(0)] = None
    ready_replicas: Int32 | None = None
    current_replicas: Int32 | None = None
    updated_replicas: Int32 | None = None
    current_revision: str | None = None
    update_revision: str | None = None
    collision_count: Annotated[Int32 | None, Pointer] = None
    conditions: Annotated[
        list[StatefulSetCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")
    ] = None
    available_replicas: Annotated[Int32 | None, Always(0)] = None


class StatefulSetCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None
