"""The words of events about resizes: what the pod's containers have, as JSON, as upstream says it."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.core.v1 import Pod, PodSpec, ResourceRequirements


def started(pod: Pod, generation: int) -> str:
    """The node begins to resize."""
    return _message("Pod resize started", pod, generation)


def completed(pod: Pod, generation: int) -> str:
    """All containers have what was allocated."""
    return _message("Pod resize completed", pod, generation)


def failed(pod: Pod, generation: int, error: str) -> str:
    """The message when allocated resources could not be applied."""
    return _message("Pod resize error", pod, generation, error)


def pending(pod: Pod, reason: str, message: str, generation: int) -> str:
    """The node cannot allocate what is asked for."""
    return _message(f"Pod resize {reason}", pod, generation, message)


def _message(prefix: str, pod: Pod, generation: int, error: str = "") -> str:
    spec = pod.spec or PodSpec()
    summary: dict[str, Any] = {}
    for key, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        if containers:
            summary[key] = [
                {"name": each.name, "resources": each.resources or ResourceRequirements()} for each in containers
            ]
    summary["generation"] = generation
    if error:
        summary["error"] = error
    return f"{prefix}: {msgspec.json.encode(summary).decode()}"
