"""Descriptions of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs."""

from __future__ import annotations

from pybernetes.kubectl.ages import human, timestamp
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.pods import write_template
from pybernetes.kubectl.describing.text import controlled_by, selector_text, when, write_annotations, write_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def deployment(this: Description) -> None:
    """A Deployment with its ReplicaSets."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.head(created=True)
    this.write(0, f"Selector:\t{selector_text(spec.get('selector'))}\n")
    total, updated = status.get("replicas", 0), status.get("updatedReplicas", 0)
    available, unavailable = status.get("availableReplicas", 0), status.get("unavailableReplicas", 0)
    this.write(
        0,
        f"Replicas:\t{spec.get('replicas', 1)} desired | {updated} updated | {total} total | {available} available |"
        f" {unavailable} unavailable\n",
    )
    this.write(0, f"StrategyType:\t{dig(spec, 'strategy', 'type', default='')}\n")
    this.write(0, f"MinReadySeconds:\t{spec.get('minReadySeconds', 0)}\n")
    rolling = dig(spec, "strategy", "rollingUpdate")
    if rolling:
        this.write(
            0,
            f"RollingUpdateStrategy:\t{rolling.get('maxUnavailable')} max unavailable,"
            f" {rolling.get('maxSurge')} max surge\n",
        )
    write_template(this, spec.get("template"))
    if status.get("conditions"):
        this.write(0, "Conditions:\n  Type\tStatus\tReason\n")
        this.write(1, "----\t------\t------\n")
        for each in status["conditions"]:
            this.write(1, f"{each['type']} \t{each.get('status')}\t{each.get('reason', '')}\n")
    _replica_sets(this)
    this.events()


def _replica_sets(this: Description) -> None:
    from pybernetes.kubectl.rollouts import REVISION, _owned

    path = f"/apis/apps/v1/namespaces/{this.info.namespace}/replicasets"
    found = _owned(this.fetch(path, {"labelSelector": selector_text(this.get("spec", "selector"))}), this.obj)
    if not found:
        return
    current = this.get("metadata", "annotations", REVISION)
    new = [each for each in found if dig(each, "metadata", "annotations", REVISION) == current]
    old = [each for each in found if each not in new]
    old.sort(key=lambda each: str(each["metadata"].get("creationTimestamp")))
    for title, sets in (("OldReplicaSets", old), ("NewReplicaSet", new)):
        shown = ", ".join(
            f"{each['metadata']['name']} ({dig(each, 'status', 'replicas', default=0)}/{each['spec'].get('replicas')}"
            " replicas created)"
            for each in sets
        )
        this.write(0, f"{title}:\t{shown or '<none>'}\n")


def _pods_status(this: Description, owner: bool = True) -> str:
    path = f"/api/v1/namespaces/{this.info.namespace}/pods"
    from pybernetes.kubectl.rollouts import _owned

    pods = _owned(this.fetch(path, {"labelSelector": selector_text(this.get("spec", "selector"))}), this.obj)
    counts = {"Running": 0, "Pending": 0, "Succeeded": 0, "Failed": 0}
    for pod in pods:
        phase = dig(pod, "status", "phase", default="")
        if phase in counts:
            counts[phase] += 1
    names = (("Running", "Running"), ("Waiting", "Pending"), ("Succeeded", "Succeeded"), ("Failed", "Failed"))
    return " / ".join(f"{counts[phase]} {word}" for word, phase in names)


def replica_set(this: Description) -> None:
    """A ReplicaSet or ReplicationController."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    this.write(0, f"Selector:\t{selector_text(spec.get('selector'))}\n")
    write_labels(this, "Labels", this.get("metadata", "labels"))
    write_annotations(this, "Annotations", this.get("metadata", "annotations"))
    if controlled_by(this.obj):
        this.write(0, f"Controlled By:\t{controlled_by(this.obj)}\n")
    this.write(0, f"Replicas:\t{status.get('replicas', 0)} current / {spec.get('replicas')} desired\n")
    this.write(0, f"Pods Status:\t{_pods_status(this)}\n")
    write_template(this, spec.get("template"))
    if status.get("conditions"):
        this.write(0, "Conditions:\n  Type\tStatus\tReason\n")
        this.write(1, "----\t------\t------\n")
        for each in status["conditions"]:
            this.write(1, f"{each['type']} \t{each.get('status')}\t{each.get('reason', '')}\n")
    this.events()


