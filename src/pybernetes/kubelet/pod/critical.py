"""Pods that the node cannot do without: static pods, and those of a system priority class."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import Pod

from ..runtime import labels

SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000


def is_static(pod: Pod) -> bool:
    """Whether it came from a file or a URL, not from the API."""
    annotations = (pod.metadata and pod.metadata.annotations) or {}
    return annotations.get(labels.CONFIG_SOURCE, "api") != "api"


def is_mirror(pod: Pod) -> bool:
    """Whether it only shows a static pod in the API."""
    return labels.CONFIG_MIRROR in ((pod.metadata and pod.metadata.annotations) or {})


def is_critical(pod: Pod) -> bool:
    """Whether it must not be evicted, and others may have to go for it."""
    priority = pod.spec.priority if pod.spec else None
    return is_static(pod) or is_mirror(pod) or (priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY)


def is_node_critical(pod: Pod) -> bool:
    """Whether it is critical and of the class `system-node-critical`."""
    return is_critical(pod) and pod.spec is not None and pod.spec.priority_class_name == "system-node-critical"
