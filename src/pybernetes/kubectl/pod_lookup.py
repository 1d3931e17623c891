"""From what a user typed to a pod: `NAME`, `pod/NAME`, or a workload whose first running pod is taken."""

from __future__ import annotations

import time

from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.text import selector_text
from pybernetes.kubectl.errors import CLIError, raise_all, usage_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def check_timeout(context: Context) -> None:
    """Refuses a `--pod-running-timeout` that is no time. Raises CLIError."""
    if context.flags["pod-running-timeout"] <= 0:
        raise usage_error(context.path, "--pod-running-timeout must be higher than zero")


def pod_for(context: Context, word: str, timeout: float = 0, filenames: list[str] | None = None) -> dict[str, Any]:
    """The pod behind an argument. Raises CLIError."""
    builder = Builder(context)
    if filenames:
        builder.files(filenames)
    else:
        builder.arguments(["pods", word] if "/" not in word else [word])
    builder.latest = not filenames
    infos = builder.infos()
    raise_all(builder.errors)
    if filenames and len(infos) == 1:
        infos[0].refresh(context.client.get(infos[0].path()))
    if not infos:
        raise CLIError("no resource found")
    if len(infos) > 1:
        raise CLIError(f"cannot {context.path.rpartition(' ')[2]} into multiple objects at a time")
    info = infos[0]
    if info.mapping.kind == "Pod":
        return info.object
    return first_pod(context, info.object, info.mapping.resource, timeout)


def pods_selector(obj: dict[str, Any], resource: str) -> str:
    """The selector of a workload's pods. Raises CLIError."""
    selector = dig(obj, "spec", "selector", default={})
    if obj.get("kind") == "Service":
        if not selector:
            raise CLIError(f"invalid service '{obj['metadata']['name']}': Service is defined without a selector")
        return selector_text(selector)
    if not selector or obj.get("kind") == "CronJob":
        kind = f"*v1.{obj.get('kind')}"
        raise CLIError(f"cannot attach to {kind}: selector for {kind} not implemented")
    return selector_text(selector)


def first_pod(context: Context, obj: dict[str, Any], resource: str, timeout: float) -> dict[str, Any]:
    """The pod of a workload that is most likely wanted: running and ready before others."""
    namespace = obj["metadata"].get("namespace", context.namespace())
    selector = pods_selector(obj, resource)
    deadline = time.monotonic() + timeout
    while True:
        listed = context.client.get(f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector})
        found = sorted(listed.get("items") or (), key=_rank)
        if found:
            pod: dict[str, Any] = found[0]
            pod.setdefault("kind", "Pod")
            pod.setdefault("apiVersion", "v1")
            return pod
        if time.monotonic() > deadline:
            raise CLIError("timed out waiting for the condition")
        time.sleep(0.1)


def _rank(pod: dict[str, Any]) -> tuple[Any, ...]:
    from pybernetes.kubectl.ages import timestamp

    phase = {"Running": 0, "Pending": 1, "Unknown": 2}.get(dig(pod, "status", "phase", default=""), 3)
    ready = any(
        each.get("type") == "Ready" and each.get("status") == "True"
        for each in dig(pod, "status", "conditions", default=[])
    )
    statuses = dig(pod, "status", "containerStatuses", default=[])
    restarts = max((each.get("restartCount", 0) for each in statuses), default=0)
    created = timestamp(dig(pod, "metadata", "creationTimestamp")) or 0.0
    return (not dig(pod, "spec", "nodeName"), phase, not ready, restarts, created)
