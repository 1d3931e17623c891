"""Jobs."""

from __future__ import annotations

import copy
from typing import Any, Final

from ... import names
from ...apps.shared import (
    MISMATCH,
    SPEC,
    compiled,
    template_labels,
    validate_immutable,
)
from ...core.v1.affinity import Affinity
from ...core.v1.pod import PodSpec, PodTemplateSpec
from ...core.validation.podtemplate import validate_pod_template_spec
from ...equality import semantically_equal
from ...field import FieldError, Path, invalid, not_supported, required, too_long
from ...gocompat.goform import go_form
from ...labels import NOTHING
from ...meta.v1.objectmeta import ObjectMeta
from ...meta.validation import (
    IMMUTABLE,
    has_invalid_label_value,
    validate_label_selector,
    validate_not_negative,
    validate_object_meta,
    validate_object_meta_update,
)
from ..v1 import Job, JobSpec, JobStatus, PodFailurePolicy, SuccessPolicy
from .job_policies import validate_pod_failure_policy, validate_success_policy

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
LEGACY_CONTROLLER_UID: Final = "controller-uid"
LEGACY_JOB_NAME: Final = "job-name"

INDEXED: Final = "Indexed"
NON_INDEXED: Final = "NonIndexed"
MAX_PARALLELISM: Final = 100_000
MAX_FAILED_INDEXES: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
MAX_PARALLELISM_OF_MANY: Final = 10_000
MAX_FAILED_INDEXES_OF_MANY: Final = 10_000
MAX_MANAGED_BY_BYTES: Final = 63

_REPLACEMENT_POLICIES = ("Failed", "TerminatingOrFailed")


def validate_job(job: Job) -> list[FieldError]:
    """A new Job, whose selector has been made already."""
    return _validate_whole(job, None, prefixed_labels=True)


def validate_job_update(new: Job, old: Job) -> list[FieldError]:
    """A changed Job. Upstream looks at the spec twice and so reports its errors twice."""
    spec, before = new.spec or JobSpec(), old.spec or JobSpec()
    had = template_labels(before.template or PodTemplateSpec()) or {}
    prefixed = JOB_NAME in had and CONTROLLER_UID in had
    errors = _validate_whole(new, before, prefixed_labels=prefixed)
    errors += validate_object_meta_update(new.metadata, old.metadata)
    errors += _validate_spec(spec, before)
    errors += _validate_completions(spec, before, SPEC.child("completions"))
    errors += validate_immutable(spec.selector, before.selector, SPEC.child("selector"))
    errors += _validate_template_update(spec, before, old.status or JobStatus())
    errors += validate_immutable(spec.completion_mode, before.completion_mode, SPEC.child("completionMode"))
    if not semantically_equal(spec.pod_failure_policy, before.pod_failure_policy):
        errors.append(invalid(SPEC.child("podFailurePolicy"), _printed(spec.pod_failure_policy), IMMUTABLE))
    errors += validate_immutable(
        spec.backoff_limit_per_index, before.backoff_limit_per_index, SPEC.child("backoffLimitPerIndex")
    )
    if spec.managed_by != before.managed_by:  # an empty name is not the same as none
        errors.append(invalid(SPEC.child("managedBy"), spec.managed_by, IMMUTABLE))
    if not semantically_equal(spec.success_policy, before.success_policy):
        errors.append(invalid(SPEC.child("successPolicy"), _printed(spec.success_policy), IMMUTABLE))
    return errors


def _validate_whole(job: Job, before: JobSpec | None, *, prefixed_labels: bool) -> list[FieldError]:
    meta, spec = job.metadata or ObjectMeta(), job.spec or JobSpec()
    errors = validate_object_meta(meta, True, names.name_is_dns_subdomain)
    errors += _validate_generated_selector(meta, spec, prefixed_labels)
    errors += _validate_spec(spec, before)
    if spec.completion_mode == INDEXED and spec.completions is not None and spec.completions > 0:
        host = f"{meta.name or ''}-{spec.completions - 1}"
        if names.is_dns1123_label(host):
            detail = f"will not able to create pod with invalid DNS label: {host}"
            errors.append(invalid(Path("metadata", "name"), meta.name or "", detail))
    return errors


