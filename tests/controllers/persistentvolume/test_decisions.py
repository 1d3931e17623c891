"""What is decided about claims and volumes, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from controllers.persistentvolume.makers import DEFAULT, claim, reference, storage_class, volume

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.volumebinding import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from pybernetes.api.storage.v1 import StorageClass
from pybernetes.controllers.persistentvolume.changes import (
    bound_claim,
    bound_volume,
    claim_status,
    migrated_volume,
    provisioned_claim,
    unbound_volume,
)
from pybernetes.controllers.persistentvolume.claims import (
    AssignClass,
    Bind,
    ClaimDecision,
    Provision,
    Report,
    Say,
    best_volume,
    decide_claim,
)
from pybernetes.controllers.persistentvolume.volumes import (
    Mismatched,
    Phase,
    Release,
    Unbind,
    WakeClaim,
    decide_reclaim,
    decide_volume,
)

DONE = {BIND_COMPLETED: "yes"}


def chosen(wanted: PersistentVolumeClaim, *volumes: PersistentVolume, delayed: bool = False) -> str | None:
    found = best_volume(wanted, volumes, delayed=delayed)
    return None if found is None or found.metadata is None else found.metadata.name


def decide(
    wanted: PersistentVolumeClaim,
    *volumes: PersistentVolume,
    classes: list[StorageClass] | None = None,
    pods: tuple[str, ...] = (),
    dynamic: bool = True,
) -> ClaimDecision:
    name = wanted.spec.volume_name if wanted.spec else None
    named = next((each for each in volumes if each.metadata and each.metadata.name == name), None)
    return decide_claim(wanted, named, volumes, classes or [], lambda: list(pods), dynamic)


class TestBestVolume:
    def test_is_the_smallest_that_is_large_enough(self) -> None:
        volumes = [volume("large", size="5Gi"), volume("small", size="900Mi"), volume("fits", size="1.5Gi")]
        assert chosen(claim(size="1Gi"), *volumes) == "fits"

    def test_has_as_few_ways_of_access_as_possible(self) -> None:
        shared = volume("shared", accessModes=["ReadWriteOnce", "ReadWriteMany"])
        assert chosen(claim(), shared, volume("own", size="9Gi")) == "own"
        assert chosen(claim(accessModes=["ReadWriteMany"]), shared, volume("own")) == "shared"
        assert chosen(claim(accessModes=["ReadOnlyMany"]), shared, volume("own")) is None

    @pytest.mark.parametrize(
        ("wanted", "has", "fits"),
        [
            ({}, {}, True),
            ({"storageClassName": ""}, {}, True),
            ({"storageClassName": "fast"}, {}, False),
            ({}, {"storageClassName": "fast"}, False),
            ({"storageClassName": "fast"}, {"storageClassName": "fast"}, True),
            (
                {"storageClassName": "x", "annotations": {"volume.beta.kubernetes.io/storage-class": "fast"}},
                {"storageClassName": "fast"},
                True,
            ),
            ({"volumeMode": "Block"}, {}, False),
            ({"volumeMode": "Block"}, {"volumeMode": "Block"}, True),
            ({"volumeMode": "Filesystem"}, {}, True),
            ({"volumeAttributesClassName": "gold"}, {}, False),
            ({"volumeAttributesClassName": "gold"}, {"volumeAttributesClassName": "gold"}, True),
            ({}, {"volumeAttributesClassName": "gold"}, False),
            ({"selector": {"matchLabels": {"a": "b"}}}, {}, False),
            ({"selector": {"matchLabels": {"a": "b"}}}, {"labels": {"a": "b"}}, True),
            ({"selector": {}}, {}, True),
            ({}, {"phase": "Released"}, False),
            ({}, {"phase": "Pending"}, False),
            ({}, {"to": reference("another")}, False),
            ({}, {"to": reference(uid="of one before")}, False),
            ({}, {"deleted": "2026-01-01T00:00:00Z"}, False),
            # reserved: class, labels and phase do not count, size, mode and access do
            ({}, {"to": reference(uid=None), "storageClassName": "fast", "phase": None}, True),
            ({"selector": {"matchLabels": {"a": "b"}}}, {"to": reference(), "phase": "Bound"}, True),
            ({}, {"to": reference(), "size": "1Mi"}, False),
            ({"accessModes": ["ReadWriteMany"]}, {"to": reference()}, False),
            ({"volumeMode": "Block"}, {"to": reference()}, False),
        ],
    )
    def test_suits_the_claim(self, wanted: dict[str, Any], has: dict[str, Any], fits: bool) -> None:
        assert (chosen(claim(**wanted), volume(**has)) == "v") == fits

    def test_is_the_one_that_is_reserved(self) -> None:
        assert chosen(claim(), volume("small"), volume("mine", size="9Gi", to=reference(uid=None))) == "mine"

    def test_waits_for_the_scheduler_unless_it_is_reserved(self) -> None:
        assert chosen(claim(), volume(), delayed=True) is None
        assert chosen(claim(), volume("free"), volume("mine", to=reference()), delayed=True) == "mine"


class TestNewClaim:
    def test_is_bound_to_what_suits(self) -> None:
        assert decide(claim(), volume()) == Bind(volume())

    def test_without_a_volume_or_class_waits(self) -> None:
        found = decide(claim())
        assert isinstance(found, Report)
        assert found.event
        assert (found.phase, found.event.type, found.event.reason) == ("Pending", "Normal", "FailedBinding")
        assert found.event.message == "no persistent volumes available for this claim and no storage class is set"

    def test_gets_the_newest_default_class_if_it_names_none(self) -> None:
        classes = [
            storage_class("b", annotations=DEFAULT, created="2026-01-02T00:00:00Z"),
            storage_class("c", annotations=DEFAULT, created="2026-01-01T00:00:00Z"),
            storage_class("a", annotations=DEFAULT, created="2026-01-02T00:00:00Z"),
            storage_class("newer", created="2026-02-02T00:00:00Z"),
        ]
        assert decide(claim(), classes=classes) == AssignClass("a")
        assert isinstance(decide(claim(storageClassName=""), classes=classes), Report)
        assert decide(claim(), volume(), classes=classes) == Bind(volume())

    @pytest.mark.parametrize(
        ("pods", "reason", "message"),
        [
            ((), "WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
            (("p",), "WaitForPodScheduled", "waiting for pod p to be scheduled"),
            (("p", "q"), "WaitForPodScheduled", "waiting for pods p,q to be scheduled"),
        ],
    )
    def test_waits_for_its_first_consumer(self, pods: tuple[str, ...], reason: str, message: str) -> None:
        late = [storage_class("late", volumeBindingMode="WaitForFirstConsumer")]
        found = decide(claim(storageClassName="late"), volume(storageClassName="late"), classes=late, pods=pods)
        assert isinstance(found, Report)
        assert found.event
        assert (found.phase, found.event.reason, found.event.message) == ("Pending", reason, message)

    def test_is_provisioned_when_a_node_is_chosen(self) -> None:
        late = [storage_class("late", volumeBindingMode="WaitForFirstConsumer")]
        found = decide(claim(storageClassName="late", annotations={SELECTED_NODE: "n"}), classes=late)
        assert isinstance(found, Provision)
        assert found.provisioner == "disks.example.com"

    @pytest.mark.parametrize(
        ("provisioner", "said"),
        [
            ("kubernetes.io/no-provisioner", "no volume plugin matched name: kubernetes.io/no-provisioner"),
            ("kubernetes.io/nfs", "no provisionable volume plugin matched"),
            (None, 'storageclass.storage.k8s.io "c" not found'),
        ],
    )
    def test_says_who_cannot_provision(self, provisioner: str | None, said: str) -> None:
        found = decide(claim(storageClassName="c"), classes=[storage_class("c", provisioner)] if provisioner else [])
        assert isinstance(found, Say)
        assert found.event
        assert (found.event.type, found.event.reason, found.event.message) == ("Warning", "ProvisioningFailed", said)

    def test_is_not_made_in_a_folder_of_the_host(self) -> None:
        found = decide(claim(storageClassName="c"), classes=[storage_class("c", "kubernetes.io/host-path")])
        assert isinstance(found, Provision)
        assert found.event.reason == "ProvisioningFailed"
        assert found.event.message.endswith('provisioning in volume plugin "kubernetes.io/host-path" is disabled')

    def test_of_an_old_plugin_is_provisioned_by_the_driver_in_its_place(self) -> None:
        found = decide(claim(storageClassName="c"), classes=[storage_class("c", "kubernetes.io/gce-pd")])
        assert isinstance(found, Provision)
        assert found.provisioner == "pd.csi.storage.gke.io"
        assert "external provisioner 'pd.csi.storage.gke.io'" in found.event.message

    def test_is_not_provisioned_if_that_is_switched_off(self) -> None:
        classes = [storage_class("c")]
        assert decide(claim(storageClassName="c"), classes=classes, dynamic=False) == Say(None)

    @pytest.mark.parametrize(
        ("wanted", "has", "why"),
        [
            ({"size": "2Gi"}, {}, "requested PV is too small"),
            ({"storageClassName": "x"}, {}, "storageClassName does not match"),
            ({"volumeAttributesClassName": "x"}, {}, "volumeAttributesClassName does not match"),
            ({"volumeMode": "Block"}, {}, "incompatible volumeMode"),
            ({"accessModes": ["ReadWriteOncePod"]}, {}, "incompatible accessMode"),
            ({}, {"deleted": "2026-01-01T00:00:00Z"}, 'the volume is marked for deletion "v"'),
        ],
    )
    def test_an_event_says_why_the_named_volume_does_not_fit(
        self, wanted: dict[str, Any], has: dict[str, Any], why: str
    ) -> None:
        found = decide(claim(volumeName="v", **wanted), volume(**has))
        assert isinstance(found, Report)
        assert found.event
        assert (found.event.type, found.event.reason) == ("Warning", "VolumeMismatch")
        assert found.event.message == f'Cannot bind to requested volume "v": {why}'

    def test_gets_the_volume_it_names(self) -> None:
        assert decide(claim(volumeName="v"), volume(phase=None), volume("small", size="1Gi")) == Bind(
            volume(phase=None)
        )
        mine = volume(to=reference(uid=None), storageClassName="other")
        assert decide(claim(volumeName="v"), mine) == Bind(mine)
        assert decide(claim(volumeName="v")) == Report("Pending")

    def test_waits_if_the_volume_it_names_is_taken(self) -> None:
        found = decide(claim(volumeName="v"), volume(to=reference("another", "other")))
        assert isinstance(found, Report)
        assert found.event
        assert found.event.message == 'volume "v" already bound to a different claim.'


class TestBoundClaim:
    @pytest.mark.parametrize(
        ("name", "volumes", "reason"),
        [
            (None, [], "ClaimLost"),
            ("v", [], "ClaimLost"),
            ("v", [volume(to=reference("another", "other"))], "ClaimMisbound"),
        ],
    )
    def test_is_lost(self, name: str | None, volumes: list[PersistentVolume], reason: str) -> None:
        found = decide(claim(volumeName=name, annotations=DONE), *volumes)
        assert isinstance(found, Report)
        assert found.event
        assert (found.phase, found.event.reason) == ("Lost", reason)

    def test_keeps_its_volume(self) -> None:
        for bound in (volume(), volume(to=reference(), storageClassName="other", size="1")):
            assert decide(claim(volumeName="v", annotations=DONE), bound) == Bind(bound)


class TestVolume:
    @pytest.mark.parametrize(
        ("has", "wanted", "decision"),
        [
            ({}, None, Phase("Available")),
            ({"to": reference(uid=None)}, None, Phase("Available")),
            ({"to": reference()}, None, Release()),
            ({"to": reference()}, {}, WakeClaim()),
            ({"to": reference()}, {"volumeName": "v"}, Phase("Bound")),
            ({"to": reference()}, {"volumeName": "another"}, Unbind()),
            (
                {
                    "to": reference(),
                    "annotations": {"pv.kubernetes.io/provisioned-by": "d"},
                    "persistentVolumeReclaimPolicy": "Delete",
                },
                {"volumeName": "another"},
                Release(),
            ),
        ],
    )
    def test_decisions(self, has: dict[str, Any], wanted: dict[str, Any] | None, decision: object) -> None:
        assert decide_volume(volume(**has), None if wanted is None else claim(**wanted)) == decision

    def test_of_the_wrong_mode_tells_both(self) -> None:
        found = decide_volume(volume(to=reference()), claim(volumeMode="Block"))
        assert isinstance(found, Mismatched)
        text = "Cannot bind PersistentVolume{} to requested PersistentVolumeClaim{} due to incompatible volumeMode."
        assert found.volume.message == text.format("", ' "data"')
        assert found.claim.message == text.format(' "v"', "")

    @pytest.mark.parametrize(
        ("policy", "has", "problem"),
        [
            ("Retain", {}, None),
            ("Recycle", {}, "No recycler plugin found for the volume!"),
            ("Delete", {"csi": {"driver": "d", "volumeHandle": "h"}}, None),
            ("Delete", {"annotations": {"pv.kubernetes.io/provisioned-by": "d"}}, None),
            ("Delete", {"annotations": {"pv.kubernetes.io/migrated-to": "d"}}, None),
            (
                "Delete",
                {"annotations": {"pv.kubernetes.io/provisioned-by": "kubernetes.io/rbd"}},
                "no volume plugin matched name: kubernetes.io/rbd",
            ),
            (
                "Delete",
                {"hostPath": {"path": "/x"}},
                "host_path deleter only supports /tmp/.+ but received provided /x",
            ),
            (
                "Delete",
                {"hostPath": {"path": "/tmp/x"}},
                'error getting deleter volume plugin for volume "v": no deletable volume plugin matched',
            ),
            (
                "Delete",
                {"local": {"path": "/x"}},
                'error getting deleter volume plugin for volume "v": no volume plugin matched',
            ),
        ],
    )
    def test_reclaiming(self, policy: str, has: dict[str, Any], problem: str | None) -> None:
        found = decide_reclaim(volume(persistentVolumeReclaimPolicy=policy, **has))
        assert (found and found.message) == problem


class TestChanges:
    def test_a_volume_bound_by_us_says_so_and_can_be_freed(self) -> None:
        bound = bound_volume(volume(), claim())
        assert bound
        assert bound.metadata
        assert bound.spec
        assert bound.spec.claim_ref
        assert (bound.spec.claim_ref.name, bound.spec.claim_ref.uid) == ("data", "u-data")
        assert bound.metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}
        assert bound_volume(bound, claim()) is None
        assert unbound_volume(bound) == volume()

    def test_a_volume_reserved_by_the_user_stays_reserved(self) -> None:
        bound = bound_volume(volume(to=reference(uid=None)), claim())
        assert bound
        assert bound.metadata
        assert bound.metadata.annotations is None
        freed = unbound_volume(bound)
        assert freed.spec
        assert freed.spec.claim_ref
        assert (freed.spec.claim_ref.name, freed.spec.claim_ref.uid) == ("data", None)

    def test_a_claim_bound_by_us_says_so(self) -> None:
        ours = bound_claim(claim(), volume())
        assert ours
        assert ours.metadata
        assert ours.metadata.annotations == {BOUND_BY_CONTROLLER: "yes", BIND_COMPLETED: "yes"}
        assert bound_claim(ours, volume()) is None
        theirs = bound_claim(claim(volumeName="v"), volume())
        assert theirs
        assert theirs.metadata
        assert theirs.metadata.annotations == DONE

    def test_the_status_takes_capacity_only_when_the_claim_becomes_bound(self) -> None:
        large = volume(size="5Gi", volumeAttributesClassName="gold")
        status = claim_status(claim(status={"phase": "Pending"}), "Bound", large)
        assert status
        assert status.capacity == {"storage": "5Gi"}
        assert status.current_volume_attributes_class_name == "gold"
        here = {"phase": "Bound", "capacity": {"storage": "4Gi"}, "accessModes": ["ReadWriteOnce"]}
        assert claim_status(claim(status=here), "Bound", large) is None
        resized = volume(annotations={"volume.alpha.kubernetes.io/pre-resize-capacity": "3Gi"}, size="5Gi")
        status = claim_status(claim(), "Bound", resized)
        assert status
        assert status.capacity == {"storage": "3Gi"}
        lost = claim_status(claim(status=here), "Lost", None)
        assert lost
        assert (lost.phase, lost.capacity, lost.access_modes) == ("Lost", None, None)

    def test_both_annotations_name_the_provisioner(self) -> None:
        changed = provisioned_claim(claim(annotations={"a": "b"}), "d")
        assert changed
        assert changed.metadata
        assert changed.metadata.annotations == {
            "a": "b",
            "volume.beta.kubernetes.io/storage-provisioner": "d",
            "volume.kubernetes.io/storage-provisioner": "d",
        }
        assert provisioned_claim(changed, "d") is None

    @pytest.mark.parametrize(
        ("by", "policy", "before", "after"),
        [
            ("kubernetes.io/rbd", "Delete", ["x"], ["x", "kubernetes.io/pv-controller"]),
            ("kubernetes.io/rbd", "Retain", ["kubernetes.io/pv-controller"], None),
            ("kubernetes.io/gce-pd", "Delete", ["x", "kubernetes.io/pv-controller"], ["x"]),
        ],
    )
    def test_volumes_of_plugins_are_kept_by_a_finalizer(
        self, by: str, policy: str, before: list[str], after: list[str] | None
    ) -> None:
        has = volume(
            annotations={"pv.kubernetes.io/provisioned-by": by},
            persistentVolumeReclaimPolicy=policy,
            finalizers=before,
        )
        changed = migrated_volume(has)
        assert changed
        assert changed.metadata
        assert changed.metadata.finalizers == after
        assert migrated_volume(changed) is None
        migrated = (changed.metadata.annotations or {}).get("pv.kubernetes.io/migrated-to")
        assert migrated == ("pd.csi.storage.gke.io" if by == "kubernetes.io/gce-pd" else None)

    def test_volumes_of_external_provisioners_are_left_alone(self) -> None:
        assert migrated_volume(volume(annotations={"pv.kubernetes.io/provisioned-by": "d"}, finalizers=["x"])) is None
        assert migrated_volume(volume()) is None
