"""Claims and volumes on a real server."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness
from controllers.persistentvolume.makers import DEFAULT, claim, reference, storage_class, volume

from pybernetes.api import errors
from pybernetes.api.core.v1 import Event, PersistentVolume, PersistentVolumeClaim, Pod
from pybernetes.api.core.volumebinding import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from pybernetes.client.keys import copy
from pybernetes.controllers.options import Options

BINDER = "persistentvolume-binder-controller"
PROTECTION = ("persistentvolume-protection-controller", "persistentvolumeclaim-protection-controller")

_numbers = itertools.count(1)


@pytest.fixture
def unique() -> str:
    """A class of the test's own: volumes have no namespace."""
    return f"class-{next(_numbers)}"


async def claim_in(h: Harness, name: str = "data", **spec: Any) -> PersistentVolumeClaim:
    return await h.client.create(claim(name, namespace=h.namespace, uid=None, **spec))


def is_bound(h: Harness, name: str = "data", to: str | None = None) -> Any:
    async def check() -> PersistentVolumeClaim | None:
        found = await h.client.get(PersistentVolumeClaim, name, h.namespace)
        bound = found.status is not None and found.status.phase == "Bound"
        return found if bound and found.spec and to in (None, found.spec.volume_name) else None

    return h.until(check, f"{name} is bound to {to}")


def has_phase(h: Harness, name: str, phase: str) -> Any:
    async def check() -> PersistentVolume | None:
        found = await h.client.get(PersistentVolume, name)
        return found if found.status is not None and found.status.phase == phase else None

    return h.until(check, f"{name} is {phase}")


def said(h: Harness, reason: str, message: str = "") -> Any:
    async def check() -> list[Event]:
        return [each for each in await h.events(reason) if message in (each.message or "")]

    return h.until(check, f"an event {reason}")


async def test_a_claim_and_a_volume_find_each_other_and_part(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER, *PROTECTION) as h:
        await h.client.create(volume(f"{unique}-v", storageClassName=unique, size="2Gi", phase=None))
        await has_phase(h, f"{unique}-v", "Available")
        await claim_in(h, storageClassName=unique)
        bound = await is_bound(h, to=f"{unique}-v")
        assert bound.metadata.annotations == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
        assert bound.status.capacity == {"storage": "2Gi"}
        assert bound.status.access_modes == ["ReadWriteOnce"]
        found = await has_phase(h, f"{unique}-v", "Bound")
        assert (found.spec.claim_ref.name, found.spec.claim_ref.uid) == ("data", bound.metadata.uid)
        assert found.metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}

        await h.client.delete(PersistentVolumeClaim, "data", h.namespace)
        released = await has_phase(h, f"{unique}-v", "Released")
        assert released.spec.claim_ref.uid == bound.metadata.uid
        await h.client.delete(PersistentVolume, f"{unique}-v")


async def test_a_waiting_claim_is_woken_by_a_volume_that_suits_it(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER) as h:
        await claim_in(h, "large", storageClassName=unique, size="3Gi")
        await claim_in(h, "small", storageClassName=unique)
        await h.client.create(volume(f"{unique}-2", storageClassName=unique, size="2Gi", phase=None))
        await is_bound(h, "small", f"{unique}-2")
        await h.client.create(volume(f"{unique}-3", storageClassName=unique, size="3Gi", phase=None))
        await is_bound(h, "large", f"{unique}-3")


async def test_a_volume_is_never_given_twice(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER) as h:
        h.faults.conflict = h.faults.unavailable = h.faults.lost = 0.1
        numbers = range(12)
        volumes = (volume(f"{unique}-{number}", storageClassName=unique, phase=None) for number in numbers)
        await asyncio.gather(
            *(h.client.create(each) for each in volumes),
            *(claim_in(h, f"c-{number}", storageClassName=unique) for number in numbers),
        )
        h.faults.cut()

        async def all_bound() -> bool:
            return all(each.status and each.status.phase == "Bound" for each in await h.list(PersistentVolumeClaim))

        async with advancing(h):
            await h.until(all_bound, "all claims are bound", within=30)
        h.faults.stop()
        claims = await h.list(PersistentVolumeClaim)
        assert len({each.spec.volume_name for each in claims}) == 12
        for each in claims:
            found = await has_phase(h, each.spec.volume_name, "Bound")
            assert found.spec.claim_ref.uid == each.metadata.uid


