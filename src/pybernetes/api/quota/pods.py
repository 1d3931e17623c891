"""Pods against a quota: cpu, memory, storage, huge pages and devices, while they run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..core.podrequests import has_pod_level_resources, pod_limits, pod_requests
from ..core.podresources import Quantities, qos_class
from ..core.resourcenames import HUGEPAGES_PREFIX, REQUESTS_PREFIX, is_extended, is_hugepages, is_native
from ..core.v1.affinity import PodAffinity, PodAntiAffinity
from ..core.v1.pod import Pod, PodSpec
from ..core.v1.quota import ScopedResourceSelectorRequirement
from ..times import parse_time
from .evaluator import Evaluator, Operation, scope_matches
from .lists import ONE, Resources, parsed

COUNT: Final = "count/pods"
DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"

_NAMES: Final = frozenset(
    {
        COUNT,
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
    }
)
_MUST_BE_SAID: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")


class PodEvaluator(Evaluator):
    """Pods; those that have ended, or should have by now, count only as objects."""

    group, plural = "", "pods"

    def matching_resources(self, names: Iterable[str]) -> list[str]:
        """Compute resources, huge pages, and what vendors add."""
        return sorted({each for each in names if each in _NAMES or _is_huge(each) or _is_extended(each)})

    def usage(self, obj: Pod, now: float) -> Resources:
        """Requests and limits of the pod as a whole."""
        if not counts(obj, now):
            return {COUNT: ONE}
        return {COUNT: ONE, **compute_usage(pod_requests(obj), pod_limits(obj))}

    def matches_scope(self, requirement: ScopedResourceSelectorRequirement, obj: Pod) -> bool:
        """By deadline, quality of service, priority class, or affinity across namespaces."""
        spec = obj.spec or PodSpec()
        match requirement.scope_name:
            case "Terminating":
                return has_deadline(obj)
            case "NotTerminating":
                return not has_deadline(obj)
            case "BestEffort":
                return qos_class(spec) == "BestEffort"
            case "NotBestEffort":
                return qos_class(spec) != "BestEffort"
            case "PriorityClass":
                name = spec.priority_class_name
                if requirement.operator == "Exists":
                    return bool(name)
                return scope_matches(requirement, {"PriorityClass": name} if name else {})
            case "CrossNamespacePodAffinity":
                return uses_cross_namespace_affinity(spec)
        return False

    def uncovered_scopes(
        self,
        limited: Iterable[ScopedResourceSelectorRequirement],
        matched: Iterable[ScopedResourceSelectorRequirement],
    ) -> list[ScopedResourceSelectorRequirement]:
        """Limited scopes of which no matching quota speaks."""
        covered = {each.scope_name for each in matched}
        return [each for each in limited if each.scope_name not in covered]

    def missing(self, required: Iterable[str], obj: Pod) -> str | None:
        """Every container must say what a quota limits, unless the pod says it for all."""
        spec = obj.spec or PodSpec()
        if has_pod_level_resources(spec):
            return None
        wanted = _MUST_BE_SAID.intersection(required)
        silent: dict[str, set[str]] = {}
        for container in (*(spec.containers or ()), *(spec.init_containers or ())):
            resources = container.resources
            said = compute_usage(
                parsed(resources.requests if resources else None), parsed(resources.limits if resources else None)
            )
            for name in wanted.difference(said):
                silent.setdefault(name, set()).add(container.name or "")
        if not silent:
            return None
        texts = (f"{name} for: {','.join(sorted(containers))}" for name, containers in sorted(silent.items()))
        return f"must specify {'; '.join(texts)}"

    def handles(self, operation: Operation, subresource: str, old: Any, new: Any) -> bool:
        """New pods, resized ones, and those that get or lose a deadline."""
        if subresource == "resize":
            return operation == "UPDATE"
        if subresource:
            return False
        return operation == "CREATE" or (operation == "UPDATE" and has_deadline(old) != has_deadline(new))

    def changes_usage(self, old: Pod, new: Pod, now: float) -> bool:
        """A pod that ends sets free; one that is resized or changes its scope counts differently."""
        if has_deadline(old) != has_deadline(new) or _resources(old) != _resources(new):
            return True
        return counts(old, now) and not counts(new, now)


def counts(pod: Pod, now: float) -> bool:
    """Whether a pod still uses what it asked for: it runs, and its time to end is not over."""
    if pod.status is not None and pod.status.phase in ("Failed", "Succeeded"):
        return False
    metadata = pod.metadata
    if metadata is None or metadata.deletion_timestamp is None or metadata.deletion_grace_period_seconds is None:
        return True
    return now <= parse_time(metadata.deletion_timestamp) + metadata.deletion_grace_period_seconds


def has_deadline(pod: Pod) -> bool:
    """Whether the pod is bound to end."""
    return pod.spec is not None and pod.spec.active_deadline_seconds is not None


def compute_usage(requests: Quantities, limits: Quantities) -> Resources:
    """Requests and limits under the names that quotas use."""
    result: Resources = {"pods": ONE}
    for name in _COMPUTE:
        if name in requests:
            result[name] = result[f"{REQUESTS_PREFIX}{name}"] = requests[name]
        if name in limits:
            result[f"limits.{name}"] = limits[name]
    for name, value in requests.items():
        if is_hugepages(name):
            result[name] = result[f"{REQUESTS_PREFIX}{name}"] = value
        elif is_extended(name) or name.startswith(DEVICE_CLASS_PREFIX):
            result[f"{REQUESTS_PREFIX}{name}"] = value
    return result


def uses_cross_namespace_affinity(spec: PodSpec) -> bool:
    """Whether the pod asks to be near to, or away from, pods of other namespaces."""
    affinity = spec.affinity
    return affinity is not None and (_crosses(affinity.pod_affinity) or _crosses(affinity.pod_anti_affinity))


def _crosses(affinity: PodAffinity | PodAntiAffinity | None) -> bool:
    if affinity is None:
        return False
    terms = [*(affinity.required_during_scheduling_ignored_during_execution or ())]
    preferred = affinity.preferred_during_scheduling_ignored_during_execution or ()
    terms += [each.pod_affinity_term for each in preferred if each.pod_affinity_term is not None]
    return any(each.namespaces or each.namespace_selector is not None for each in terms)


def _resources(pod: Pod) -> list[tuple[str | None, Any]]:
    status = pod.status
    if status is None:
        return []
    return [
        (each.name, each.resources)
        for each in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    ]


def _is_huge(name: str) -> bool:
    return name.startswith((HUGEPAGES_PREFIX, REQUESTS_PREFIX + HUGEPAGES_PREFIX))


def _is_extended(name: str) -> bool:
    vendors = not is_native(name) or name.startswith(REQUESTS_PREFIX + DEVICE_CLASS_PREFIX)
    return vendors and name.startswith(REQUESTS_PREFIX)
