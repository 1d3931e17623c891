"""The kinds of batch/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..core.v1.pod import PodTemplateSpec
from ..core.v1.reference import ObjectReference
from ..meta.v1.labelselector import LabelSelector
from ..meta.v1.objectmeta import ObjectMeta
from ..types import Always, Enum, Int32, Int64, ListType, Patch, Pointer, Required, Time


class CronJob(Kind):
    """Makes jobs on a schedule."""

    spec: Annotated[CronJobSpec | None, Required, Always({})] = None
    status: Annotated[CronJobStatus | None, Always({})] = None


class CronJobSpec(Struct):
    schedule: Annotated[str | None, Required, Always("")] = None
    time_zone: Annotated[str | None, Pointer] = None
    starting_deadline_seconds: Annotated[Int64 | None, Pointer] = None
    concurrency_policy: Annotated[str | None, Enum("Allow", "Forbid", "Replace")] = None
    suspend: Annotated[bool | None, Pointer] = None
    job_template: Annotated[JobTemplateSpec | None, Required, Always({})] = None
    successful_jobs_history_limit: Annotated[Int32 | None, Pointer] = None
    failed_jobs_history_limit: Annotated[Int32 | None, Pointer] = None


class JobTemplateSpec(Struct):
    metadata: Annotated[ObjectMeta | None, Always({})] = None
    spec: Annotated[JobSpec | None, Always({})] = None


class JobSpec(Struct):
    parallelism: Annotated[Int32 | None, Pointer] = None
    completions: Annotated[Int32 | None, Pointer] = None
    active_deadline_seconds: Annotated[Int64 | None, Pointer] = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Annotated[Int32 | None, Pointer] = None
    backoff_limit_per_index: Annotated[Int32 | None, Pointer] = None
    max_failed_indexes: Annotated[Int32 | None, Pointer] = None
    selector: LabelSelector | None = None
    manual_selector: Annotated[bool | None, Pointer] = None
    template: Annotated[PodTemplateSpec | None, Required, Always({})] = None
    ttl_seconds_after_finished: Annotated[Int32 | None, Pointer] = None
    completion_mode: Annotated[str | None, Pointer, Enum("Indexed", "NonIndexed")] = None
    suspend: Annotated[bool | None, Pointer] = None
    pod_replacement_policy: Annotated[str | None, Pointer, Enum("Failed", "TerminatingOrFailed")] = None
    managed_by: Annotated[str | None, Pointer] = None


class PodFailurePolicy(Struct):
    rules: Annotated[list[PodFailurePolicyRule] | None, Required, Always(None), ListType("atomic")] = None


class PodFailurePolicyRule(Struct):
    action: Annotated[str | None, Required, Always(""), Enum("Count", "FailIndex", "FailJob", "Ignore")] = None
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: Annotated[list[PodFailurePolicyOnPodConditionsPattern] | None, ListType("atomic")] = None


class PodFailurePolicyOnExitCodesRequirement(Struct):
    container_name: Annotated[str | None, Pointer] = None
    operator: Annotated[str | None, Required, Always(""), Enum("In", "NotIn")] = None
    values: Annotated[list[Int32] | None, Required, Always(None), ListType("set")] = None


class PodFailurePolicyOnPodConditionsPattern(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Always("")] = None


class SuccessPolicy(Struct):
    rules: Annotated[list[SuccessPolicyRule] | None, Required, Always(None), ListType("atomic")] = None


class SuccessPolicyRule(Struct):
    succeeded_indexes: Annotated[str | None, Pointer] = None
    succeeded_count: Annotated[Int32 | None, Pointer] = None


class CronJobStatus(Struct):
    active: Annotated[list[ObjectReference] | None, ListType("atomic")] = None
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class Job(Kind):
    """Runs pods until enough of them have succeeded."""

    spec: Annotated[JobSpec | None, Always({})] = None
    status: Annotated[JobStatus | None, Always({})] = None


class JobStatus(Struct):
    conditions: Annotated[list[JobCondition] | None, ListType("atomic"), Patch("merge", "type")] = None
    start_time: Time | None = None
    completion_time: Time | None = None
    active: Int32 | None = None
    succeeded: Int32 | None = None
    failed: Int32 | None = None
    terminating: Annotated[Int32 | None, Pointer] = None
    completed_indexes: str | None = None
    failed_indexes: Annotated[str | None, Pointer] = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    ready: Annotated[Int32 | None, Pointer] = None


class JobCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_probe_time: Annotated[Time | None, Always(None)] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None


class UncountedTerminatedPods(Struct):
    succeeded: Annotated[list[str] | None, ListType("set")] = None
    failed: Annotated[list[str] | None, ListType("set")] = None
