"""Deployments, ReplicaSets, StatefulSets, DaemonSets, and the revisions of the latter two."""

from __future__ import annotations

from typing import Final

from pybernetes.api import labels
from pybernetes.api.apps.v1 import (
    ControllerRevision,
    DaemonSet,
    DaemonSetSpec,
    DaemonSetStatus,
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    StatefulSet,
    StatefulSetSpec,
    StatefulSetStatus,
)
from pybernetes.api.scheme import split_api_version

from . import formats
from .printer import AGE, CONTAINERS, IMAGES, NAME, NONE, SELECTOR, Cells, Printer, age, integer, name, text


def _deployment(deployment: Deployment, now: float) -> Cells:
    spec, status = deployment.spec or DeploymentSpec(), deployment.status or DeploymentStatus()
    try:
        selector = str(labels.from_label_selector(spec.selector))
    except labels.SelectorError:
        selector = "<invalid>"
    return [
        name(deployment),
        f"{status.ready_replicas or 0}/{spec.replicas or 0}",
        status.updated_replicas or 0,
        status.available_replicas or 0,
        age(deployment, now),
        *formats.containers(spec.template),
        selector,
    ]


def _replica_set(replica_set: ReplicaSet, now: float) -> Cells:
    spec, status = replica_set.spec or ReplicaSetSpec(), replica_set.status or ReplicaSetStatus()
    return [
        name(replica_set),
        spec.replicas or 0,
        status.replicas or 0,
        status.ready_replicas or 0,
        age(replica_set, now),
        *formats.containers(spec.template),
        formats.label_selector(spec.selector),
    ]


def _stateful_set(stateful_set: StatefulSet, now: float) -> Cells:
    spec, status = stateful_set.spec or StatefulSetSpec(), stateful_set.status or StatefulSetStatus()
    return [
        name(stateful_set),
        f"{status.ready_replicas or 0}/{spec.replicas or 0}",
        age(stateful_set, now),
        *formats.containers(spec.template),
    ]


def _daemon_set(daemon_set: DaemonSet, now: float) -> Cells:
    spec, status = daemon_set.spec or DaemonSetSpec(), daemon_set.status or DaemonSetStatus()
    pod = spec.template.spec if spec.template else None
    return [
        name(daemon_set),
        status.desired_number_scheduled or 0,
        status.current_number_scheduled or 0,
        status.number_ready or 0,
        status.updated_number_scheduled or 0,
        status.number_available or 0,
        formats.label_set(pod.node_selector if pod else None),
        age(daemon_set, now),
        *formats.containers(spec.template),
        formats.label_selector(spec.selector),
    ]


def _controller_revision(revision: ControllerRevision, now: float) -> Cells:
    return [name(revision), _controller(revision), revision.revision or 0, age(revision, now)]


def _controller(revision: ControllerRevision) -> str:
    owners = (revision.metadata and revision.metadata.owner_references) or ()
    owner = next((each for each in owners if each.controller), None)
    if owner is None:
        return NONE
    group, _ = split_api_version(owner.api_version or "")
    kind = f"{owner.kind or ''}.{group}" if group else owner.kind or ""
    return f"{kind.lower()}/{owner.name or ''}" if kind else owner.name or ""


PRINTERS: Final[dict[str, Printer]] = {
    "ControllerRevision": Printer(
        (NAME, text("Controller", "Whose revision it is"), text("Revision", "Number of the revision"), AGE),
        _controller_revision,
    ),
    "DaemonSet": Printer(
        (
            NAME,
            integer("Desired", "Nodes that should run a pod"),
            integer("Current", "Nodes that run a pod"),
            integer("Ready", "Nodes whose pod is ready"),
            integer("Up-to-date", "Nodes whose pod is of the newest template"),
            integer("Available", "Nodes whose pod is available"),
            text("Node Selector", "Labels that nodes must have"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _daemon_set,
    ),
    "Deployment": Printer(
        (
            NAME,
            text("Ready", "Pods that are ready, of those asked for"),
            text("Up-to-date", "Pods of the newest template"),
            text("Available", "Pods that are available"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _deployment,
    ),
    "ReplicaSet": Printer(
        (
            NAME,
            integer("Desired", "Pods that are asked for"),
            integer("Current", "Pods that there are"),
            integer("Ready", "Pods that are ready"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _replica_set,
    ),
    "StatefulSet": Printer(
        (NAME, text("Ready", "Pods that are ready, of those asked for"), AGE, CONTAINERS, IMAGES), _stateful_set
    ),
}
