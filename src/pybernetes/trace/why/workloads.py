"""CronJobs and HorizontalPodAutoscalers."""

from __future__ import annotations

from dataclasses import replace

from .cluster import (
    BATCH,
    Answer,
    Cluster,
    Object,
    condition,
    events_of,
    name_of,
    namespace_of,
    owned_by,
    text_of,
    warnings_of,
)
from .facts import recent


def _resume(kind: str, thing: Object) -> str:
    patch = '{"spec":{"suspend":false}}'
    return f"kubectl patch {kind}/{name_of(thing)} -n {namespace_of(thing)} -p '{patch}'"


async def explain_cronjob(cluster: Cluster, thing: Object) -> Answer:
    """Suspended, never due, held up by a Job that still runs, or late."""
    spec, status = thing["spec"], thing.get("status") or {}
    if spec.get("suspend"):
        return Answer(
            "the CronJob is suspended: it makes no Jobs",
            fix=_resume("cronjob", thing),
        )
    warned = warnings_of(await events_of(cluster, thing))
    if warned and warned[-1].get("reason") in (
        "UnparseableSchedule",
        "UnparsableSchedule",
        "InvalidSchedule",
        "UnknownTimeZone",
    ):
        return Answer(
            f"its schedule {spec.get('schedule')!r} cannot be used: {warned[-1].get('message')}",
            fix="correct spec.schedule or spec.timeZone",
        )
    active = status.get("active") or []
    if active and spec.get("concurrencyPolicy") == "Forbid":
        return Answer(f"it waits until its Job {active[0].get('name')} has ended, because concurrencyPolicy is Forbid")
    if warned and warned[-1].get("reason") in ("MissSchedule", "TooManyMissedTimes", "FailedCreate"):
        return Answer(f"it has missed a start: {warned[-1].get('message')}", recent(warned))
    found = await cluster.list(BATCH, "jobs", namespace_of(thing))
    jobs = [each for each in found if owned_by(each, thing["metadata"].get("uid", ""))]
    if jobs:
        job = max(jobs, key=lambda each: str(each["metadata"].get("creationTimestamp") or ""))
        if condition(job, "Failed").get("status") == "True":
            why = await cluster.explain("job", job)
            chain = f"CronJob {name_of(thing)} → Job {name_of(job)}"
            return replace(
                why, sentence=f"its last Job {name_of(job)} failed: {why.sentence}", details=(chain, *why.details)
            )
    last = status.get("lastScheduleTime")
    return Answer(
        f"nothing is wrong: it was last started at {last}"
        if last
        else f"nothing is wrong: its schedule {spec.get('schedule')!r} has not come yet",
        healthy=True,
    )


async def explain_autoscaler(cluster: Cluster, thing: Object) -> Answer:
    """Whether it can measure and scale, and what limits it."""
    spec, status = thing["spec"], thing.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    shown = f"{target.get('kind')} {target.get('name')}"
    able, active, limited = (condition(thing, kind) for kind in ("AbleToScale", "ScalingActive", "ScalingLimited"))
    if able.get("status") == "False":
        missing = "not found" in text_of(able)
        return Answer(
            f"it cannot scale {shown}: {text_of(able)}",
            fix=f"create {shown}, or correct spec.scaleTargetRef" if missing else "",
        )
    if active.get("status") == "False":
        fix = ""
        if active.get("reason") == "ScalingDisabled":
            fix = f"scale {shown} to 1 or more"
        elif "missing request" in text_of(active):
            fix = "give every container of the target a resource request for the metric"
        elif active.get("reason") == "FailedGetResourceMetric":
            fix = "let the metrics API (metrics.k8s.io) answer: pods must run and nodes be ready"
        return Answer(f"it does not scale: {text_of(active)}", fix=fix)
    if limited.get("status") == "True" and limited.get("reason") in ("TooManyReplicas", "TooFewReplicas"):
        bound, name = (
            (spec.get("maxReplicas"), "maxReplicas")
            if limited["reason"] == "TooManyReplicas"
            else (spec.get("minReplicas", 1), "minReplicas")
        )
        return Answer(
            f"it keeps {status.get('currentReplicas')} replicas because of its {name} of {bound}: {text_of(limited)}",
            fix=f"change spec.{name}",
        )
    if not active:
        return Answer("its controller has not looked at it yet")
    return Answer(f"nothing is wrong: it keeps {status.get('currentReplicas')} replicas", healthy=True)
