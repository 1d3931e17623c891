"""Pods that have filled more of the node's disk than they may, whether the node is short of it or not."""

from __future__ import annotations

from pybernetes.api.core.podrequests import pod_limits
from pybernetes.api.core.podresources import parsed, quantity
from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.quantity import Quantity

from .thresholds import EPHEMERAL_STORAGE
from .usage import PodUsage


def has_limits(pod: Pod) -> bool:
    """Whether the disk of the pod must be looked at in every turn."""
    spec = pod.spec or PodSpec()
    if any(each.empty_dir is not None and each.empty_dir.size_limit for each in spec.volumes or ()):
        return True
    return any(
        each.resources is not None and EPHEMERAL_STORAGE in (each.resources.limits or ())
        for each in (*(spec.containers or ()), *(spec.init_containers or ()))
    )


def exceeded(pod: Pod, usage: PodUsage, *, dedicated_imagefs: bool) -> str:
    """Which limit is exceeded, in the words of the pod's status; empty if none is."""
    return _empty_dir(pod, usage) or _pod(pod, usage) or _container(pod, usage, dedicated_imagefs=dedicated_imagefs)


def _empty_dir(pod: Pod, usage: PodUsage) -> str:
    for volume in (pod.spec or PodSpec()).volumes or ():
        if volume.empty_dir is None or not volume.empty_dir.size_limit:
            continue
        limit, used = quantity(volume.empty_dir.size_limit), usage.volumes.get(volume.name or "")
        if used is not None and limit.sign() > 0 and Quantity(used.bytes) > limit:
            return f"Usage of EmptyDir volume {quote(volume.name or '')} exceeds the limit {quote(str(limit))}. "
    return ""


def _pod(pod: Pod, usage: PodUsage) -> str:
    limit = pod_limits(pod, use_status=False).get(EPHEMERAL_STORAGE)
    if limit is None:
        return ""
    memory = {
        each.name
        for each in (pod.spec or PodSpec()).volumes or ()
        if each.empty_dir is not None and each.empty_dir.medium == "Memory"
    }
    used = usage.disk(rootfs=True, logs=True, volumes=False).bytes + usage.other
    used += sum(each.bytes for name, each in usage.volumes.items() if name not in memory)
    if Quantity(used) > limit:
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
    return ""


def _container(pod: Pod, usage: PodUsage, *, dedicated_imagefs: bool) -> str:
    for container in (pod.spec or PodSpec()).containers or ():
        found = usage.containers.get(container.name or "")
        limit = parsed(container.resources.limits if container.resources else None).get(EPHEMERAL_STORAGE)
        if found is None or not limit:
            continue
        used = found.logs.bytes + (0 if dedicated_imagefs else found.rootfs.bytes)
        if Quantity(used) > limit:
            return f"Container {container.name} exceeded its local ephemeral storage limit {quote(str(limit))}. "
    return ""