def _validate_generated_selector(meta: ObjectMeta, spec: JobSpec, prefixed: bool) -> list[FieldError]:
    """Check that the generated selector and labels are unchanged, unless `manualSelector` is set."""
    if spec.manual_selector or spec.selector is None:
        return []
    uid, name = meta.uid or "", meta.name or ""
    errors = [] if uid else [required(Path("metadata", "uid"))]
    expected = {LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name}
    if prefixed:
        expected |= {CONTROLLER_UID: uid, JOB_NAME: name}
    labels = template_labels(spec.template or PodTemplateSpec()) or {}
    for key, value in expected.items():
        at = SPEC.child("template", "metadata", "labels").key(key)
        if key not in labels:
            errors.append(required(at, f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(invalid(at, labels, f"must be '{value}'"))
    selector = compiled(spec.selector)
    if selector is not None and not selector.matches(expected):
        errors.append(invalid(SPEC.child("selector"), spec.selector, "`selector` not auto-generated"))
    return errors


def _validate_spec(spec: JobSpec, before: JobSpec | None) -> list[FieldError]:
    errors = validate_job_spec(spec, SPEC, before)
    lenient = before is not None and has_invalid_label_value(before.selector)
    if spec.selector is None:
        errors.append(required(SPEC.child("selector")))
    else:
        errors += validate_label_selector(spec.selector, SPEC.child("selector"), allow_invalid_values=lenient)
    selector = compiled(spec.selector) if spec.selector is not None else NOTHING
    labels = template_labels(spec.template or PodTemplateSpec())
    if selector is not None and not selector.matches(labels or {}):
        errors.append(invalid(SPEC.child("template", "metadata", "labels"), labels, MISMATCH))
    return errors


def validate_job_spec(spec: JobSpec, path: Path, before: JobSpec | None = None) -> list[FieldError]:
    """Everything but the selector; the same in a Job and in a CronJob's template."""
    errors = validate_not_negative(spec.parallelism, path.child("parallelism"))
    errors += validate_not_negative(spec.completions, path.child("completions"))
    errors += validate_not_negative(spec.active_deadline_seconds, path.child("activeDeadlineSeconds"))
    errors += validate_not_negative(spec.backoff_limit, path.child("backoffLimit"))
    errors += validate_not_negative(spec.ttl_seconds_after_finished, path.child("ttlSecondsAfterFinished"))
    errors += validate_not_negative(spec.backoff_limit_per_index, path.child("backoffLimitPerIndex"))
    if spec.max_failed_indexes is not None:
        errors += validate_not_negative(spec.max_failed_indexes, path.child("maxFailedIndexes"))
        if spec.backoff_limit_per_index is None:
            errors.append(required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
    if spec.managed_by is not None:
        errors += _validate_managed_by(spec.managed_by, path.child("managedBy"))
    errors += _validate_completion_mode(spec, path)
    if spec.pod_failure_policy is not None:
        errors += validate_pod_failure_policy(spec, path.child("podFailurePolicy"))
    if spec.success_policy is not None:
        at = path.child("successPolicy")
        if spec.completion_mode == INDEXED:
            errors += validate_success_policy(spec, at)
        else:
            errors.append(invalid(at, _printed(spec.success_policy), "requires indexed completion mode"))
    errors += _validate_replacement_policy(spec, path.child("podReplacementPolicy"))
    template = spec.template or PodTemplateSpec()
    errors += validate_pod_template_spec(template, path.child("template"), before.template if before else None)
    return errors + _validate_restart_policy(spec, template, path.child("template", "spec", "restartPolicy"))


def _printed(policy: PodFailurePolicy | SuccessPolicy | None) -> Any:
    return None if policy is None else go_form(policy)


def _validate_managed_by(value: str, path: Path) -> list[FieldError]:
    errors = validate_domain_prefixed_path(value, path)
    if len(value.encode()) > MAX_MANAGED_BY_BYTES:
        errors.append(too_long(path, "", MAX_MANAGED_BY_BYTES))
    return errors


def validate_domain_prefixed_path(value: str, path: Path) -> list[FieldError]:
    """Something like `acme.io/foo`."""
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, host, problem) for problem in names.is_dns1123_subdomain(host)]
    return errors + [invalid(path, rest, problem) for problem in names.is_http_path(rest)]


def _validate_completion_mode(spec: JobSpec, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    mode = spec.completion_mode
    if mode is not None and mode not in (NON_INDEXED, INDEXED):
        errors.append(not_supported(path.child("completionMode"), mode, (NON_INDEXED, INDEXED)))
    if mode == INDEXED:
        errors += _validate_indexed(spec, path)
    if mode is None or mode == NON_INDEXED:
        for value, name in (
            (spec.backoff_limit_per_index, "backoffLimitPerIndex"),
            (spec.max_failed_indexes, "maxFailedIndexes"),
        ):
            if value is not None:
                errors.append(invalid(path.child(name), value, "requires indexed completion mode"))
    return errors


def _validate_indexed(spec: JobSpec, path: Path) -> list[FieldError]:
    """Limits that keep the lists of indexes in the status short enough to store."""
    errors: list[FieldError] = []
    completions, parallelism, failed = spec.completions, spec.parallelism, spec.max_failed_indexes
    if completions is None:
        errors.append(required(path.child("completions"), f"when completion mode is {INDEXED}"))
    if parallelism is not None and parallelism > MAX_PARALLELISM:
        detail = f"must be less than or equal to {MAX_PARALLELISM} when completion mode is {INDEXED}"
        errors.append(invalid(path.child("parallelism"), parallelism, detail))
    if completions is not None and failed is not None and failed > completions:
        errors.append(invalid(path.child("maxFailedIndexes"), failed, "must be less than or equal to completions"))
    if failed is not None and failed > MAX_FAILED_INDEXES:
        detail = f"must be less than or equal to {MAX_FAILED_INDEXES}"
        errors.append(invalid(path.child("maxFailedIndexes"), failed, detail))
    if completions is not None and completions > MANY_COMPLETIONS and spec.backoff_limit_per_index is not None:
        when = f"when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
        if failed is None:
            detail = f"must be specified when completions is above {MANY_COMPLETIONS}"
            errors.append(required(path.child("maxFailedIndexes"), detail))
        if parallelism is not None and parallelism > MAX_PARALLELISM_OF_MANY:
            detail = f"must be less than or equal to {MAX_PARALLELISM_OF_MANY} {when}"
            errors.append(invalid(path.child("parallelism"), parallelism, detail))
        if failed is not None and failed > MAX_FAILED_INDEXES_OF_MANY:
            detail = f"must be less than or equal to {MAX_FAILED_INDEXES_OF_MANY} {when}"
            errors.append(invalid(path.child("maxFailedIndexes"), failed, detail))
    return errors


def _validate_replacement_policy(spec: JobSpec, path: Path) -> list[FieldError]:
    policy = spec.pod_replacement_policy
    if policy is None:
        return []
    supported = _REPLACEMENT_POLICIES if spec.pod_failure_policy is None else ("Failed",)
    return [] if policy in supported else [not_supported(path, policy, supported)]


def _validate_restart_policy(spec: JobSpec, template: PodTemplateSpec, path: Path) -> list[FieldError]:
    policy = (template.spec.restart_policy if template.spec else None) or ""
    if policy in ("", "Always"):
        # Always is also what defaulting writes, so it means: not given.
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.pod_failure_policy is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _validate_completions(spec: JobSpec, before: JobSpec, path: Path) -> list[FieldError]:
    """An Indexed Job may grow and shrink, if it runs all of its indexes at once."""
    if spec.completion_mode != INDEXED:
        return validate_immutable(spec.completions, before.completions, path)
    if spec.completions is None or spec.completions == before.completions or spec.completions == spec.parallelism:
        return []
    return [invalid(path, spec.completions, "can only be modified in tandem with spec.parallelism")]


def _validate_template_update(spec: JobSpec, before: JobSpec, status: JobStatus) -> list[FieldError]:
    """The template is fixed, except that a Job on hold may be placed and sized differently before it goes on."""
    template, old = spec.template or PodTemplateSpec(), before.template or PodTemplateSpec()
    if not _on_hold(before, status):
        same = semantically_equal(template, old)
        return [] if same else [invalid(SPEC.child("template"), go_form(template), IMMUTABLE)]
    new_pod, old_pod = template.spec or PodSpec(), copy.copy(old.spec or PodSpec())
    old_pod.affinity = _with_node_affinity(old_pod.affinity, new_pod.affinity)
    for name in ("node_selector", "tolerations", "scheduling_gates"):
        setattr(old_pod, name, getattr(new_pod, name))
    for name in ("containers", "init_containers"):
        setattr(old_pod, name, _with_resources(getattr(old_pod, name), getattr(new_pod, name)))
    same = semantically_equal(new_pod, old_pod)
    return [] if same else [invalid(SPEC.child("template.spec"), go_form(new_pod), IMMUTABLE)]


def _on_hold(before: JobSpec, status: JobStatus) -> bool:
    suspended = any(each.type == "Suspended" and each.status == "True" for each in status.conditions or ())
    return bool(before.suspend) and (status.start_time is None or suspended) and not status.active


def _with_node_affinity(old: Affinity | None, new: Affinity | None) -> Affinity | None:
    if old is None and new is None:
        return None
    changed = Affinity(
        node_affinity=new.node_affinity if new else None,
        pod_affinity=old.pod_affinity if old else None,
        pod_anti_affinity=old.pod_anti_affinity if old else None,
    )
    return None if new is None and changed == Affinity() else changed


def _with_resources(old: list[Any] | None, new: list[Any] | None) -> list[Any] | None:
    if old is None or new is None or len(old) != len(new):
        return old
    merged = []
    for before, after in zip(old, new, strict=True):
        if before.name == after.name:
            before = copy.copy(before)
            before.resources = after.resources
        merged.append(before)
    return merged
