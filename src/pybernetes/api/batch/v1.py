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
from ..types import Always, Enum, Int32, Int64, ListType, Patch, Required, Time


class CronJob(Kind):
    """Makes jobs on a schedule."""

    spec: Annotated[CronJobSpec | None, Required, Always({})] = None
    status: Annotated[CronJobStatus | None, Always({})] = None


class CronJobSpec(Struct):
    schedule: Annotated[str | None, Required, Always("")] = None
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: Annotated[str | None, Enum("Allow", "Forbid", "Replace")] = None
    suspend: bool | None = None
    job_template: Annotated[JobTemplateSpec | None, Required, Always({})] = None
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


class JobTemplateSpec(Struct):
    metadata: Annotated[ObjectMeta | None, Always({})] = None
    spec: Annotated[JobSpec | None, Always({})] = None


class JobSpec(Struct):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    template: Annotated[PodTemplateSpec | None, Required, Always({})] = None
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: Annotated[str | None, Enum("Indexed", "NonIndexed")] = None
    suspend: bool | None = None
    pod_replacement_policy: Annotated[str | None, Enum("Failed", "TerminatingOrFailed")] = None
    managed_by: str | None = None


class PodFailurePolicy(Struct):
    rules: Annotated[list[PodFailurePolicyRule] | None, Required, Always(None), ListType("atomic")] = None


class PodFailurePolicyRule(Struct):
    action: Annotated[str | None, Required, Always(""), Enum("Count", "FailIndex", "FailJob", "Ignore")] = None
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: Annotated[list[PodFailurePolicyOnPodConditionsPattern] | None, ListType("atomic")] = None


class PodFailurePolicyOnExitCodesRequirement(Struct):
    container_name: str | None = None
    operator: Annotated[str | None, Required, Always(""), Enum("In", "NotIn")] = None
    values: Annotated[list[Int32] | None, Required, Always(None), ListType("set")] = None


class PodFailurePolicyOnPodConditionsPattern(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Always("")] = None


class SuccessPolicy(Struct):
    rules: Annotated[list[SuccessPolicyRule] | None, Required, Always(None), ListType("atomic")] = None


class SuccessPolicyRule(Struct):
    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


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
    terminating: Int32 | None = None
    completed_indexes: str | None = None
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    ready: Int32 | None = None


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
