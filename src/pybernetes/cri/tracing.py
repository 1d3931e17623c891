"""Spans across the runtime's socket: the caller's in the call's metadata, the runtime's own behind the response.

A runtime has no connection to the API server, so what it recorded travels back with whatever call ends next. A call
carries GIVEN bytes at most, because gRPC bounds metadata; the rest waits for the next call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from pybernetes.trace import context, recorder
from pybernetes.trace.span import Batch, decoder, encoder

SPANS: Final = "pybernetes-spans-bin"
GIVEN: Final = 6000  # bytes; gRPC's default for all metadata of a call is 8 KB
RECORDED: Final = frozenset(
    (
        "RunPodSandbox",
        "StopPodSandbox",
        "RemovePodSandbox",
        "CreateContainer",
        "StartContainer",
        "StopContainer",
        "RemoveContainer",
        "UpdateContainerResources",
        "UpdatePodSandboxResources",
        "PullImage",
        "RemoveImage",
    )
)
"""Calls that change something; the others ask."""


def described(request: Any) -> str:
    """The object of a call: the pod, the container, the image."""
    config = getattr(request, "config", None)
    metadata = getattr(config, "metadata", None)
    if metadata is not None and metadata.name:
        namespace = getattr(metadata, "namespace", "")
        return f"{namespace}/{metadata.name}" if namespace else str(metadata.name)
    image = getattr(request, "image", None)
    if image is not None:
        return str(image.image)
    return str(getattr(request, "container_id", "") or getattr(request, "pod_sandbox_id", ""))[:13]


def begin(metadata: Iterable[tuple[str, Any]]) -> None:
    """Make the caller's span the parent of this task's spans."""
    for key, value in metadata or ():
        if key == context.HEADER:
            recorder.CURRENT.set(context.parse(value))


def give() -> bytes:
    """The spans that have finished here, as many as fit."""
    assert recorder.RECORDER is not None
    finished = recorder.RECORDER.take()
    count = len(finished)
    while count and len(encoded := encoder.encode(Batch(finished[:count]))) > GIVEN:
        count //= 2
    recorder.RECORDER.finished = [*finished[count or 1 :], *recorder.RECORDER.finished]  # one too large is dropped
    return encoded if count else encoder.encode(Batch([]))


def take(value: bytes) -> None:
    """Keep what the runtime has recorded."""
    if recorder.RECORDER is None:
        return
    try:
        spans = decoder.decode(value).spans
    except msgspec.DecodeError:
        return
    for span in spans:
        recorder.RECORDER.add(span)
