"""Warnings for the author of a pod, or of a pod template, that is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Any, Final

from pybernetes.api.addresses import warnings_for_ip
from pybernetes.api.core.containers import AnyContainer, all_containers_with_path
from pybernetes.api.core.podresources import quantity
from pybernetes.api.core.v1 import NodeSelectorTerm, Pod, PodSpec, PodTemplateSpec
from pybernetes.api.core.validation.podannotations import (
    APP_ARMOR,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    app_armor_from_annotation,
)
from pybernetes.api.field import Path
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.names import is_label_value

from .volume_warnings import volume_warnings

MAX_WARNINGS: Final = 128
"""Different warnings of one object. A response has room for 4,096 characters of them, so no more would be seen."""

_NULL_SELECTOR: Final = "a null labelSelector results in matching no pod"
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_SYSCTLS: Final = 'non-functional in v1.11+; use the "sysctls" field instead'
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": _SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _SYSCTLS,
}
NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def pod_warnings(pod: Pod) -> list[str]:
    """Warnings about a new pod."""
    annotations = pod.metadata.annotations if pod.metadata is not None else None
    return _first(_warnings(pod.spec or PodSpec(), annotations or {}, Path("spec"), Path("metadata"), template=False))


def pod_template_warnings(
    path: Path, template: PodTemplateSpec | None, old: PodTemplateSpec | None = None
) -> list[str]:
    """Warnings about the pod template at a path."""
    if template is None:
        return []
    annotations = template.metadata.annotations if template.metadata is not None else None
    spec = template.spec or PodSpec()
    return _first(_warnings(spec, annotations or {}, path.child("spec"), path.child("metadata"), template=True))


def _first(warnings: Iterable[str]) -> list[str]:
    """Each warning once, and no more than fit into a response."""
    found: dict[str, None] = {}
    for warning in islice(warnings, 2 * MAX_WARNINGS):
        found[warning] = None
        if len(found) == MAX_WARNINGS:
            break
    return list(found)


def _warnings(
    spec: PodSpec, annotations: Mapping[str, str], path: Path, meta: Path, *, template: bool
) -> Iterator[str]:
    yield from _node_labels(spec, path)
    for index, constraint in enumerate(spec.topology_spread_constraints or ()):
        at = path.child("topologySpreadConstraints").index(index)
        key = constraint.topology_key or ""
        if key in NODE_LABELS:
            yield f"{at.child('topologyKey')}: {key} is {NODE_LABELS[key]}"
        if constraint.label_selector is None:
            yield f"{at.child('labelSelector')}: {_NULL_SELECTOR}"
    for key, message in _ANNOTATIONS.items() if annotations else ():
        if key in annotations:
            yield f"{meta.child('annotations').key(key)}: {message}"
    if spec.volumes:
        yield from volume_warnings(spec.volumes, path.child("volumes"))
    yield from _duplicates(spec, path)
    for name in ("memory", "ephemeral-storage"):
        yield from _fractional(spec.overhead, name, path.child("overhead"))
    if annotations:
        yield from _security_annotations(spec, annotations, path, meta, template)
    for container, at in all_containers_with_path(spec, path):
        yield from _container(container, at)
    yield from _ports(spec, path)
    grace = spec.termination_grace_period_seconds
    if grace is not None and grace < 0:
        at = path.child("terminationGracePeriodSeconds")
        yield f"{at}: must be >= 0; negative values are invalid and will be treated as 1"
    yield from _affinity(spec, path.child("affinity"))
    for index, server in enumerate((spec.dns_config.nameservers if spec.dns_config is not None else None) or ()):
        yield from warnings_for_ip(path.child("dnsConfig", "nameservers").index(index), server)
    for index, alias in enumerate(spec.host_aliases or ()):
        yield from warnings_for_ip(path.child("hostAliases").index(index).child("ip"), alias.ip or "")


def _node_labels(spec: PodSpec, path: Path) -> Iterator[str]:
    for key in spec.node_selector or ():
        if key in NODE_LABELS:
            yield f"{path.child('nodeSelector').key(key)}: {NODE_LABELS[key]}"
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None:
        return
    at = path.child("affinity", "nodeAffinity")
    required = affinity.required_during_scheduling_ignored_during_execution
    for index, term in enumerate((required.node_selector_terms if required is not None else None) or ()):
        where = at.child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").index(index)
        yield from node_selector_term_warnings(term, where, check_values=False)
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        if preferred.preference is not None:
            where = at.child("preferredDuringSchedulingIgnoredDuringExecution").index(index).child("preference")
            yield from node_selector_term_warnings(preferred.preference, where, check_values=True)


def node_selector_term_warnings(term: NodeSelectorTerm, path: Path, *, check_values: bool) -> Iterator[str]:
    """Labels of nodes that have a newer name, and values that no label has."""
    for index, expression in enumerate(term.match_expressions or ()):
        at, key = path.child("matchExpressions").index(index), expression.key or ""
        if key in NODE_LABELS:
            yield f"{at.child('key')}: {key} is {NODE_LABELS[key]}"
        for number, value in enumerate(expression.values or ()) if check_values else ():
            for problem in is_label_value(value):
                yield f"{at.child('values').index(number)}: {value} is invalid, {problem}"


def _duplicates(spec: PodSpec, path: Path) -> Iterator[str]:
    seen: set[str] = set()
    for index, alias in enumerate(spec.host_aliases or ()):
        ip = alias.ip or ""
        if ip in seen:
            yield f"{path.child('hostAliases').index(index).child('ip')}: duplicate ip {quote(ip)}"
        seen.add(ip)
    names = [each.name or "" for each in spec.image_pull_secrets or ()]
    seen = set()
    for index, name in enumerate(names):
        if name in seen:
            yield f"{path.child('imagePullSecrets').index(index).child('name')}: duplicate name {quote(name)}"
        seen.add(name)
    for index, name in enumerate(names):
        if not name:
            yield f"{path.child('imagePullSecrets').index(index).child('name')}: invalid empty name {quote(name)}"


def _fractional(resources: Mapping[str, Any] | None, name: str, path: Path) -> Iterator[str]:
    if resources and name in resources:
        value = quantity(resources[name])
        if not value.is_whole():
            yield f"{path.key(name)}: fractional byte value {quote(str(value))} is invalid, must be an integer"


def _security_annotations(
    spec: PodSpec, annotations: Mapping[str, str], path: Path, meta: Path, template: bool
) -> Iterator[str]:
    context, at = spec.security_context, meta.child("annotations")
    if SECCOMP_POD in annotations and (context is None or context.seccomp_profile is None):
        yield f"{at.key(SECCOMP_POD)}: {_SECCOMP}"
    whole = context.app_armor_profile if context is not None else None
    for container, _ in all_containers_with_path(spec, path):
        own = container.security_context
        key = f"{SECCOMP_CONTAINER}{container.name}"
        if key in annotations and (own is None or own.seccomp_profile is None):
            yield f"{at.key(key)}: {_SECCOMP}"
        key = f"{APP_ARMOR}{container.name}"
        unsaid = template and key in annotations and (own is None or own.app_armor_profile is None)
        if unsaid and (whole is None or whole != app_armor_from_annotation(annotations[key])):
            yield f'{at.key(key)}: deprecated since v1.30; use the "appArmorProfile" field instead'


def _container(container: AnyContainer, path: Path) -> Iterator[str]:
    resources = container.resources
    if resources is not None:
        for name in ("memory", "ephemeral-storage"):
            if resources.limits:
                yield from _fractional(resources.limits, name, path.child("resources", "limits"))
            if resources.requests:
                yield from _fractional(resources.requests, name, path.child("resources", "requests"))
    if container.env and len(container.env) > 1:
        seen: set[str] = set()
        for index, variable in enumerate(container.env):
            name = variable.name or ""
            if name in seen:
                reference = f"$({name})"
                value = variable.value or ""
                if variable.value_from is not None or value == reference or reference not in value:
                    at = path.child("env").index(index)
                    yield f"{at}: hides previous definition of {quote(name)}, which may be dropped when using apply"
            seen.add(name)


_Port = tuple[int, Path, str, int]
"""A number in the order of the pod, where it is, host IP and host port."""


class _Taken:
    """The definitions of one container port, found by what makes another definition a problem.

    Only those are looked at that are worth a warning: thousands of equal ports cost no more than the first warnings.
    """

    __slots__ = ("_all", "_by_host", "_with_ip", "_without_host_port")

    def __init__(self) -> None:
        self._all: list[_Port] = []
        self._without_host_port: list[_Port] = []
        self._by_host: dict[tuple[str, int], list[_Port]] = {}
        self._with_ip: dict[int, list[_Port]] = {}

    def add(self, where: Path, ip: str, port: int) -> None:
        entry = (len(self._all), where, ip, port)
        self._all.append(entry)
        if not port:
            self._without_host_port.append(entry)
            return
        self._by_host.setdefault((ip, port), []).append(entry)
        if ip:
            self._with_ip.setdefault(port, []).append(entry)

    def like(self, ip: str, port: int) -> Iterable[_Port]:
        """Those that a definition duplicates, overlaps, or is ambiguous with; in order."""
        if not port:
            return self._all
        same = self._by_host.get((ip, port), ())
        ambiguous = self._by_host.get(("", port), ()) if ip else self._with_ip.get(port, ())
        return merge(self._without_host_port, same, ambiguous, key=_number)


def _number(entry: _Port) -> int:
    return entry[0]


def _ports(spec: PodSpec, path: Path) -> Iterator[str]:
    """Ports that are there twice, or nearly."""
    taken: dict[tuple[int | None, str | None], _Taken] = {}
    names: dict[str, Path] = {}
    later: list[str] = []
    for container, at in all_containers_with_path(spec, path):
        for index, port in enumerate(container.ports or ()):
            where = at.child("ports").index(index)
            host_ip, host_port = port.host_ip or "", port.host_port or 0
            if host_ip and not host_port:
                form = (
                    f"{{Name:{port.name or ''} HostPort:0 ContainerPort:{port.container_port or 0} "
                    f"Protocol:{port.protocol or ''} HostIP:{host_ip}}}"
                )
                yield f"{where}: hostIP set without hostPort: {form}"
            key = (port.container_port, port.protocol)
            others = taken.get(key)
            if others is None:
                others = taken[key] = _Taken()
            else:
                for _, other, other_ip, other_port in others.like(host_ip, host_port):
                    if host_ip == other_ip and host_port == other_port:
                        yield f"{where}: duplicate port definition with {other}"
                    elif not host_port or not other_port:
                        yield f"{where}: overlapping port definition with {other}"
                    else:
                        yield f"{where}: dangerously ambiguous port definition with {other}"
            others.add(where, host_ip, host_port)
            if port.name:
                first = names.setdefault(port.name, where)
                if first is not where:
                    later.append(
                        f"{where}: duplicate port name {quote(port.name)} with {first}, "
                        f"services and probes that select ports by name will use {first}"
                    )
    yield from later


def _affinity(spec: PodSpec, path: Path) -> Iterator[str]:
    if spec.affinity is None:
        return
    for wire, each in (
        ("podAffinity", spec.affinity.pod_affinity),
        ("podAntiAffinity", spec.affinity.pod_anti_affinity),
    ):
        if each is None:
            continue
        for index, term in enumerate(each.required_during_scheduling_ignored_during_execution or ()):
            if term.label_selector is None:
                at = path.child(wire, "requiredDuringSchedulingIgnoredDuringExecution").index(index)
                yield f"{at.child('labelSelector')}: {_NULL_SELECTOR}"
        for index, weighted in enumerate(each.preferred_during_scheduling_ignored_during_execution or ()):
            if weighted.pod_affinity_term is None or weighted.pod_affinity_term.label_selector is None:
                at = path.child(wire, "preferredDuringSchedulingIgnoredDuringExecution").index(index)
                yield f"{at.child('podAffinityTerm', 'labelSelector')}: {_NULL_SELECTOR}"
