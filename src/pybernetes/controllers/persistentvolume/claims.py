"""Decides the next step of a claim. Pure: from the present objects to one of a few decisions.

A claim without the annotation `pv.kubernetes.io/bind-completed` is looking for a volume: the one it names, or the
smallest that suits it, or one that an external provisioner makes. A claim with the annotation has had a volume, and if
that is gone the claim is lost: its data does not come back with another volume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pybernetes.api import labels
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.volumebinding import (
    BIND_COMPLETED,
    SELECTED_NODE,
    allows_access,
    claim_class,
    has_class,
    is_bound_to,
    is_possible,
    same_attributes_class,
    same_mode,
    volume_class,
    volume_size,
    wanted_size,
)
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.quantity import Quantity
from pybernetes.api.storage.v1 import StorageClass
from pybernetes.client.events import NORMAL, WARNING

from ..common.meta import annotations_of, created, is_deleting, name_of
from .migration import CSI_DRIVERS, HOST_PATH, IN_TREE_PREFIX, no_plugin
from .user_event import UserEvent

_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


@dataclass(frozen=True)
class Bind:
    """Give the volume to the claim."""

    volume: PersistentVolume


@dataclass(frozen=True)
class Report:
    """Give the claim this phase. The event of a lost claim is sent once, that of a waiting one each time."""

    phase: str
    event: UserEvent | None = None


@dataclass(frozen=True)
class AssignClass:
    """Give the claim the default class, which there was not yet when it was made."""

    name: str


@dataclass(frozen=True)
class Provision:
    """Name the one who is to make a volume."""

    provisioner: str
    event: UserEvent


@dataclass(frozen=True)
class Say:
    """Only an event can be sent."""

    event: UserEvent | None


ClaimDecision = Bind | Report | AssignClass | Provision | Say


def decide_claim(
    claim: PersistentVolumeClaim,
    named: PersistentVolume | None,
    candidates: Iterable[PersistentVolume],
    classes: Iterable[StorageClass],
    unscheduled: Callable[[], list[str]],
    dynamic_provisioning: bool = True,
) -> ClaimDecision:
    """Decide the next step of a claim.

    `named` is the volume that it names, if there is such a volume; `candidates` those that might suit; `unscheduled`
    tells the names of pods that use the claim and have no node yet.
    """
    wanted = claim.spec.volume_name if claim.spec else None
    if BIND_COMPLETED in annotations_of(claim):
        return _had_volume(claim, wanted, named)
    if not wanted:
        return _needs_any(claim, candidates, list(classes), unscheduled, dynamic_provisioning)
    if named is None:
        return Report("Pending")
    if named.spec is None or named.spec.claim_ref is None:
        problem = mismatch(named, claim)
        if problem is None:
            return Bind(named)
        message = f"Cannot bind to requested volume {quote(name_of(named))}: {problem}"
        return Report("Pending", UserEvent(WARNING, "VolumeMismatch", message))
    if is_bound_to(named, claim):
        return Bind(named)
    taken = UserEvent(WARNING, "FailedBinding", f"volume {quote(name_of(named))} already bound to a different claim.")
    return Report("Pending", taken)


def best_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, delayed: bool = False
) -> PersistentVolume | None:
    """The volume for a claim: with as few ways of access as possible, then reserved for it, then the smallest.

    With `delayed` only one that is reserved: all others wait for the scheduler, which knows the node.
    """
    best: PersistentVolume | None = None
    rank: tuple[int, bool, Quantity, str] | None = None
    wanted = wanted_size(claim)
    for volume in volumes:
        reserved = is_bound_to(volume, claim)
        if not reserved and (delayed or not _is_free(volume, claim)):
            continue
        if not is_possible(volume, claim, wanted) or not allows_access(volume, claim):
            continue
        modes = set((volume.spec.access_modes if volume.spec else None) or ())
        here = (len(modes), not reserved, volume_size(volume), name_of(volume))
        if rank is None or here < rank:
            best, rank = volume, here
    return best


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str | None:
    """Why a volume that a claim names cannot be its volume; None if it can."""
    if is_deleting(volume):
        return f"the volume is marked for deletion {quote(name_of(volume))}"
    if volume_size(volume).value() < wanted_size(claim).value():
        return "requested PV is too small"
    if volume_class(volume) != claim_class(claim):
        return "storageClassName does not match"
    if not same_attributes_class(volume, claim):
        return "volumeAttributesClassName does not match"
    if not same_mode(volume, claim):
        return "incompatible volumeMode"
    if not allows_access(volume, claim):
        return "incompatible accessMode"
    return None


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The class of claims that name none: the newest of those that say so."""
    found = [each for each in classes if any(annotations_of(each).get(key) == "true" for key in _DEFAULT_CLASS)]
    return min(found, key=lambda each: (-created(each), name_of(each)), default=None)


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if volume.status is None or volume.status.phase != "Available" or volume_class(volume) != claim_class(claim):
        return False
    selector = claim.spec.selector if claim.spec else None
    if selector is None:
        return True
    return labels.from_label_selector(selector).matches((volume.metadata.labels if volume.metadata else None) or {})


