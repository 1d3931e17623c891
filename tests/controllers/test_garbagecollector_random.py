"""Whatever happens to owners and dependents, in whatever order: what is left is what has an owner, or never had one."""

from __future__ import annotations

import asyncio
import random

from controllers.conftest import Harness, MakeHarness

from pybernetes.api import errors
from pybernetes.api.core.v1 import ConfigMap
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference

NAME = "garbage-collector-controller"


async def test_random_forests_lose_exactly_what_has_no_owner_left(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        for seed in range(3):
            await _forest(h, random.Random(seed), f"s{seed}")


async def _forest(h: Harness, chance: random.Random, prefix: str) -> None:
    owners: dict[str, list[str]] = {}
    uids: dict[str, str] = {}
    for number in range(30):
        name = f"{prefix}-{number:02}"
        chosen = chance.sample(sorted(owners), min(len(owners), chance.choice((0, 1, 1, 2))))
        references = [
            OwnerReference(
                api_version="v1",
                kind="ConfigMap",
                name=each,
                uid=uids[each],
                block_owner_deletion=chance.random() < 0.5,
            )
            for each in chosen
        ]
        metadata = ObjectMeta(name=name, namespace=h.namespace, owner_references=references or None)
        created = await h.client.create(ConfigMap(metadata=metadata))
        owners[name] = chosen
        uids[name] = (created.metadata.uid if created.metadata else None) or ""
    doomed = chance.sample(sorted(owners), 8)
    policies = chance.choices(("Foreground", "Background"), k=len(doomed))
    await asyncio.gather(*(_delete(h, name, policy) for name, policy in zip(doomed, policies, strict=True)))
    gone = set(doomed)
    for name, chosen in owners.items():  # owners come before their dependents
        if chosen and all(each in gone for each in chosen):
            gone.add(name)

    async def left() -> bool:
        found = [each for each in await h.list(ConfigMap) if each.metadata and (each.metadata.name or "") in owners]
        return {each.metadata.name for each in found if each.metadata} == owners.keys() - gone

    await h.until(left, f"{prefix}: {sorted(owners.keys() - gone)} are left", within=30)


async def _delete(h: Harness, name: str, policy: str) -> None:
    try:
        await h.client.delete(ConfigMap, name, h.namespace, propagation_policy=policy)  # type: ignore[arg-type]
    except errors.NotFound:
        return