class advancing:
    """Lets time run ahead: what waits for its next try need not wait for real."""

    def __init__(self, h: Harness) -> None:
        self.h = h

    async def __aenter__(self) -> None:
        self.task = asyncio.create_task(self._run())

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            self.h.clock.advance(5)


async def test_who_reserves_a_volume_gets_it(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER) as h:
        mine = reference("mine", None, h.namespace)
        await h.client.create(volume(f"{unique}-a", storageClassName=unique, size="9Gi", to=mine, phase=None))
        await has_phase(h, f"{unique}-a", "Available")
        await claim_in(h, "other", storageClassName=unique, size="5Gi")
        await claim_in(h, "mine", storageClassName=unique)
        await is_bound(h, "mine", f"{unique}-a")
        found = await has_phase(h, f"{unique}-a", "Bound")
        assert BOUND_BY_CONTROLLER not in (found.metadata.annotations or {})

        await claim_in(h, "named", storageClassName=unique, volumeName=f"{unique}-b")
        await h.client.create(volume(f"{unique}-b", storageClassName=unique, phase=None))
        bound = await is_bound(h, "named", f"{unique}-b")
        assert bound.metadata.annotations == {BIND_COMPLETED: "yes"}

        await claim_in(h, "late", storageClassName=unique, volumeName=f"{unique}-b")
        await said(h, "FailedBinding", "already bound to a different claim.")
        await claim_in(h, "small", storageClassName=unique, volumeName=f"{unique}-c", size="5Gi")
        await h.client.create(volume(f"{unique}-c", storageClassName=unique, phase=None))
        await said(h, "VolumeMismatch", f'Cannot bind to requested volume "{unique}-c": requested PV is too small')


async def test_a_claim_whose_volume_is_gone_is_lost(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER) as h:
        await h.client.create(volume(f"{unique}-v", storageClassName=unique, phase=None))
        await claim_in(h, storageClassName=unique)
        await is_bound(h)
        await h.client.patch(PersistentVolume, f"{unique}-v", {"metadata": {"finalizers": None}})
        await h.client.delete(PersistentVolume, f"{unique}-v")
        await said(h, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")

        async def lost() -> bool:
            found = await h.client.get(PersistentVolumeClaim, "data", h.namespace)
            return found.status is not None and found.status.phase == "Lost" and not found.status.capacity

        await h.until(lost, "the claim is lost")
        await h.client.create(volume(f"{unique}-v", storageClassName=unique, phase=None))
        await is_bound(h)  # the volume is back: the claim takes it again


async def test_an_external_provisioner_is_asked_and_what_it_makes_is_bound(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER) as h:
        await h.client.create(storage_class(unique))
        made = await claim_in(h, storageClassName=unique)
        await said(h, "ExternalProvisioning", "external provisioner 'disks.example.com'")
        asked = await h.client.get(PersistentVolumeClaim, "data", h.namespace)
        for key in ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"):
            assert asked.metadata.annotations[key] == "disks.example.com"

        await h.client.create(
            volume(
                f"{unique}-v",
                phase=None,
                storageClassName=unique,
                to=reference("data", made.metadata.uid, h.namespace),
                annotations={"pv.kubernetes.io/provisioned-by": "disks.example.com"},
                persistentVolumeReclaimPolicy="Delete",
                csi={"driver": "disks.example.com", "volumeHandle": "1"},
            )
        )
        await is_bound(h, to=f"{unique}-v")
        await h.client.delete(PersistentVolumeClaim, "data", h.namespace)
        await h.client.patch(PersistentVolumeClaim, "data", {"metadata": {"finalizers": None}}, h.namespace)
        await has_phase(h, f"{unique}-v", "Released")  # and now the provisioner deletes it
        await h.settled()
        await has_phase(h, f"{unique}-v", "Released")


async def test_claims_that_wait_for_a_consumer_get_an_event(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER, kubelet=False) as h:
        await h.client.create(storage_class(unique, volumeBindingMode="WaitForFirstConsumer"))
        await h.client.create(volume(f"{unique}-v", storageClassName=unique, phase=None))
        await has_phase(h, f"{unique}-v", "Available")
        await claim_in(h, storageClassName=unique)
        await said(h, "WaitForFirstConsumer")
        pod = {
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            },
        }
        await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/pods", pod)
        await h.until(lambda: h.live(Pod), "the pod is seen")
        h.clock.advance(16)
        await said(h, "WaitForPodScheduled", "waiting for pod p to be scheduled")
        await h.client.patch(
            PersistentVolumeClaim, "data", {"metadata": {"annotations": {SELECTED_NODE: "n"}}}, h.namespace
        )
        await said(h, "ExternalProvisioning")
        # the scheduler may find a volume instead
        own = await h.client.get(PersistentVolume, f"{unique}-v")
        made = await h.client.get(PersistentVolumeClaim, "data", h.namespace)
        changed = copy(own)
        changed.spec.claim_ref = volume(to=reference("data", made.metadata.uid, h.namespace)).spec.claim_ref
        await h.client.update(changed)
        await is_bound(h, to=f"{unique}-v")


