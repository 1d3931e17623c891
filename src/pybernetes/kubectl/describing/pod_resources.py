"""Builds the typed part of a pod from which requests, limits and quality of service are computed."""

from __future__ import annotations

from msgspec import convert

from pybernetes.api.core.v1.pod import Pod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def typed(pod: dict[str, Any]) -> Pod:
    """The pod with nothing else, so that fields of a later version are no trouble."""
    return convert(_trimmed(pod), Pod)


def _trimmed(pod: dict[str, Any]) -> dict[str, Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}

    def some(found: list[dict[str, Any]] | None, *names: str) -> list[dict[str, Any]]:
        return [{name: each[name] for name in names if each.get(name) is not None} for each in found or ()]

    return {
        "spec": {
            **{name: spec[name] for name in ("resources", "overhead") if spec.get(name) is not None},
            "containers": some(spec.get("containers"), "name", "resources"),
            "initContainers": some(spec.get("initContainers"), "name", "resources", "restartPolicy"),
        },
        "status": {
            "conditions": some(status.get("conditions"), "type", "reason"),
            **{
                name: some(status.get(name), "name", "resources", "allocatedResources")
                for name in ("containerStatuses", "initContainerStatuses")
            },
        },
    }
