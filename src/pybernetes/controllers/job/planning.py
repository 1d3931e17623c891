"""Which pods a Job needs next and which it has too many of; and what a new pod looks like."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import msgspec

from pybernetes.api.core.v1.container import Container
from pybernetes.api.core.v1.env import EnvVar, EnvVarSource, ObjectFieldSelector
from pybernetes.api.core.v1.pod import Pod, PodSpec, PodTemplateSpec
from pybernetes.api.meta.v1.objectmeta import ObjectMeta

from . import conditions, pods
from .backoff import remaining_for_index
from .indexes import Indexes
from .policies import judge_failure
from .survey import Survey, indexes_of, is_indexed, spec_of

MAX_PODS_PER_SYNC: Final = 500
"""So that a large Job does not keep the others waiting."""

COMPLETION_INDEX_ENV: Final = "JOB_COMPLETION_INDEX"

_MAX_GENERATE_NAME: Final = 58
"""63 characters of a name less the 5 that are generated."""


@dataclass(slots=True)
class Plan:
    """One sync either deletes or creates: what comes of a deletion is seen by the next."""

    delete: list[Pod] = field(default_factory=list)
    create: list[int | None] = field(default_factory=list)
    """One for each new pod: its index, None in a Job without indexes."""
    wait: float | None = None
    """Seconds after which pods may be created that may not be yet."""


def plan(survey: Survey, now: float) -> Plan:
    """Plan the pods to create and delete for the Job's spec."""
    job, spec = survey.job, spec_of(survey.job)
    if conditions.is_suspended(job):
        return Plan(delete=list(survey.active))
    active = len(survey.active)
    wanted = _wanted(survey)
    surplus = _surplus(survey, max(0, active - wanted))
    if surplus:
        return Plan(delete=surplus[:MAX_PODS_PER_SYNC])
    leaving = len(survey.terminating) if pods.only_replaces_failed(job) else 0
    missing = wanted - leaving - active
    if missing <= 0:
        return Plan()
    per_index = spec.backoff_limit_per_index is not None
    if not per_index and (wait := survey.backoff.remaining(now)) > 0:
        return Plan(wait=wait)
    missing = min(missing, MAX_PODS_PER_SYNC)
    if not is_indexed(job):
        return Plan(create=[None] * missing)
    pending = list(islice(_taken(survey).missing(spec.completions or 0), missing))
    if not per_index:
        return Plan(create=[*pending])
    waits = {index: remaining_for_index(survey.held.get(index), now) for index in pending}
    due: list[int | None] = [index for index, wait in waits.items() if wait <= 0]
    return Plan(create=due) if due or not waits else Plan(wait=min(waits.values()))


def _wanted(survey: Survey) -> int:
    """How many pods should run."""
    spec = spec_of(survey.job)
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        # One success means that the work is done: those that still run may finish.
        return len(survey.active) if survey.succeeded > 0 else parallelism
    return max(0, min(spec.completions - survey.succeeded, parallelism))


def _surplus(survey: Survey, at_least: int) -> list[Pod]:
    """Active pods to delete: of each index all but the best, those without a valid index, then as many as needed."""
    remove: list[Pod] = []
    keep = sorted(survey.active, key=pods.deletion_order)
    if is_indexed(survey.job):
        completions = spec_of(survey.job).completions or 0
        best: dict[int, Pod] = {}
        for pod in keep:
            index = pods.valid_index(pod, completions)
            worse = pod if index is None else best.get(index)
            if index is not None:
                best[index] = pod
            if worse is not None:
                remove.append(worse)
        keep = sorted(best.values(), key=pods.deletion_order)
    return remove + keep[: max(0, at_least - len(remove))]


def _taken(survey: Survey) -> Indexes:
    """The indexes that need no new pod."""
    taken = survey.succeeded_indexes | indexes_of(survey.active)
    if pods.only_replaces_failed(survey.job):
        taken |= indexes_of(survey.terminating)
    return taken | survey.failed_indexes if survey.failed_indexes is not None else taken


def pod_for(survey: Survey, index: int | None) -> Pod:
    """A new pod of the Job, for an index if it has them; the owner is left to the caller."""
    job = survey.job
    name = job.metadata.name if job.metadata else None
    template = spec_of(job).template or PodTemplateSpec()
    meta, spec = template.metadata or ObjectMeta(), template.spec or PodSpec()
    labels, annotations = dict(meta.labels or {}), dict(meta.annotations or {})
    finalizers = list(meta.finalizers or ())
    if pods.TRACKING_FINALIZER not in finalizers:
        finalizers.append(pods.TRACKING_FINALIZER)
    generate_name = f"{name}-"
    if index is not None:
        annotations[pods.COMPLETION_INDEX] = labels[pods.COMPLETION_INDEX] = str(index)
        annotations.update(_failure_counts(survey, index))
        generate_name = generate_name_for(name or "", index)
        spec = msgspec.structs.replace(
            spec,
            hostname=f"{name}-{index}",
            containers=_with_index(spec.containers),
            init_containers=_with_index(spec.init_containers),
        )
    metadata = ObjectMeta(
        generate_name=generate_name,
        labels=labels or None,
        annotations=annotations or None,
        finalizers=finalizers,
    )
    return Pod(metadata=metadata, spec=spec)


def generate_name_for(name: str, index: int) -> str:
    """The beginning of the names of an index's pods; the index is never cut off."""
    ending = f"-{index}-"
    return name[: _MAX_GENERATE_NAME - len(ending)] + ending


def _failure_counts(survey: Survey, index: int) -> dict[str, str]:
    """The failures of the index so far, as annotations that the next pod carries on."""
    spec = spec_of(survey.job)
    if spec.backoff_limit_per_index is None:
        return {}
    counted = ignored = 0
    replaced = survey.held.get(index)
    if replaced is not None:
        counted, ignored = pods.index_failure_count(replaced), pods.index_ignored_failure_count(replaced)
        if judge_failure(spec.pod_failure_policy, replaced).counts:
            counted += 1
        else:
            ignored += 1
    result = {pods.INDEX_FAILURE_COUNT: str(counted)}
    if ignored:
        result[pods.INDEX_IGNORED_FAILURE_COUNT] = str(ignored)
    return result


def _with_index(containers: list[Container] | None) -> list[Container] | None:
    """The containers with their index in the environment, unless they have such a variable."""
    if containers is None:
        return None
    variable = EnvVar(
        name=COMPLETION_INDEX_ENV,
        value_from=EnvVarSource(
            field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{pods.COMPLETION_INDEX}']")
        ),
    )
    return [
        each
        if any(env.name == COMPLETION_INDEX_ENV for env in each.env or ())
        else msgspec.structs.replace(each, env=[*(each.env or ()), variable])
        for each in containers
    ]
