"""`kubectl describe node`."""

from __future__ import annotations

from pybernetes.kubectl.ages import age
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.text import ZERO, when, write_annotations, write_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.api.quantity import Quantity

_POOLS = 10
"""How many pools of devices are shown."""


def node(this: Description) -> None:
    """A node: conditions, addresses, capacity, its pods and what they ask for."""
    metadata, spec, status = this.obj["metadata"], this.obj.get("spec") or {}, this.obj.get("status") or {}
    this.write(0, f"Name:\t{this.info.name}\n")
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key[len(prefix) :] for key in metadata.get("labels") or {} if key.startswith(prefix))
    this.write(0, f"Roles:\t{','.join(roles) or '<none>'}\n")
    write_labels(this, "Labels", metadata.get("labels"))
    write_annotations(this, "Annotations", metadata.get("annotations"))
    this.write(0, f"CreationTimestamp:\t{when(metadata.get('creationTimestamp'))}\n")
    taints = [
        f"{each['key']}{'=' + each['value'] if each.get('value') else ''}:{each['effect']}"
        for each in sorted(spec.get("taints") or (), key=lambda each: (each["effect"], each["key"]))
    ]
    this.write(0, f"Taints:\t{taints[0] if taints else '<none>'}\n")
    for each in taints[1:]:
        this.write(0, f"\t{each}\n")
    this.write(0, f"Unschedulable:\t{'true' if spec.get('unschedulable') else 'false'}\n")
    _lease(this)
    if status.get("conditions"):
        this.write(0, "Conditions:\n  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage\n")
        this.write(1, "----\t------\t-----------------\t------------------\t------\t-------\n")
        for each in status["conditions"]:
            times = " \t".join(when(each.get(name), ZERO) for name in ("lastHeartbeatTime", "lastTransitionTime"))
            why = f"{each.get('reason', '')} \t{each.get('message', '')}"
            this.write(1, f"{each['type']} \t{each.get('status')} \t{times} \t{why}\n")
    this.write(0, "Addresses:\n")
    for each in status.get("addresses") or ():
        this.write(1, f"{each['type']}:\t{each['address']}\n")
    for title, key in (("Capacity", "capacity"), ("Allocatable", "allocatable")):
        if status.get(key):
            this.write(0, f"{title}:\n")
            for name in sorted(status[key]):
                this.write(1, f"{name}:\t{status[key][name]}\n")
    _slices(this)
    info = status.get("nodeInfo") or {}
    this.write(0, "System Info:\n")
    for title, key in (
        ("Machine ID", "machineID"), ("System UUID", "systemUUID"), ("Boot ID", "bootID"),
        ("Kernel Version", "kernelVersion"), ("OS Image", "osImage"), ("Operating System", "operatingSystem"),
        ("Architecture", "architecture"), ("Container Runtime Version", "containerRuntimeVersion"),
        ("Kubelet Version", "kubeletVersion"),
    ):  # fmt: skip
        this.write(1, f"{title}:\t{info.get(key, '')}\n")
    if spec.get("podCIDR"):
        this.write(0, f"PodCIDR:\t{spec['podCIDR']}\n")
    if spec.get("podCIDRs"):
        this.write(0, f"PodCIDRs:\t{','.join(spec['podCIDRs'])}\n")
    if spec.get("providerID"):
        this.write(0, f"ProviderID:\t{spec['providerID']}\n")
    _pods(this, status.get("allocatable") or status.get("capacity") or {})
    this.events()


def _lease(this: Description) -> None:
    from pybernetes.kubectl.errors import CLIError

    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{this.info.name}"
    try:
        spec = this.context.client.get(path).get("spec") or {}
    except CLIError as error:
        this.write(0, f"Lease:\tFailed to get lease: {error.message}\n")
        return
    this.write(0, "Lease:\n")
    this.write(1, f"HolderIdentity:\t{spec.get('holderIdentity', '<unset>')}\n")
    this.write(1, f"AcquireTime:\t{when(spec.get('acquireTime'))}\n")
    this.write(1, f"RenewTime:\t{when(spec.get('renewTime'))}\n")


def _slices(this: Description) -> None:
    """How many devices the ResourceSlices of the node have, by driver and pool."""
    pools: dict[tuple[str, str], list[int]] = {}
    for each in this.fetch(
        "/apis/resource.k8s.io/v1/resourceslices", {"fieldSelector": f"spec.nodeName={this.info.name}"}
    ):
        spec = each.get("spec") or {}
        counts = pools.setdefault((spec.get("driver", ""), dig(spec, "pool", "name", default="")), [0, 0])
        counts[0] += 1
        counts[1] += len(spec.get("devices") or ())
    if not pools:
        return
    this.write(0, "Node-Local ResourceSlices:\n")
    this.write(1, "Driver\tPool\tSlices\tDevices\n")
    this.write(1, "------\t----\t------\t-------\n")
    for at, (driver, pool) in enumerate(sorted(pools)):
        if at == _POOLS:
            this.write(1, f"...and {len(pools) - _POOLS} more pools\n")
            break
        slices, devices = pools[driver, pool]
        this.write(1, f"{driver}\t{pool}\t{slices}\t{devices}\n")


def _percent(value: Quantity | None, whole: Quantity | None, milli: bool) -> str:
    if value is None or whole is None or whole.is_zero():
        return "0%"
    if milli:
        return f"{int(value.milli_value() / whole.milli_value() * 100)}%"
    return f"{int(value.value() / whole.value() * 100)}%"


def _pods(this: Description, capacity: dict[str, Any]) -> None:
    from pybernetes.api.core.podrequests import pod_limits, pod_requests
    from pybernetes.api.core.podresources import add, parsed
    from pybernetes.kubectl.describing.pod_resources import typed

    fields = f"spec.nodeName={this.info.name},status.phase!=Failed,status.phase!=Succeeded"
    pods = this.fetch("/api/v1/pods", {"fieldSelector": fields})
    allocatable = parsed(capacity)
    this.write(0, f"Non-terminated Pods:\t({len(pods)} in total)\n")
    this.write(1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge\n")
    this.write(1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---\n")
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for pod in pods:
        trimmed = typed(pod)
        cells = []
        both = (pod_requests(trimmed), pod_limits(trimmed))
        for name in ("cpu", "memory"):
            for found in both:
                percent = _percent(found.get(name), allocatable.get(name), name == "cpu")
                cells.append(f"{found.get(name, 0)} ({percent})")
        metadata = pod["metadata"]
        where = f"{metadata.get('namespace', '')}\t{metadata['name']}\t"
        this.write(1, "\t".join([where, *cells, age(metadata.get("creationTimestamp"))]) + "\n")
        # What the containers have now counts for each pod, what they ask for counts in the sum.
        add(requests, pod_requests(trimmed, use_status=False))
        add(limits, pod_limits(trimmed, use_status=False))
    this.write(0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)\n")
    this.write(1, "Resource\tRequests\tLimits\n")
    this.write(1, "--------\t--------\t------\n")
    huge = [name for name in sorted(allocatable) if name.startswith("hugepages-")]
    for name in ("cpu", "memory", "ephemeral-storage", *huge):
        cells = [
            f"{found.get(name, 0)} ({_percent(found.get(name), allocatable.get(name), name == 'cpu')})"
            for found in (requests, limits)
        ]
        this.write(1, f"{name}\t{cells[0]}\t{cells[1]}\n")
    for name in sorted(allocatable):
        if name not in ("cpu", "memory", "ephemeral-storage", "pods", *huge):
            this.write(1, f"{name}\t{requests.get(name, 0)}\t{limits.get(name, 0)}\n")
