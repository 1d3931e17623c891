"""How Jobs and CronJobs are created, updated and deleted.

A Job gets a selector of its own and labels for its pods that name it, so that no two Jobs ever fight over a pod.
"""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.batch.v1 import CronJob, CronJobStatus, Job, JobSpec, JobStatus
from pybernetes.api.batch.validation.job import (
    CONTROLLER_UID,
    INDEXED,
    JOB_NAME,
    LEGACY_CONTROLLER_UID,
    LEGACY_JOB_NAME,
    MANY_COMPLETIONS,
    MAX_PARALLELISM_OF_MANY,
)
from pybernetes.api.core.v1.pod import PodTemplateSpec
from pybernetes.api.field import Path
from pybernetes.api.meta.v1 import DeleteOptions
from pybernetes.api.meta.v1.labelselector import LabelSelector
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .workloads import WorkloadStrategy

_TOO_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)


_PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


class JobStrategy(WorkloadStrategy):
    """Jobs."""

    def new_status(self) -> JobStatus:
        return JobStatus()

    def default_propagation(self) -> str:
        return "Orphan"

    def warnings_on_delete(self, options: DeleteOptions) -> list[str]:
        silent = options.propagation_policy is None and options.orphan_dependents is None
        return [_PODS_STAY] if silent else []

    def prepare_for_create(self, obj: Job, context: Context) -> None:
        super().prepare_for_create(obj, context)
        if obj.spec is not None and not obj.spec.manual_selector:
            generate_selector(obj)
        _label_like_its_pods(obj)

    def template_warnings(self, new: Any, old: Any | None) -> list[str]:
        return _index_warnings(Path("spec"), new.spec) + super().template_warnings(new, old)


class CronJobStrategy(WorkloadStrategy):
    """CronJobs."""

    def new_status(self) -> CronJobStatus:
        return CronJobStatus()

    def template_path(self) -> Path:
        return Path("spec", "jobTemplate", "spec", "template")

    def template(self, obj: CronJob) -> Any:
        return obj.spec.job_template.spec.template  # type: ignore[union-attr]

    def template_warnings(self, new: Any, old: Any | None) -> list[str]:
        warnings = _index_warnings(Path("spec", "jobTemplate", "spec"), new.spec.job_template.spec)
        return warnings + super().template_warnings(new, old)

    def warnings_on_update(self, new: CronJob, old: CronJob, context: Context) -> list[str]:
        warnings = super().warnings_on_update(new, old, context)
        if new.spec is not None and "TZ" in (new.spec.schedule or ""):
            warnings.append(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )
        return warnings


def generate_selector(job: Job) -> None:
    """Label the job's pods with its name and uid and select them; labels the user gave stay, validation judges them."""
    assert job.metadata is not None
    spec, uid, name = job.spec or JobSpec(), job.metadata.uid or "", job.metadata.name or ""
    template = spec.template or PodTemplateSpec()
    if template.metadata is None:
        template.metadata = ObjectMeta()
    labels = template.metadata.labels
    if labels is None:
        labels = template.metadata.labels = {}
    for key, value in (
        (LEGACY_JOB_NAME, name),
        (JOB_NAME, name),
        (LEGACY_CONTROLLER_UID, uid),
        (CONTROLLER_UID, uid),
    ):
        labels.setdefault(key, value)
    if spec.selector is None:
        spec.selector = LabelSelector()
    if spec.selector.match_labels is None:
        spec.selector.match_labels = {}
    spec.selector.match_labels.setdefault(CONTROLLER_UID, uid)


def _label_like_its_pods(job: Job) -> None:
    """A Job without labels has those of its pods."""
    template = job.spec.template if job.spec else None
    if job.metadata and not job.metadata.labels and template and template.metadata:
        job.metadata.labels = template.metadata.labels


def _index_warnings(path: Path, spec: JobSpec) -> list[str]:
    if spec.completion_mode != INDEXED:
        return []
    many = (spec.completions or 0) > MANY_COMPLETIONS and (spec.parallelism or 0) > MAX_PARALLELISM_OF_MANY
    return [f"{path}: {_TOO_MANY_INDEXES}"] if many else []


STRATEGIES: Final[dict[str, type[Strategy]]] = {"cronjobs": CronJobStrategy, "jobs": JobStrategy}
