"""Which Secrets a pod names, in all the places where it can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .containers import all_containers
from .v1.pod import Pod


def secret_names(pod: Pod) -> Iterator[str]:
    """All Secrets that a pod names."""
    spec = pod.spec
    if spec is None:
        return
    yield from (each.name or "" for each in spec.image_pull_secrets or ())
    for container in all_containers(spec):
        yield from (each.secret_ref.name or "" for each in container.env_from or () if each.secret_ref)
        for variable in container.env or ():
            if variable.value_from and variable.value_from.secret_key_ref:
                yield variable.value_from.secret_key_ref.name or ""
    for volume in spec.volumes or ():
        if volume.secret:
            yield volume.secret.secret_name or ""
        if volume.azure_file:
            yield volume.azure_file.secret_name or ""
        if volume.projected:
            yield from (each.secret.name or "" for each in volume.projected.sources or () if each.secret)
        if volume.csi and volume.csi.node_publish_secret_ref:
            yield volume.csi.node_publish_secret_ref.name or ""
        sources: tuple[Any, ...] = (
            volume.cephfs,
            volume.cinder,
            volume.flex_volume,
            volume.rbd,
            volume.scale_io,
            volume.iscsi,
            volume.storageos,
        )
        yield from (each.secret_ref.name or "" for each in sources if each and each.secret_ref)