def _had_volume(claim: PersistentVolumeClaim, wanted: str | None, volume: PersistentVolume | None) -> ClaimDecision:
    lost = "Bound claim has lost {}. Data on the volume is lost!"
    if not wanted:
        return Report("Lost", UserEvent(WARNING, "ClaimLost", lost.format("reference to PersistentVolume")))
    if volume is None:
        return Report("Lost", UserEvent(WARNING, "ClaimLost", lost.format("its PersistentVolume")))
    reference = volume.spec.claim_ref if volume.spec else None
    if reference is None or reference.uid == (claim.metadata.uid if claim.metadata else None):
        return Bind(volume)
    message = "Two claims are bound to the same volume, this one is bound incorrectly"
    return Report("Lost", UserEvent(WARNING, "ClaimMisbound", message))


def _needs_any(
    claim: PersistentVolumeClaim,
    candidates: Iterable[PersistentVolume],
    classes: list[StorageClass],
    unscheduled: Callable[[], list[str]],
    dynamic_provisioning: bool,
) -> ClaimDecision:
    wanted = claim_class(claim)
    own = next((each for each in classes if name_of(each) == wanted), None)
    delayed = own is not None and own.volume_binding_mode == "WaitForFirstConsumer"
    volume = best_volume(claim, candidates, delayed=delayed)
    if volume is not None:
        return Bind(volume)
    if not has_class(claim):
        standard = default_class(classes)
        if standard is not None:
            return AssignClass(name_of(standard))
    if delayed and SELECTED_NODE not in annotations_of(claim):
        return Report("Pending", _waits(unscheduled()))
    if not wanted:
        message = "no persistent volumes available for this claim and no storage class is set"
        return Report("Pending", UserEvent(NORMAL, "FailedBinding", message))
    if not dynamic_provisioning:
        return Say(None)
    if own is None:
        return _cannot_provision(f"storageclass.storage.k8s.io {quote(wanted)} not found")
    provisioner = own.provisioner or ""
    driver = CSI_DRIVERS.get(provisioner, provisioner)
    if driver == HOST_PATH:
        failed = f"Failed to create provisioner: provisioning in volume plugin {quote(driver)} is disabled"
        return Provision(driver, UserEvent(WARNING, "ProvisioningFailed", failed))
    if driver.startswith(IN_TREE_PREFIX):
        return _cannot_provision(no_plugin(driver, "provisionable"))
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{driver}' or manually by the system "
        "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
        "registered."
    )
    return Provision(driver, UserEvent(NORMAL, "ExternalProvisioning", message))


def _waits(pods: list[str]) -> UserEvent:
    if not pods:
        return UserEvent(NORMAL, "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    some = f"pod {pods[0]}" if len(pods) == 1 else f"pods {','.join(pods)}"
    return UserEvent(NORMAL, "WaitForPodScheduled", f"waiting for {some} to be scheduled")


def _cannot_provision(why: str) -> Say:
    return Say(UserEvent(WARNING, "ProvisioningFailed", why))
