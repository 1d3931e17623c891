"""Decides the next step of a volume, also of one whose claim is gone. Pure.

What is behind a volume is deleted by external provisioners only. Upstream can also recycle volumes of two kinds and
delete folders of the host it runs on, for tests on one machine; here such volumes become Failed and say so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.volumebinding import same_mode
from pybernetes.api.gocompat.quote import quote
from pybernetes.client.events import WARNING

from ..common.meta import annotations_of, name_of
from .migration import IN_TREE_PREFIX, MIGRATED_TO, PROVISIONED_BY, no_plugin
from .user_event import UserEvent


@dataclass(frozen=True)
class Phase:
    """Give the volume this phase."""

    phase: str


@dataclass(frozen=True)
class Release:
    """The claim does not need the volume any more: reclaim it."""


@dataclass(frozen=True)
class WakeClaim:
    """The claim does not know of its volume yet."""


@dataclass(frozen=True)
class Mismatched:
    """The claim and the volume that is reserved for it can never be bound; each gets an event."""

    volume: UserEvent
    claim: UserEvent


@dataclass(frozen=True)
class Unbind:
    """The claim has another volume: this one is free."""


VolumeDecision = Phase | Release | WakeClaim | Mismatched | Unbind


def decide_volume(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> VolumeDecision:
    """Decide the next step of a volume; `claim` is the very one that the volume names (its uid), None if that is
    gone."""
    reference = volume.spec.claim_ref if volume.spec else None
    if reference is None or not reference.uid:
        return Phase("Available")
    if claim is None:
        return Release()
    chosen = claim.spec.volume_name if claim.spec else None
    if not chosen:
        if same_mode(volume, claim):
            return WakeClaim()
        here, there = quote(name_of(volume)), quote(name_of(claim))
        text = "Cannot bind PersistentVolume{} to requested PersistentVolumeClaim{} due to incompatible volumeMode."
        return Mismatched(
            UserEvent(WARNING, "VolumeMismatch", text.format("", f" {there}")),
            UserEvent(WARNING, "VolumeMismatch", text.format(f" {here}", "")),
        )
    if chosen == name_of(volume):
        return Phase("Bound")
    policy = volume.spec.persistent_volume_reclaim_policy if volume.spec else None
    if PROVISIONED_BY in annotations_of(volume) and policy == "Delete":
        return Release()  # it was provisioned for this claim alone
    return Unbind()


def decide_reclaim(volume: PersistentVolume) -> UserEvent | None:
    """Why a released volume cannot be reclaimed as it asks for; None if others do it or nothing is to be done."""
    spec = volume.spec
    annotations = annotations_of(volume)
    if spec is None or annotations.get(MIGRATED_TO) or spec.persistent_volume_reclaim_policy == "Retain":
        return None
    if spec.persistent_volume_reclaim_policy == "Recycle":
        return UserEvent(WARNING, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
    if spec.persistent_volume_reclaim_policy != "Delete":
        message = "Volume has unrecognized PersistentVolumeReclaimPolicy"
        return UserEvent(WARNING, "VolumeUnknownReclaimPolicy", message)
    provisioner = annotations.get(PROVISIONED_BY)
    if provisioner:
        if not provisioner.startswith(IN_TREE_PREFIX):
            return None
        return UserEvent(WARNING, "VolumeFailedDelete", no_plugin(provisioner, "deletable"))
    if spec.csi is not None:
        return None
    path = (spec.host_path.path if spec.host_path is not None else None) or ""
    if path and not re.match("/tmp/.+", path):
        message = f"host_path deleter only supports /tmp/.+ but received provided {path}"
        return UserEvent(WARNING, "VolumeFailedDelete", message)
    able = "" if spec.host_path is None and spec.nfs is None else " deletable"
    why = f"no{able} volume plugin matched"
    message = f"error getting deleter volume plugin for volume {quote(name_of(volume))}: {why}"
    return UserEvent(WARNING, "VolumeFailedDelete", message)
