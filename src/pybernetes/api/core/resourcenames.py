"""Parses the names of compute resources: `cpu`, `hugepages-2Mi`, `example.com/gpu`."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..names import is_qualified_name

HUGEPAGES_PREFIX: Final = "hugepages-"
REQUESTS_PREFIX: Final = "requests."
NATIVE_PREFIX: Final = "kubernetes.io/"
ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"

STANDARD_CONTAINER: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
POD_LEVEL: Final = frozenset({"cpu", "memory"})
INTEGER: Final = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)


def is_hugepages(name: str) -> bool:
    """Pre-allocated large pages of one size."""
    return name.startswith(HUGEPAGES_PREFIX)


def is_native(name: str) -> bool:
    """Kubernetes' own: no domain, or one of kubernetes.io."""
    return "/" not in name or NATIVE_PREFIX in name


@lru_cache(1024)
def is_extended(name: str) -> bool:
    """A vendor's: has a domain, and makes a valid name for a quota."""
    if is_native(name) or name.startswith(REQUESTS_PREFIX):
        return False
    return not is_qualified_name(REQUESTS_PREFIX + name)


def is_overcommit_allowed(name: str) -> bool:
    """Whether limits may be above requests."""
    return is_native(name) and not is_hugepages(name)


def is_integer(name: str) -> bool:
    """Whether it is counted in whole numbers."""
    return name in INTEGER or is_extended(name)


def is_standard_for_container(name: str) -> bool:
    """Whether a container may ask for it without a domain."""
    return name in STANDARD_CONTAINER or is_hugepages(name)


def is_supported_pod_level(name: str) -> bool:
    """Whether a pod as a whole may ask for it."""
    return name in POD_LEVEL or is_hugepages(name)
