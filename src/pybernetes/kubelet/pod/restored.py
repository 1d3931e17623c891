"""Rebuilds a pod that has no source any more from the labels and annotations of its containers.

After a restart the kubelet may find containers of pods that were deleted meanwhile: they are ended as gently as their
pod asked for, preStop hook included, and what that takes was written down when they were made.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from pybernetes.api.core.v1 import Container, ContainerPort, Lifecycle, LifecycleHandler, Pod, PodSpec, PodStatus
from pybernetes.api.meta.v1 import ObjectMeta

from ..runtime import labels
from ..runtime.types import ObservedContainer, ObservedPod

T = TypeVar("T")


def restored_pod(observed: ObservedPod) -> Pod:
    """The pod with all containers that there is a trace of."""
    ref = observed.ref
    newest = {each.name: each for each in reversed(observed.containers)}
    notes = next((each.annotations for each in observed.containers), {})
    deletion = _integer(notes.get(labels.DELETION_GRACE_PERIOD))
    return Pod(
        metadata=ObjectMeta(
            uid=ref.uid, namespace=ref.namespace, name=ref.name, deletion_grace_period_seconds=deletion
        ),
        spec=PodSpec(
            containers=[_container(each) for each in newest.values()],
            termination_grace_period_seconds=_integer(notes.get(labels.TERMINATION_GRACE_PERIOD)),
        ),
        status=PodStatus(),
    )


def _container(found: ObservedContainer) -> Container:
    notes = found.annotations
    handler = _decoded(notes.get(labels.PRE_STOP_HANDLER), LifecycleHandler)
    return Container(
        name=found.name,
        image=found.image,
        termination_message_path=notes.get(labels.TERMINATION_MESSAGE_PATH),
        lifecycle=Lifecycle(pre_stop=handler) if handler else None,
        ports=_decoded(notes.get(labels.PORTS), list[ContainerPort]),
    )


def _decoded(text: str | None, type: type[T]) -> T | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
