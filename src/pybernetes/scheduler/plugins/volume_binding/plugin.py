"""Brings pods to their volumes and volumes to their pods.

A claim that is bound keeps its pod where its volume can be reached. A claim whose class waits for its first consumer is
bound when the pod has its node: to the smallest volume there that suits, or to one that a provisioner makes for that
node. In between the choice is assumed, so that no other pod gets the volume (`assumed`); before the pod is bound the
choice is written down and has to come true (`binder`).

Node affinity of volumes of the old cloud plugins is taken as it is written and not translated to their drivers' labels;
nodes carry both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.volumebinding import claim_class, volume_class, wanted_size
from pybernetes.api.storage.v1 import CSIDriver, CSIStorageCapacity, StorageClass

from ...config.v1.args import VolumeBindingArgs
from ...framework import (
    SKIP,
    UNRESOLVABLE,
    CycleState,
    EventWithHint,
    FilterPlugin,
    Handle,
    Mask,
    PodInfo,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Refusals,
    ReservePlugin,
    RowArray,
    Rows,
    Status,
)
from ..assumed import Assumed
from ..claims import claim_names, not_found, not_made_for
from . import hints
from .binder import Binder
from .finder import CLASS_INDEX, Finder, PodClaims
from .matching import bound_copy, fully_bound, provisioned_copy

BIND_TIMEOUT = 600
"""Seconds; upstream's default of `bindTimeoutSeconds`."""

_REASONS = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)


@dataclass(slots=True)
class _State:
    claims: PodClaims
    volumes: list[PersistentVolume] = field(default_factory=list)
    """Assumed to be bound to claims of the pod."""
    provisioned: list[PersistentVolumeClaim] = field(default_factory=list)
    """Assumed to get a volume for the pod's node."""


class VolumeBinding(PreFilterPlugin, FilterPlugin, ReservePlugin, PreBindPlugin):
    """See the module."""

    name = "VolumeBinding"
    Args = VolumeBindingArgs

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        volumes = handle.informer(PersistentVolume)
        volumes.add_index(CLASS_INDEX, lambda each: [volume_class(each)])
        self._volumes = Assumed(volumes)
        self._claims = Assumed(handle.informer(PersistentVolumeClaim))
        self._classes = handle.informer(StorageClass)
        drivers, capacities = handle.informer(CSIDriver), handle.informer(CSIStorageCapacity)
        self._finder = Finder(handle.snapshot, self._volumes, self._classes, drivers, capacities)
        timeout = args.bind_timeout_seconds
        self._binder = Binder(handle, self._volumes, self._claims, BIND_TIMEOUT if timeout is None else timeout)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return hints.events()

    # -- filter

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        if not pod.spec.volumes:
            return SKIP
        names = claim_names(pod.pod)
        if not names:
            return SKIP
        for name, made in names:
            wrong = self._wrong(pod, name, made)
            if wrong:
                return Status(UNRESOLVABLE, wrong)
        claims = PodClaims()
        for name, _ in names:
            claim = self._claims.named(name, pod.namespace)
            assert claim is not None
            if fully_bound(claim):
                claims.bound.append(claim)
            elif self._waits(claim) and not (claim.spec and claim.spec.volume_name):
                claims.waiting.append(claim)
            else:
                return Status(UNRESOLVABLE, "pod has unbound immediate PersistentVolumeClaims")
        claims.waiting.sort(key=wanted_size)
        state[self.name] = _State(claims)
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        found: _State = state[self.name]
        return self._finder.find(found.claims, self.handle.snapshot.row_numbers(rows)).fine

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        found: _State = state[self.name]
        answer = self._finder.find(found.claims, rows)
        kinds = np.stack((answer.node_conflict, answer.no_volume, answer.no_space, answer.missing), axis=1)
        groups: dict[tuple[bool, ...], list[int]] = {}
        for row, kind in zip(rows.tolist(), kinds.tolist(), strict=True):
            groups.setdefault(tuple(kind), []).append(row)
        return [
            (
                Status(UNRESOLVABLE, *(reason for reason, there in zip(_REASONS, kind, strict=True) if there)),
                np.array(members, dtype=np.intp),
            )
            for kind, members in groups.items()
        ]

    def _wrong(self, pod: PodInfo, name: str, made: bool) -> str | None:
        claim = self._claims.informer.named(name, pod.namespace)
        if claim is None:
            if made:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return not_found(name)
        if claim.status is not None and claim.status.phase == "Lost":
            volume = (claim.spec.volume_name if claim.spec else None) or ""
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata is not None and claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        return not_made_for(pod.pod, claim) if made else None

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim's class binds when its first consumer is placed."""
        name = claim_class(claim)
        found = self._classes.named(name) if name else None
        if found is None:
            return False
        if found.volume_binding_mode is None:
            raise ValueError(f'VolumeBindingMode not set for StorageClass "{name}"')
        return found.volume_binding_mode == "WaitForFirstConsumer"

    # -- reserve

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        found: _State | None = state.get(self.name)
        if found is None or not found.claims.waiting:
            return None
        pairs, to_make = self._finder.choose(found.claims, self.handle.snapshot.row_of[node_name])
        found.volumes = [bound_copy(volume, claim) for volume, claim in pairs]
        found.provisioned = [provisioned_copy(claim, node_name) for claim in to_make]
        for volume in found.volumes:
            self._volumes.assume(volume)
        for claim in found.provisioned:
            self._claims.assume(claim)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        found: _State | None = state.get(self.name)
        if found is None:
            return
        for volume in found.volumes:
            self._volumes.restore(volume)
        for claim in found.provisioned:
            self._claims.restore(claim)
        found.volumes, found.provisioned = [], []

    # -- pre-bind

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        found: _State | None = state.get(self.name)
        return None if found is not None and (found.volumes or found.provisioned) else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        found: _State | None = state.get(self.name)
        if found is not None and (found.volumes or found.provisioned):
            await self._binder.bind(pod.key, node_name, found.volumes, found.provisioned)
        return None
