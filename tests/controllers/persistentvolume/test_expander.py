"""Who makes volumes larger is said, and named where a driver stands in for a plugin."""

from __future__ import annotations

from typing import Any

import pytest
from controllers.conftest import MakeHarness
from controllers.persistentvolume.makers import claim, reference, storage_class, volume

from pybernetes.api.core.v1 import PersistentVolumeClaim
from pybernetes.controllers.persistentvolume.expander import Expansion, decide

EXTERNAL = "waiting for an external controller to expand this PVC"


@pytest.mark.parametrize(
    ("size", "has", "volume_more", "expected"),
    [
        ("1Gi", "1Gi", {}, None),
        ("1Gi", "2Gi", {}, None),
        ("2Gi", "1Gi", {}, Expansion(EXTERNAL)),
        ("1Gi", "1Gi", {"annotations": {"volume.alpha.kubernetes.io/pre-resize-capacity": "1Gi"}}, Expansion(EXTERNAL)),
        (
            "2Gi",
            "1Gi",
            {"gcePersistentDisk": {"pdName": "d"}},
            Expansion(
                "CSI migration enabled for kubernetes.io/gce-pd; waiting for external resizer to expand the pvc",
                "pd.csi.storage.gke.io",
            ),
        ),
    ],
)
def test_decisions(size: str, has: str, volume_more: dict[str, Any], expected: Expansion | None) -> None:
    wants = claim(size=size, status={"phase": "Bound", "capacity": {"storage": has}})
    assert decide(wants, volume(to=reference(), **volume_more)) == expected


@pytest.mark.parametrize("source", [{"hostPath": {"path": "/d"}}, {"gcePersistentDisk": {"pdName": "d"}}])
async def test_an_event_names_the_resizer_of_a_claim_that_asks_for_more(
    harness: MakeHarness, source: dict[str, Any]
) -> None:
    async with harness("persistentvolume-expander-controller", "persistentvolume-binder-controller") as h:
        name = h.namespace
        await h.client.create(storage_class(name, allowVolumeExpansion=True))
        large = volume(name, storageClassName=name, phase=None, **source)
        large.spec.nfs = None  # type: ignore[union-attr]
        await h.client.create(large)
        await h.client.create(claim(namespace=name, uid=None, storageClassName=name))

        async def bound() -> bool:
            found = await h.get(PersistentVolumeClaim, "data")
            return found is not None and found.status is not None and found.status.phase == "Bound"

        await h.until(bound, "the claim is bound")
        assert not await h.events("ExternalExpanding")
        more = {"spec": {"resources": {"requests": {"storage": "5Gi"}}}}
        await h.client.patch(PersistentVolumeClaim, "data", more, name)

        async def told() -> bool:
            return bool(await h.events("ExternalExpanding"))

        await h.until(told, "the event is there")
        if "gcePersistentDisk" in source:

            async def named() -> bool:
                found = await h.client.get(PersistentVolumeClaim, "data", name)
                annotations = (found.metadata.annotations if found.metadata else None) or {}
                return annotations.get("volume.kubernetes.io/storage-resizer") == "pd.csi.storage.gke.io"

            await h.until(named, "the resizer is named")
