"""Descriptions of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs."""

from __future__ import annotations

from pybernetes.kubectl.ages import human, timestamp
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.pods import write_template
from pybernetes.kubectl.describing.text import (
    controlled_by,
    joined,
    selector_text,
    when,
    write_annotations,
    write_labels,
    write_pairs,
)
from pybernetes.kubectl.describing.volumes import class_name

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
    if rolling is not None:
        shown = f"{rolling.get('maxUnavailable', 0)} max unavailable, {rolling.get('maxSurge', 0)} max surge"
        this.write(0, f"RollingUpdateStrategy:\t{shown}\n")
    write_template(this, spec.get("template"))
    _conditions(this)
    _replica_sets(this)
    this.events()


def _identity(this: Description, selector: str, *between: str) -> None:
    """Name, namespace, lines of the kind's own, selector, labels, annotations."""
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    for line in between:
        this.write(0, line)
    this.write(0, f"Selector:\t{selector}\n")


def _metadata(this: Description) -> None:
    write_labels(this, "Labels", this.get("metadata", "labels"))
    write_annotations(this, "Annotations", this.get("metadata", "annotations"))


def _owner(this: Description) -> None:
    if controlled_by(this.obj):
        this.write(0, f"Controlled By:\t{controlled_by(this.obj)}\n")


def _conditions(this: Description) -> None:
    conditions = this.get("status", "conditions", default=[])
    if conditions:
        this.write(0, "Conditions:\n  Type\tStatus\tReason\n")
        this.write(1, "----\t------\t------\n")
    for each in conditions:
        this.write(1, f"{each['type']} \t{each.get('status', '')}\t{each.get('reason', '')}\n")


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
    """A ReplicaSet."""
    _identity(this, selector_text(this.get("spec", "selector"), "<none>"))
    _metadata(this)
    _owner(this)
    _replicas(this)


def replication_controller(this: Description) -> None:
    """A ReplicationController."""
    _identity(this, joined(this.get("spec", "selector")))
    _metadata(this)
    _replicas(this)


def _replicas(this: Description) -> None:
    """The fields that ReplicaSets and ReplicationControllers share."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.write(0, f"Replicas:\t{status.get('replicas', 0)} current / {spec.get('replicas', 1)} desired\n")
    this.write(0, f"Pods Status:\t{_pods_status(this)}\n")
    write_template(this, spec.get("template"))
    _conditions(this)
    this.events()


def stateful_set(this: Description) -> None:
    """A StatefulSet."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    created = when(this.get("metadata", "creationTimestamp"))
    _identity(this, selector_text(spec.get("selector")), f"CreationTimestamp:\t{created}\n")
    _metadata(this)
    this.write(0, f"Replicas:\t{spec.get('replicas', 1)} desired | {status.get('replicas', 0)} total\n")
    this.write(0, f"Update Strategy:\t{dig(spec, 'updateStrategy', 'type', default='')}\n")
    rolling = dig(spec, "updateStrategy", "rollingUpdate", default={})
    if rolling.get("partition") is not None:
        this.write(1, f"Partition:\t{rolling['partition']}\n")
        if rolling.get("maxUnavailable") is not None:
            this.write(1, f"MaxUnavailable:\t{rolling['maxUnavailable']}\n")
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
        metadata = claim.get("metadata") or {}
        this.write(1, f"Name:\t{metadata.get('name', '')}\n")
        this.write(1, f"StorageClass:\t{class_name(claim)}\n")
        for title in ("Labels", "Annotations"):
            write_pairs(this, title, metadata.get(title.lower()), 1)
        capacity = dig(claim, "spec", "resources", "requests", "storage", default="<default>")
        this.write(1, f"Capacity:\t{capacity}\n")
        this.write(1, f"Access Modes:\t[{' '.join(dig(claim, 'spec', 'accessModes', default=[]))}]\n")


def daemon_set(this: Description) -> None:
    """A DaemonSet."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    _identity(this, selector_text(spec.get("selector")))
    this.write(0, f"Node-Selector:\t{joined(dig(spec, 'template', 'spec', 'nodeSelector'))}\n")
    _metadata(this)
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
    _identity(this, selector_text(spec.get("selector")))
    _metadata(this)
    _owner(this)
    if spec.get("parallelism") is not None:
        this.write(0, f"Parallelism:\t{spec['parallelism']}\n")
    this.write(0, f"Completions:\t{spec.get('completions', '<unset>')}\n")
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
    begin, end = timestamp(status.get("startTime")), timestamp(status.get("completionTime"))
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
        this.write(0, f"Completed Indexes:\t{_indexes(status.get('completedIndexes') or '')}\n")
    write_template(this, spec.get("template"))
    this.events()


def _indexes(found: str) -> str:
    """Completed indexes, cut at a comma after 50 characters."""
    end = found.find(",", 50)
    return f"{found[: end + 1]}..." if end >= 0 else found or "<none>"


def cron_job(this: Description) -> None:
    """A CronJob."""
    spec, status = this.obj["spec"], this.obj.get("status") or {}
    this.head()
    this.write(0, f"Schedule:\t{spec.get('schedule', '')}\n")
    this.write(0, f"Concurrency Policy:\t{spec.get('concurrencyPolicy', '')}\n")
    suspended = {None: "<unset>", True: "True", False: "False"}[spec.get("suspend")]
    this.write(0, f"Suspend:\t{suspended}\n")
    this.write(0, f"Time Zone:\t{spec.get('timeZone', '<unset>')}\n")
    for title, key in (
        ("Successful Job History Limit", "successfulJobsHistoryLimit"),
        ("Failed Job History Limit", "failedJobsHistoryLimit"),
    ):
        this.write(0, f"{title}:\t{spec.get(key, '<unset>')}\n")
    deadline = spec.get("startingDeadlineSeconds")
    this.write(0, f"Starting Deadline Seconds:\t{f'{deadline}s' if deadline is not None else '<unset>'}\n")
    template = dig(spec, "jobTemplate", "spec", default={})
    selector = template.get("selector")
    this.write(0, f"Selector:\t{selector_text(selector) if selector is not None else '<unset>'}\n")
    for title, key in (("Parallelism", "parallelism"), ("Completions", "completions")):
        this.write(0, f"{title}:\t{template.get(key, '<unset>')}\n")
    if template.get("activeDeadlineSeconds") is not None:
        this.write(0, f"Active Deadline Seconds:\t{template['activeDeadlineSeconds']}s\n")
    write_template(this, template.get("template"))
    last = status.get("lastScheduleTime")
    this.write(0, f"Last Schedule Time:\t{when(last) if last else '<unset>'}\n")
    active = [each.get("name", "") for each in status.get("active") or ()]
    this.write(0, f"Active Jobs:\t{', '.join(active) if active else '<none>'}\n")
    this.events()