def stateful_set(this: Description) -> None:
    """A StatefulSet."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    this.write(0, f"CreationTimestamp:\t{when(this.get('metadata', 'creationTimestamp'))}\n")
    this.write(0, f"Selector:\t{selector_text(spec.get('selector'))}\n")
    write_labels(this, "Labels", this.get("metadata", "labels"))
    write_annotations(this, "Annotations", this.get("metadata", "annotations"))
    this.write(0, f"Replicas:\t{spec.get('replicas')} desired | {status.get('replicas', 0)} total\n")
    this.write(0, f"Update Strategy:\t{dig(spec, 'updateStrategy', 'type', default='')}\n")
    partition = dig(spec, "updateStrategy", "rollingUpdate", "partition")
    if partition is not None:
        this.write(1, f"Partition:\t{partition}\n")
    this.write(0, f"Pods Status:\t{_pods_status(this)}\n")
    write_template(this, spec.get("template"))
    _claims(this, spec.get("volumeClaimTemplates") or [])
    this.events()


def _claims(this: Description, templates: list[dict[str, Any]]) -> None:
    if not templates:
        this.write(0, "Volume Claims:\t<none>\n")
        return
    this.write(0, "Volume Claims:\n")
    for claim in templates:
        this.write(1, f"Name:\t{claim['metadata']['name']}\n")
        this.write(1, f"StorageClass:\t{claim['spec'].get('storageClassName', '')}\n")
        write_labels(this, "  Labels", claim["metadata"].get("labels"))
        write_annotations(this, "  Annotations", claim["metadata"].get("annotations"))
        capacity = dig(claim, "spec", "resources", "requests", "storage")
        this.write(1, f"Capacity:\t{capacity or '<default>'}\n")
        this.write(1, f"Access Modes:\t[{' '.join(claim['spec'].get('accessModes') or ())}]\n")


def daemon_set(this: Description) -> None:
    """A DaemonSet."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    this.write(0, f"Selector:\t{selector_text(spec.get('selector'))}\n")
    this.write(0, f"Node-Selector:\t{selector_text(dig(spec, 'template', 'spec', 'nodeSelector'), '<none>')}\n")
    write_labels(this, "Labels", this.get("metadata", "labels"))
    write_annotations(this, "Annotations", this.get("metadata", "annotations"))
    for title, key in (
        ("Desired Number of Nodes Scheduled", "desiredNumberScheduled"),
        ("Current Number of Nodes Scheduled", "currentNumberScheduled"),
        ("Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"),
        ("Number of Nodes Scheduled with Available Pods", "numberAvailable"),
        ("Number of Nodes Misscheduled", "numberMisscheduled"),
    ):
        this.write(0, f"{title}: {status.get(key, 0)}\n")
    this.write(0, f"Pods Status:\t{_pods_status(this)}\n")
    write_template(this, spec.get("template"))
    this.events()


def job(this: Description) -> None:
    """A Job."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    this.write(0, f"Selector:\t{selector_text(spec.get('selector'))}\n")
    write_labels(this, "Labels", this.get("metadata", "labels"))
    write_annotations(this, "Annotations", this.get("metadata", "annotations"))
    if controlled_by(this.obj):
        this.write(0, f"Controlled By:\t{controlled_by(this.obj)}\n")
    completions = spec.get("completions")
    this.write(0, f"Parallelism:\t{spec.get('parallelism', 1)}\n")
    this.write(0, f"Completions:\t{'<unset>' if completions is None else completions}\n")
    if spec.get("completionMode"):
        this.write(0, f"Completion Mode:\t{spec['completionMode']}\n")
    if spec.get("suspend") is not None:
        this.write(0, f"Suspend:\t{'true' if spec['suspend'] else 'false'}\n")
    if spec.get("backoffLimit") is not None:
        this.write(0, f"Backoff Limit:\t{spec['backoffLimit']}\n")
    if spec.get("ttlSecondsAfterFinished") is not None:
        this.write(0, f"TTL Seconds After Finished:\t{spec['ttlSecondsAfterFinished']}\n")
    if status.get("startTime"):
        this.write(0, f"Start Time:\t{when(status['startTime'])}\n")
    if status.get("completionTime"):
        this.write(0, f"Completed At:\t{when(status['completionTime'])}\n")
        begin, end = timestamp(status.get("startTime")), timestamp(status["completionTime"])
        if begin is not None and end is not None:
            this.write(0, f"Duration:\t{human(end - begin)}\n")
    if spec.get("activeDeadlineSeconds") is not None:
        this.write(0, f"Active Deadline Seconds:\t{spec['activeDeadlineSeconds']}s\n")
    active, ready = status.get("active", 0), status.get("ready")
    shown = f"{active} Active ({ready} Ready)" if ready is not None else f"{active} Active"
    this.write(
        0, f"Pods Statuses:\t{shown} / {status.get('succeeded', 0)} Succeeded / {status.get('failed', 0)} Failed\n"
    )
    if spec.get("completionMode") == "Indexed":
        this.write(0, f"Completed Indexes:\t{status.get('completedIndexes') or '<none>'}\n")
    write_template(this, spec.get("template"))
    this.events()


def cron_job(this: Description) -> None:
    """A CronJob."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.head()
    this.write(0, f"Schedule:\t{spec.get('schedule')}\n")
    this.write(0, f"Concurrency Policy:\t{spec.get('concurrencyPolicy')}\n")
    this.write(0, f"Suspend:\t{'True' if spec.get('suspend') else 'False'}\n")
    this.write(0, f"Time Zone:\t{spec.get('timeZone') or '<unset>'}\n")
    for title, key in (
        ("Successful Job History Limit", "successfulJobsHistoryLimit"),
        ("Failed Job History Limit", "failedJobsHistoryLimit"),
    ):
        this.write(0, f"{title}:\t{spec.get(key, '<unset>')}\n")
    deadline = spec.get("startingDeadlineSeconds")
    this.write(0, f"Starting Deadline Seconds:\t{f'{deadline}s' if deadline is not None else '<unset>'}\n")
    template = dig(spec, "jobTemplate", "spec", default={})
    selector = template.get("selector")
    this.write(0, f"Selector:\t{selector_text(selector) if selector else '<unset>'}\n")
    for title, key in (("Parallelism", "parallelism"), ("Completions", "completions")):
        this.write(0, f"{title}:\t{template.get(key, '<unset>')}\n")
    if template.get("activeDeadlineSeconds") is not None:
        this.write(0, f"Active Deadline Seconds:\t{template['activeDeadlineSeconds']}s\n")
    write_template(this, template.get("template"))
    last = status.get("lastScheduleTime")
    this.write(0, f"Last Schedule Time:\t{when(last) if last else '<unset>'}\n")
    active = ", ".join(each.get("name", "") for each in status.get("active") or ())
    this.write(0, f"Active Jobs:\t{active or '<none>'}\n")
    this.events()
