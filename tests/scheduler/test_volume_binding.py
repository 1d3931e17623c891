"""VolumeBinding: which volumes a pod gets, who may have them meanwhile, and how the choice comes true."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scheduler.reference.harness import FakeHandle
from scheduler.reference.volumes import BOUND, SELECTED

from pybernetes.api.core.v1 import (
    Node,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    Pod,
    PodSpec,
    Volume,
)
from pybernetes.api.core.v1.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from pybernetes.api.core.v1.persistentvolume import VolumeNodeAffinity
from pybernetes.api.core.v1.persistentvolumeclaim import VolumeResourceRequirements
from pybernetes.api.core.v1.volumesource import PersistentVolumeClaimVolumeSource
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.storage.v1 import StorageClass
from pybernetes.client.keys import copy
from pybernetes.scheduler.config.v1.args import VolumeBindingArgs
from pybernetes.scheduler.framework import CycleState, PodInfo
from pybernetes.scheduler.plugins.volume_binding import VolumeBinding
from pybernetes.scheduler.plugins.volume_binding.binder import BindingFailed

HOSTNAME = "kubernetes.io/hostname"


class Client:
    """An API server that takes every update."""

    def __init__(self) -> None:
        self.updated: list[Any] = []

    async def update(self, obj: Any) -> Any:
        answer = copy(obj)
        answer.metadata.resource_version = str(int(obj.metadata.resource_version) + 1)
        self.updated.append(answer)
        return answer


class Setting:
    def __init__(self, *, timeout: int = 60) -> None:
        self.handle = FakeHandle()
        self.handle.client = self.client = Client()
        for name in ("one", "two"):
            node = Node(metadata=ObjectMeta(name=name, labels={HOSTNAME: name}))
            self.handle.snapshot.set_node(node)
            self.handle.tell(node)
        for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "example.com/disks")):
            mode = "WaitForFirstConsumer"
            self.tell(StorageClass(metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode=mode))
        self.plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=timeout), self.handle)

    def tell(self, obj: Any, type: str = "ADDED") -> None:
        self.handle.tell(obj, type)

    def volume(self, name: str, size: str, node: str = "", **spec: Any) -> PersistentVolume:
        affinity = None
        if node:
            here = NodeSelectorRequirement(key=HOSTNAME, operator="In", values=[node])
            terms = [NodeSelectorTerm(match_expressions=[here])]
            affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
        found = PersistentVolume(
            metadata=ObjectMeta(name=name, resource_version="1"),
            spec=PersistentVolumeSpec(
                capacity={"storage": size},
                storage_class_name="local",
                access_modes=["ReadWriteOnce"],
                node_affinity=affinity,
                **spec,
            ),
            status=PersistentVolumeStatus(phase="Available"),
        )
        self.tell(found)
        return found

    def claim(self, name: str, size: str = "1Gi", storage_class: str = "local") -> PersistentVolumeClaim:
        found = PersistentVolumeClaim(
            metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", resource_version="1"),
            spec=PersistentVolumeClaimSpec(
                storage_class_name=storage_class,
                access_modes=["ReadWriteOnce"],
                resources=VolumeResourceRequirements(requests={"storage": size}),
            ),
        )
        self.tell(found)
        return found

    def pod(self, name: str, *claims: str) -> PodInfo:
        pod = Pod(
            metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
            spec=PodSpec(
                volumes=[
                    Volume(name=each, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=each))
                    for each in claims
                ]
            ),
        )
        self.tell(pod)
        return PodInfo(pod)

    def feasible(self, pod: PodInfo) -> tuple[CycleState, list[str]]:
        state = CycleState()
        assert self.plugin.pre_filter(state, pod) is None
        mask = self.plugin.filter(state, pod, self.handle.snapshot.all_rows)
        return state, [self.handle.snapshot.names[row] for row in range(2) if mask[row]]

    def reserve(self, pod: PodInfo, node: str) -> CycleState:
        state, nodes = self.feasible(pod)
        assert node in nodes
        assert self.plugin.reserve(state, pod, node) is None
        return state

    def chosen(self, state: CycleState) -> list[str]:
        return [volume.metadata.name for volume in state["VolumeBinding"].volumes]


def test_the_smallest_volume_of_the_node_that_suits_is_chosen() -> None:
    setting = Setting()
    setting.claim("data", "2Gi")
    for name, size, node in (
        ("small", "1Gi", "one"),
        ("right", "3Gi", "one"),
        ("big", "9Gi", "one"),
        ("far", "2Gi", "two"),
    ):
        setting.volume(name, size, node)
    setting.volume("anywhere", "5Gi")
    assert setting.chosen(setting.reserve(setting.pod("web", "data"), "one")) == ["right"]


def test_a_smaller_volume_for_any_node_is_chosen_before_a_larger_one_of_the_node() -> None:
    setting = Setting()
    setting.claim("data")
    setting.volume("here", "5Gi", "one")
    setting.volume("anywhere", "2Gi")
    assert setting.chosen(setting.reserve(setting.pod("web", "data"), "one")) == ["anywhere"]


def test_a_volume_that_was_reserved_for_the_claim_is_chosen_and_no_other() -> None:
    setting = Setting()
    setting.claim("data")
    setting.volume("small", "1Gi", "one")
    setting.volume("mine", "9Gi", "two", claim_ref=ObjectReference(namespace="default", name="data"))
    pod = setting.pod("web", "data")
    assert setting.feasible(pod)[1] == ["two"]
    assert setting.chosen(setting.reserve(pod, "two")) == ["mine"]


def test_two_claims_of_a_pod_get_two_volumes_the_smaller_claim_first() -> None:
    setting = Setting()
    setting.claim("large", "3Gi")
    setting.claim("small", "1Gi")
    setting.volume("a", "2Gi", "one")
    setting.volume("b", "4Gi", "one")
    setting.volume("c", "4Gi", "two")
    pod = setting.pod("web", "large", "small")
    state, nodes = setting.feasible(pod)
    assert nodes == ["one"]
    setting.plugin.reserve(state, pod, "one")
    bound = {each.metadata.name: each.spec.claim_ref.name for each in state["VolumeBinding"].volumes}
    assert bound == {"a": "small", "b": "large"}


def test_a_volume_that_is_promised_is_not_given_to_another_pod_until_it_is_given_back() -> None:
    setting = Setting()
    setting.claim("data")
    setting.claim("other")
    setting.volume("only", "1Gi", "one")
    first, second = setting.pod("first", "data"), setting.pod("second", "other")
    state = setting.reserve(first, "one")
    assert setting.feasible(second)[1] == []
    setting.plugin.unreserve(state, first, "one")
    setting.plugin.unreserve(state, first, "one")
    assert setting.feasible(second)[1] == ["one"]


def test_a_claim_that_is_being_provisioned_for_a_node_keeps_other_pods_there() -> None:
    setting = Setting()
    setting.claim("shared", storage_class="made")
    first, second = setting.pod("first", "shared"), setting.pod("second", "shared")
    assert setting.feasible(first)[1] == ["one", "two"]
    setting.reserve(first, "two")
    assert setting.feasible(second)[1] == ["two"]


async def test_a_volume_is_bound_by_the_api_and_the_pod_waits_for_its_claim() -> None:
    setting = Setting()
    claim = setting.claim("data")
    setting.volume("only", "1Gi", "one")
    pod = setting.pod("web", "data")
    state = setting.reserve(pod, "one")
    assert setting.plugin.pre_bind_pre_flight(state, pod, "one") is None
    waiting = asyncio.create_task(setting.plugin.pre_bind(state, pod, "one"))
    await asyncio.sleep(0)
    (sent,) = setting.client.updated
    assert sent.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    reference = sent.spec.claim_ref
    assert (reference.kind, reference.namespace, reference.name, reference.uid) == (
        "PersistentVolumeClaim",
        "default",
        "data",
        "uid-data",
    )
    bound = copy(claim)
    bound.spec.volume_name = "only"
    bound.metadata.annotations = {BOUND: "yes"}
    bound.metadata.resource_version = "5"
    setting.tell(bound, "MODIFIED")
    await asyncio.sleep(0)
    assert not waiting.done()  # our own update of the volume has not come back yet
    setting.tell(sent, "MODIFIED")
    assert await waiting is None


async def test_provisioning_is_asked_for_by_the_node_and_fails_when_the_provisioner_takes_it_back() -> None:
    setting = Setting()
    setting.claim("data", storage_class="made")
    pod = setting.pod("web", "data")
    state = setting.reserve(pod, "two")
    waiting = asyncio.create_task(setting.plugin.pre_bind(state, pod, "two"))
    await asyncio.sleep(0)
    (sent,) = setting.client.updated
    assert sent.metadata.annotations == {SELECTED: "two"}
    refused = copy(sent)
    refused.metadata.annotations = None
    refused.metadata.resource_version = "9"
    setting.tell(refused, "MODIFIED")
    with pytest.raises(BindingFailed, match='provisioning failed for PVC "data"'):
        await waiting


async def test_waiting_for_volumes_has_an_end() -> None:
    setting = Setting(timeout=60)
    setting.claim("data", storage_class="made")
    pod = setting.pod("web", "data")
    state = setting.reserve(pod, "two")
    waiting = asyncio.create_task(setting.plugin.pre_bind(state, pod, "two"))
    await asyncio.sleep(0)
    setting.handle.clock.advance(59)
    await asyncio.sleep(0)
    assert not waiting.done()
    setting.handle.clock.advance(2)
    with pytest.raises(BindingFailed, match="deadline exceeded"):
        await waiting


async def test_binding_does_not_wait_for_volumes_of_a_deleted_pod() -> None:
    setting = Setting()
    setting.claim("data", storage_class="made")
    pod = setting.pod("web", "data")
    state = setting.reserve(pod, "two")
    waiting = asyncio.create_task(setting.plugin.pre_bind(state, pod, "two"))
    await asyncio.sleep(0)
    setting.tell(pod.pod, "DELETED")
    with pytest.raises(BindingFailed, match="pod does not exist any more"):
        await waiting


def test_a_pod_with_bound_claims_only_has_nothing_to_wait_for() -> None:
    setting = Setting()
    claim = setting.claim("data")
    setting.volume("only", "1Gi", "one", claim_ref=ObjectReference(namespace="default", name="data", uid="uid-data"))
    bound = copy(claim)
    bound.spec.volume_name = "only"
    bound.metadata.annotations = {BOUND: "yes"}
    bound.metadata.resource_version = "2"
    setting.tell(bound, "MODIFIED")
    pod = setting.pod("web", "data")
    state = setting.reserve(pod, "one")
    status = setting.plugin.pre_bind_pre_flight(state, pod, "one")
    assert status is not None
    assert status.is_skip
