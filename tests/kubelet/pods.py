"""Short ways to write pods, for tests of the kubelet's managers."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.core.v1 import Container, Pod, PodSpec, ResourceRequirements
from pybernetes.api.meta.v1 import ObjectMeta


def resources(cpu: str = "", memory: str = "", limits: dict[str, Any] | None = None) -> ResourceRequirements:
    """`resources("1/2", "1Gi/2Gi")`: request and limit; one value is the request alone, `=1` is both."""
    requests: dict[str, Any] = {}
    upper: dict[str, Any] = dict(limits or {})
    for name, text in (("cpu", cpu), ("memory", memory)):
        request, slash, limit = text.partition("/")
        if text.startswith("="):
            requests[name] = upper[name] = text[1:]
            continue
        if request:
            requests[name] = request
        if slash:
            upper[name] = limit
    return ResourceRequirements(requests=requests or None, limits=upper or None)


def container(name: str = "c", cpu: str = "", memory: str = "", **more: Any) -> Container:
    """A container with resources as `resources` writes them."""
    limits = more.pop("limits", None)
    return Container(name=name, image="busybox", resources=resources(cpu, memory, limits), **more)


def pod(uid: str = "u1", *containers: Container, name: str = "p", **spec: Any) -> Pod:
    """A pod of these containers."""
    generation = spec.pop("generation", 1)
    annotations = spec.pop("annotations", None)
    metadata = ObjectMeta(name=name, namespace="ns", uid=uid, generation=generation, annotations=annotations)
    return Pod(metadata=metadata, spec=PodSpec(containers=list(containers) or [container()], **spec))


def changed(pod: Pod, **spec: Any) -> Pod:
    """The pod with another spec and the next generation."""
    metadata = msgspec.structs.replace(pod.metadata, generation=(pod.metadata.generation or 0) + 1)
    return msgspec.structs.replace(pod, metadata=metadata, spec=msgspec.structs.replace(pod.spec, **spec))
