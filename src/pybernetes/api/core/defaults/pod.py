"""Defaults for pods and for the templates of pods.

A template gets less than a pod: requests that follow limits, host ports and service links are filled in only when a
pod is made from it, so that templates written long ago do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ...meta.v1.objectmeta import ObjectMeta
from ..podresources import aggregate_container_limits, aggregate_container_requests
from ..resourcenames import is_hugepages, is_overcommit_allowed, is_supported_pod_level
from ..v1.container import Container, ContainerStatus
from ..v1.pod import Pod, PodIP, PodSpec, PodStatus, PodTemplateSpec
from ..v1.security import PodSecurityContext
from .container import default_container
from .resources import default_resource_list, default_resource_requirements
from .volume import default_volume

TERMINATION_GRACE_PERIOD: Final = 30
SCHEDULER: Final = "default-scheduler"

# From before init containers had a field; upstream drops them so that no old kubelet believes them.
_INIT_ANNOTATIONS: Final = (
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
)


def default_pod(pod: Pod) -> None:
    """Everything a pod gets: its spec's defaults and those that only pods have."""
    _default_meta(pod.metadata)
    spec = pod.spec
    if spec is None:
        spec = pod.spec = PodSpec()
    default_pod_spec(spec)
    if spec.containers:
        _default_requests(spec.containers)
    if spec.init_containers:
        _default_requests(spec.init_containers)
    if spec.resources is not None:
        _default_pod_level_resources(spec)
    if spec.enable_service_links is None:
        spec.enable_service_links = True
    if spec.host_network:
        _default_host_ports(spec.containers or ())
        _default_host_ports(spec.init_containers or ())
    if spec.termination_grace_period_seconds is not None and spec.termination_grace_period_seconds < 0:
        spec.termination_grace_period_seconds = 1
    if pod.status is not None:
        _default_status(pod.status)


def default_pod_template_spec(template: PodTemplateSpec) -> None:
    """Defaults for a pod template, in a Deployment, a Job and all the others."""
    _default_meta(template.metadata)
    if template.spec is None:
        template.spec = PodSpec()
    default_pod_spec(template.spec)


def default_pod_spec(spec: PodSpec) -> None:
    """Defaults for every pod spec."""
    if not spec.dns_policy:
        spec.dns_policy = "ClusterFirst"
    if not spec.restart_policy:
        spec.restart_policy = "Always"
    if spec.security_context is None:
        spec.security_context = PodSecurityContext()
    if spec.termination_grace_period_seconds is None:
        spec.termination_grace_period_seconds = TERMINATION_GRACE_PERIOD
    if not spec.scheduler_name:
        spec.scheduler_name = SCHEDULER
    mirror_service_account(spec)
    if spec.volumes:
        for volume in spec.volumes:
            default_volume(volume)
    if spec.containers:
        for container in spec.containers:
            default_container(container)
    if spec.init_containers:
        for container in spec.init_containers:
            default_container(container)
    if spec.ephemeral_containers:
        for ephemeral in spec.ephemeral_containers:
            default_container(ephemeral)
    if spec.overhead:
        default_resource_list(spec.overhead)
    if spec.resources is not None:
        default_resource_requirements(spec.resources)


def mirror_service_account(spec: PodSpec) -> None:
    """`serviceAccount` is the old name of `serviceAccountName`: both say the same, the new one wins."""
    name = spec.service_account_name or spec.service_account or None
    if name != spec.service_account_name:
        spec.service_account_name = name
    if name != spec.service_account:
        spec.service_account = name


def _default_requests(containers: Iterable[Container]) -> None:
    """Requests default to limits."""
    for container in containers:
        resources = container.resources
        if resources is not None and resources.limits:
            if resources.requests is None:
                resources.requests = dict(resources.limits)
            else:
                for name, value in resources.limits.items():
                    resources.requests.setdefault(name, value)


def _default_pod_level_resources(spec: PodSpec) -> None:
    resources = spec.resources
    if resources is None:
        return
    if resources.limits or resources.requests:
        limits = resources.limits or {}
        for name, value in aggregate_container_limits(spec).items():
            if is_hugepages(name) and name not in (resources.requests or ()):
                limits.setdefault(name, str(value))
        resources.limits = limits or resources.limits
    if resources.limits:
        requests = resources.requests or {}
        for name, value in aggregate_container_requests(spec).items():
            if is_supported_pod_level(name) and is_overcommit_allowed(name):
                requests.setdefault(name, str(value))
        for name, limit in resources.limits.items():
            if is_supported_pod_level(name):
                requests.setdefault(name, limit)
        resources.requests = requests or resources.requests


def _default_host_ports(containers: Iterable[Container]) -> None:
    for container in containers:
        for port in container.ports or ():
            if not port.host_port:
                port.host_port = port.container_port


def _default_meta(meta: ObjectMeta | None) -> None:
    annotations = meta.annotations if meta is not None else None
    if meta is not None and annotations and any(key in annotations for key in _INIT_ANNOTATIONS):
        meta.annotations = {key: value for key, value in annotations.items() if key not in _INIT_ANNOTATIONS}


def _default_status(status: PodStatus) -> None:
    if status.pod_ip and (not status.pod_ips or status.pod_ips[0].ip != status.pod_ip):
        status.pod_ips = [PodIP(ip=status.pod_ip)]  # the old singular field has the last word
    elif status.pod_ips and not status.pod_ip:
        status.pod_ip = status.pod_ips[0].ip
    for statuses in (status.container_statuses, status.init_container_statuses, status.ephemeral_container_statuses):
        for each in statuses or ():
            _default_container_status(each)
    if status.allocated_resources:
        default_resource_list(status.allocated_resources)
    if status.resources is not None:
        default_resource_requirements(status.resources)


def _default_container_status(status: ContainerStatus) -> None:
    if status.allocated_resources:
        default_resource_list(status.allocated_resources)
    if status.resources is not None:
        default_resource_requirements(status.resources)


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"Pod": default_pod}
