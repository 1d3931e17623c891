"""Whatever happens on the way, claims and volumes are bound one to one in the end, and no claim waits for ever."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from controllers.conftest import Harness, MakeHarness
from controllers.persistentvolume.makers import claim, volume

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.controllers.persistentvolume.claims import best_volume

CONTROLLERS = (
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
)
SIZES = ("1Gi", "2Gi", "3Gi", "5Gi")
MODES = (["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOnce", "ReadWriteMany"])


async def act(h: Harness, dice: random.Random, number: int) -> None:
    """One thing that a user may do."""
    what = dice.choice(("claim", "claim", "volume", "volume", "named", "delete claim", "delete volume", "free"))
    name = f"{h.namespace}-{number}"
    size, modes = dice.choice(SIZES), dice.choice(MODES)
    claims = await h.list(PersistentVolumeClaim)
    volumes = await of_test(h)
    with contextlib.suppress(errors.APIError):
        if what == "claim":
            wanted = claim(name, namespace=h.namespace, uid=None, size=size, accessModes=modes)
            wanted.spec.storage_class_name = h.namespace  # type: ignore[union-attr]
            await h.client.create(wanted)
        elif what == "volume":
            await h.client.create(volume(name, size=size, accessModes=modes, storageClassName=h.namespace, phase=None))
        elif what == "named" and volumes:
            chosen = dice.choice(volumes).metadata
            assert chosen is not None
            wanted = claim(name, namespace=h.namespace, uid=None, volumeName=chosen.name, storageClassName=h.namespace)
            await h.client.create(wanted)
        elif what == "delete claim" and claims:
            gone = dice.choice(claims).metadata
            assert gone is not None
            await h.client.delete(PersistentVolumeClaim, gone.name or "", h.namespace)
        elif what == "delete volume" and volumes:
            gone = dice.choice(volumes).metadata
            assert gone is not None
            await h.client.delete(PersistentVolume, gone.name or "")
        elif what == "free":
            released = [each for each in volumes if each.status and each.status.phase == "Released" and each.metadata]
            if released:
                metadata = dice.choice(released).metadata
                assert metadata is not None
                await h.client.patch(PersistentVolume, metadata.name or "", {"spec": {"claimRef": None}})


async def of_test(h: Harness) -> list[PersistentVolume]:
    found = await h.client.list(PersistentVolume)
    return [each for each in found.items or () if each.spec and each.spec.storage_class_name == h.namespace]


async def problems(h: Harness) -> list[str]:
    """What is not as it should be in the end."""
    claims = await h.list(PersistentVolumeClaim)
    volumes = {each.metadata.name: each for each in await of_test(h) if each.metadata}
    found = []
    by_uid = {each.metadata.uid: each for each in claims if each.metadata}
    for each in claims:
        assert each.metadata is not None
        assert each.spec is not None
        name, phase = each.metadata.name, each.status.phase if each.status else None
        own = volumes.get(each.spec.volume_name)
        if phase == "Bound":
            reference = own.spec.claim_ref if own is not None and own.spec else None
            if reference is None or reference.uid != each.metadata.uid:
                found.append(f"{name} is bound to {each.spec.volume_name}, which is not its")
        elif phase == "Pending" and not each.spec.volume_name:
            suited = best_volume(each, volumes.values())
            if suited is not None:
                found.append(f"{name} waits although {suited.metadata.name if suited.metadata else ''} suits it")
    for name, each_volume in volumes.items():
        spec, phase = each_volume.spec, each_volume.status.phase if each_volume.status else None
        reference = spec.claim_ref if spec else None
        owner = by_uid.get(reference.uid) if reference is not None else None
        expected = "Available" if reference is None or not reference.uid else "Bound" if owner else "Released"
        if phase != expected:
            found.append(f"{name} is {phase}, not {expected}")
        if owner is not None and owner.spec is not None and owner.spec.volume_name != name:
            found.append(f"{name} is kept for a claim that has {owner.spec.volume_name}")
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_random_users_and_a_bad_server(harness: MakeHarness, seed: int) -> None:
    dice = random.Random(seed)
    async with harness(*CONTROLLERS) as h:
        h.faults.conflict = h.faults.unavailable = h.faults.lost = 0.08
        for number in range(60):
            await act(h, dice, number)
            if dice.random() < 0.05:
                h.faults.cut()
            if dice.random() < 0.03:
                await h.restart()
            if dice.random() < 0.2:
                h.clock.advance(5)
        h.faults.stop()
        wrong: list[str] = []
        for _ in range(100):
            h.clock.advance(20)
            await asyncio.sleep(0.05)
            await h.settled()
            wrong = await problems(h)
            if not wrong:
                break
        assert not wrong, "\n".join(wrong)