async def test_claims_from_before_get_the_default_class(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER) as h:
        await claim_in(h)
        await claim_in(h, "none", storageClassName="")
        await said(h, "FailedBinding", "no persistent volumes available for this claim and no storage class is set")
        await h.client.create(storage_class(unique, annotations=DEFAULT))
        try:

            async def has_class() -> bool:
                found = await h.client.get(PersistentVolumeClaim, "data", h.namespace)
                return found.spec.storage_class_name == unique

            await h.until(has_class, "the claim has the class")
            await said(h, "ExternalProvisioning")
            other = await h.client.get(PersistentVolumeClaim, "none", h.namespace)
            assert other.spec.storage_class_name == ""
            rendered = h.manager.context.metrics.render().decode()
            assert "retroactive_storageclass_total 1" in rendered
            assert f'storage_class="{unique}"' in rendered
        finally:
            await h.client.patch(type(storage_class(unique)), unique, {"metadata": {"annotations": None}})


@pytest.mark.parametrize(
    ("policy", "reason"), [("Recycle", "VolumeFailedRecycle"), ("Delete", "VolumeFailedDelete"), ("Retain", None)]
)
async def test_volumes_that_cannot_be_reclaimed_say_so(
    harness: MakeHarness, unique: str, policy: str, reason: str | None
) -> None:
    async with harness(BINDER, *PROTECTION) as h:
        name = f"{unique}-v"
        await h.client.create(volume(name, storageClassName=unique, persistentVolumeReclaimPolicy=policy, phase=None))
        await claim_in(h, storageClassName=unique)
        await is_bound(h)
        await h.client.delete(PersistentVolumeClaim, "data", h.namespace)
        found = await has_phase(h, name, "Failed" if reason else "Released")
        if reason:
            assert found.status.message

            async def told() -> bool:
                await h.manager.context.events.flush()
                events = await h.client.list(Event, "default", field_selector=f"involvedObject.name={name}")
                return any(each.reason == reason for each in events.items or ())

            await h.until(told, "there is an event")


async def test_a_volume_for_a_claim_that_took_another_is_free_again(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER) as h:
        await h.client.create(volume(f"{unique}-v", storageClassName=unique, phase=None))
        await claim_in(h, storageClassName=unique)
        bound = await is_bound(h)
        to = reference("data", bound.metadata.uid, h.namespace)
        ours = {BOUND_BY_CONTROLLER: "yes"}
        await h.client.create(volume(f"{unique}-w", storageClassName=unique, to=to, annotations=ours, phase=None))
        await h.client.create(volume(f"{unique}-x", storageClassName=unique, to=to, phase=None))
        freed = await has_phase(h, f"{unique}-w", "Available")
        assert freed.spec.claim_ref is None
        reserved = await has_phase(h, f"{unique}-x", "Available")
        assert (reserved.spec.claim_ref.name, reserved.spec.claim_ref.uid) == ("data", None)


async def test_without_dynamic_provisioning_no_provisioner_is_asked(harness: MakeHarness, unique: str) -> None:
    async with harness(BINDER, options=Options(enable_dynamic_provisioning=False)) as h:
        await h.client.create(storage_class(unique))
        await claim_in(h, storageClassName=unique)
        await h.until(lambda: h.live(PersistentVolumeClaim), "the claim is seen")
        await h.settled()
        found = await h.client.get(PersistentVolumeClaim, "data", h.namespace)
        assert not found.metadata.annotations
        with pytest.raises(errors.NotFound):
            await h.client.get(PersistentVolume, f"pvc-{found.metadata.uid}")
