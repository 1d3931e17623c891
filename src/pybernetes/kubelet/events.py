"""The reasons of the kubelet's events, and how an event says which container it is about. Words are upstream's."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import ObjectReference, Pod, PodSpec
from pybernetes.client.events import reference_to

# containers
CREATED: Final = "Created"
STARTED: Final = "Started"
FAILED: Final = "Failed"
KILLING: Final = "Killing"
PREEMPTING: Final = "Preempting"
BACK_OFF: Final = "BackOff"
EXCEEDED_GRACE_PERIOD: Final = "ExceededGracePeriod"
FAILED_POST_START_HOOK: Final = "FailedPostStartHook"
FAILED_PRE_STOP_HOOK: Final = "FailedPreStopHook"

# probes
UNHEALTHY: Final = "Unhealthy"
PROBE_WARNING: Final = "ProbeWarning"

# hooks
LIFECYCLE_HTTP_FALLBACK: Final = "LifecycleHTTPFallback"


def container_reference(pod: Pod, name: str) -> ObjectReference:
    """The container of that name as the object of an event: the pod, with the container in `fieldPath`."""
    spec = pod.spec or PodSpec()
    reference = reference_to(pod)
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        if any(each.name == name for each in containers or ()):
            reference.field_path = f"spec.{field}{{{name}}}"
            return reference
    reference.field_path = f"implicitly required container {name}"
    return reference
