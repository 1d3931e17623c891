"""Stores the resources of pods, by uid, in a checkpoint (`allocated_pods_state`, `actuated_pods_state`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pybernetes.api.core.v1 import Pod, PodSpec, ResourceRequirements
from pybernetes.client.keys import copy
from pybernetes.component import state_files

from ..checkpoints import decode_text, save_text
from .amounts import resizable

log = logging.getLogger(__name__)


class PodResources(msgspec.Struct, omit_defaults=True):
    """The resources of a pod and of its containers by name."""

    containers: dict[str, ResourceRequirements] = msgspec.field(default_factory=dict, name="ContainerResources")
    pod: ResourceRequirements | None = msgspec.field(default=None, name="PodLevelResources")


class _Entries(msgspec.Struct, omit_defaults=True):
    entries: dict[str, PodResources] = {}


def resources_of(pod: Pod) -> PodResources:
    """The resources in the spec of a pod."""
    spec = pod.spec or PodSpec()
    return PodResources(
        {each.name or "": copy(each.resources or ResourceRequirements()) for each in resizable(spec)},
        copy(spec.resources) if spec.resources is not None else None,
    )


class ResourceState:
    """Resources by pod, on disk after `save`: all that has changed is written at once, which is what it costs.

    A forgotten pod is removed from the file with the next change: one pod too many in it does no harm.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = state_files.read(path, _decode) or {}
        self._changed = False

    def get(self, uid: str) -> PodResources | None:
        """The resources of a pod; callers must not change them."""
        return self._entries.get(uid)

    def set(self, uid: str, resources: PodResources) -> None:
        """Remember what a pod has."""
        if self._entries.get(uid) != resources:
            self._entries[uid] = resources
            self._changed = True

    def set_container(self, uid: str, name: str, resources: ResourceRequirements) -> None:
        """Remember what a container has."""
        old = self._entries.get(uid) or PodResources()
        self.set(uid, PodResources({**old.containers, name: copy(resources)}, old.pod))

    def set_pod(self, uid: str, resources: ResourceRequirements | None) -> None:
        """Remember what a pod has beside its containers."""
        old = self._entries.get(uid) or PodResources()
        self.set(uid, PodResources(old.containers, copy(resources) if resources is not None else None))

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        self._entries.pop(uid, None)

    def keep(self, known: Iterable[str]) -> None:
        """Forget all pods but these."""
        wanted = set(known)
        self._entries = {uid: entry for uid, entry in self._entries.items() if uid in wanted}

    def save(self) -> None:
        """Write down what has changed, if anything has; before it is acted on.

        A disk that takes nothing is logged, and the next call tries again: pods go on without the file.
        """
        if not self._changed:
            return
        try:
            save_text(self._path, msgspec.json.encode(_Entries(self._entries)).decode())
            self._changed = False
        except OSError as error:
            log.error("what pods have been given cannot be written to %s: %s", self._path, error)


def _decode(content: bytes) -> dict[str, PodResources]:
    return msgspec.json.decode(decode_text(content), type=_Entries).entries
