"""All containers of a pod, in the order upstream visits them."""

from __future__ import annotations

from collections.abc import Iterator

from ..field import Path
from .v1.container import Container, EphemeralContainer
from .v1.pod import PodSpec

AnyContainer = Container | EphemeralContainer


def all_containers(spec: PodSpec) -> Iterator[AnyContainer]:
    """Init containers, containers, ephemeral containers."""
    yield from spec.init_containers or ()
    yield from spec.containers or ()
    yield from spec.ephemeral_containers or ()


def all_containers_with_path(spec: PodSpec, path: Path) -> Iterator[tuple[AnyContainer, Path]]:
    """The same, each with the place it has."""
    if spec.init_containers:
        for index, container in enumerate(spec.init_containers):
            yield container, path.child("initContainers").index(index)
    for index, container in enumerate(spec.containers or ()):
        yield container, path.child("containers").index(index)
    if spec.ephemeral_containers:
        for index, ephemeral in enumerate(spec.ephemeral_containers):
            yield ephemeral, path.child("ephemeralContainers").index(index)
