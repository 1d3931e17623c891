"""The condition that tells why a pod is about to be deleted: `DisruptionTarget`."""

from __future__ import annotations

from pybernetes.api.core.podconditions import find_pod_condition
from pybernetes.api.core.v1 import Pod, PodCondition
from pybernetes.api.times import rfc3339
from pybernetes.client.client import Client
from pybernetes.client.keys import key_of, uid_of

from .meta import generation_of


async def mark(client: Client, pod: Pod, now: float, reason: str, message: str) -> None:
    """Say on a pod why it will be deleted, if it does not say so already."""
    wanted = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason=reason,
        message=message,
        observed_generation=generation_of(pod),
    )
    present = find_pod_condition(pod.status, "DisruptionTarget")
    turned = present is None or present.status != "True"
    wanted.last_transition_time = rfc3339(now) if turned or present is None else present.last_transition_time
    if present is not None:
        wanted.last_probe_time = present.last_probe_time
    if present != wanted:
        patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [wanted]}}
        key = key_of(pod)
        await client.patch(Pod, key.name, patch, key.namespace, type="strategic", subresource="status")
