"""Defaults for the kinds of batch/v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..core.defaults.pod import default_pod_template_spec
from ..core.v1.pod import PodTemplateSpec
from ..meta.v1.objectmeta import ObjectMeta
from .v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec

BACKOFF_LIMIT: Final = 6
NO_BACKOFF_LIMIT: Final = (1 << 31) - 1
"""With a limit for each index, the limit for all of them together should never be reached."""


def default_job(job: Job) -> None:
    """One pod, run until it succeeds or has failed six times."""
    spec = job.spec
    if spec is None:
        spec = job.spec = JobSpec()
    template = _default_template(spec)
    if spec.parallelism is None:
        spec.parallelism = 1
        if spec.completions is None:
            spec.completions = 1
    if spec.backoff_limit is None:
        spec.backoff_limit = BACKOFF_LIMIT if spec.backoff_limit_per_index is None else NO_BACKOFF_LIMIT
    labels = template.metadata.labels if template.metadata else None
    if labels:
        meta = job.metadata
        if meta is None:
            meta = job.metadata = ObjectMeta()
        if not meta.labels:
            # The same dict on purpose: labels that identify the job's pods are added to both.
            meta.labels = labels
    if spec.completion_mode is None:
        spec.completion_mode = "NonIndexed"
    if spec.suspend is None:
        spec.suspend = False
    if spec.pod_replacement_policy is None:
        spec.pod_replacement_policy = "TerminatingOrFailed" if spec.pod_failure_policy is None else "Failed"
    if spec.manual_selector is None:
        spec.manual_selector = False


def default_cron_job(cron_job: CronJob) -> None:
    """Jobs may overlap; a few of the finished ones are kept. The template's job is completed when it is made."""
    spec = cron_job.spec
    if spec is None:
        spec = cron_job.spec = CronJobSpec()
    template = spec.job_template
    if template is None:
        template = spec.job_template = JobTemplateSpec()
    if template.spec is None:
        template.spec = JobSpec()
    _default_template(template.spec)
    if not spec.concurrency_policy:
        spec.concurrency_policy = "Allow"
    if spec.suspend is None:
        spec.suspend = False
    if spec.successful_jobs_history_limit is None:
        spec.successful_jobs_history_limit = 3
    if spec.failed_jobs_history_limit is None:
        spec.failed_jobs_history_limit = 1


def _default_template(spec: JobSpec) -> PodTemplateSpec:
    template = spec.template
    if template is None:
        template = spec.template = PodTemplateSpec()
    default_pod_template_spec(template)
    if spec.pod_failure_policy is not None:
        for rule in spec.pod_failure_policy.rules or ():
            for pattern in rule.on_pod_conditions or ():
                if not pattern.status:
                    pattern.status = "True"
    return template


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"CronJob": default_cron_job, "Job": default_job}
