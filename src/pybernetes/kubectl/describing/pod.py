"""`kubectl describe pod`."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.pods import (
    containers,
    dig_statuses,
    resources,
    scheduling_group,
    seccomp,
    tolerations,
    topology,
)
from pybernetes.kubectl.describing.text import controlled_by, when, write_annotations, write_labels
from pybernetes.kubectl.describing.volumes import volumes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def pod(this: Description) -> None:
    """A pod: where it runs, its containers with their state, conditions, volumes, events."""
    spec, status = this.obj.get("spec") or {}, this.obj.get("status") or {}
    metadata = this.obj["metadata"]
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    if spec.get("priority") is not None:
        this.write(0, f"Priority:\t{spec['priority']}\n")
    if spec.get("priorityClassName"):
        this.write(0, f"Priority Class Name:\t{spec['priorityClassName']}\n")
    if spec.get("runtimeClassName"):
        this.write(0, f"Runtime Class Name:\t{spec['runtimeClassName']}\n")
    if spec.get("serviceAccountName"):
        this.write(0, f"Service Account:\t{spec['serviceAccountName']}\n")
    node = f"{spec['nodeName']}/{status.get('hostIP', '')}" if spec.get("nodeName") else "<none>"
    this.write(0, f"Node:\t{node}\n")
    if status.get("startTime"):
        this.write(0, f"Start Time:\t{when(status['startTime'])}\n")
    write_labels(this, "Labels", metadata.get("labels"))
    write_annotations(this, "Annotations", metadata.get("annotations"))
    if metadata.get("deletionTimestamp") and status.get("phase") not in ("Failed", "Succeeded"):
        from pybernetes.kubectl.ages import age

        this.write(0, f"Status:\tTerminating (lasts {age(metadata['deletionTimestamp'])})\n")
        this.write(0, f"Termination Grace Period:\t{metadata.get('deletionGracePeriodSeconds')}s\n")
    else:
        this.write(0, f"Status:\t{status.get('phase', '')}\n")
    for key in ("reason", "message"):
        if status.get(key):
            this.write(0, f"{key.capitalize()}:\t{status[key]}\n")
    seccomp(this, 0, dig(spec, "securityContext", "seccompProfile"), 0)
    this.write(0, f"IP:\t{status.get('podIP', '')}\n")
    addresses = status.get("podIPs") or []
    this.write(0, "IPs:\n" if addresses else "IPs:\t<none>\n")
    for each in addresses:
        this.write(1, f"IP:\t{each.get('ip', '')}\n")
    if controlled_by(this.obj):
        this.write(0, f"Controlled By:\t{controlled_by(this.obj)}\n")
    if status.get("nominatedNodeName"):
        this.write(0, f"NominatedNodeName:\t{status['nominatedNodeName']}\n")
    if spec.get("resources") is not None:
        this.write(0, "Resources:\n")
        resources(this, spec["resources"], 1)
    for title, key, statuses in (
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
        ("Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"),
    ):
        if spec.get(key) or key == "containers":
            containers(this, title, spec.get(key) or [], dig_statuses(this.obj, statuses), 0, this.obj)
    if spec.get("readinessGates"):
        this.write(0, "Readiness Gates:\n  Type\tStatus\n")
        known = {each["type"]: each.get("status") for each in status.get("conditions") or ()}
        for gate in spec["readinessGates"]:
            this.write(1, f"{gate['conditionType']} \t{known.get(gate['conditionType'], '<none>')} \n")
    if status.get("conditions"):
        this.write(0, "Conditions:\n  Type\tStatus\n")
        for each in status["conditions"]:
            this.write(1, f"{each['type']} \t{each.get('status')} \n")
    volumes(this, spec.get("volumes") or [], 0)
    this.write(0, f"QoS Class:\t{status.get('qosClass') or _quality(this.obj)}\n")
    write_labels(this, "Node-Selectors", spec.get("nodeSelector"))
    tolerations(this, 0, spec.get("tolerations") or [])
    topology(this, spec.get("topologySpreadConstraints") or [], 0)
    if spec.get("schedulingGroup") is not None:
        scheduling_group(this, 0, spec["schedulingGroup"])
    this.events()


def _quality(obj: dict[str, Any]) -> str:
    """The quality of service of a pod whose status does not say it."""
    from pybernetes.api.core.podresources import qos_class
    from pybernetes.kubectl.describing.pod_resources import typed

    return qos_class(typed(obj).spec)
