"""DynamicResources: which devices claims get, on which nodes, and how that is written down."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from scheduler.reference.harness import FakeHandle

from pybernetes.api.core.v1 import (
    Container,
    Node,
    NodeStatus,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
)
from pybernetes.api.core.v1.compute import ResourceRequirements
from pybernetes.api.meta.v1 import Condition, ObjectMeta
from pybernetes.api.resource.v1 import (
    AllocatedDeviceStatus,
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    CELDeviceSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from pybernetes.client.keys import copy
from pybernetes.scheduler.config.v1.args import DynamicResourcesArgs
from pybernetes.scheduler.framework import CycleState, PodInfo
from pybernetes.scheduler.framework.status import Code
from pybernetes.scheduler.plugins.dynamic_resources import DynamicResources
from pybernetes.scheduler.plugins.dynamic_resources.conditions import DeviceBindingFailed

DRIVER = "gpu.example.com"


class Client:
    """An API server that takes everything."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    async def create(self, obj: Any) -> Any:
        made = copy(obj)
        made.metadata.name, made.metadata.uid = f"{obj.metadata.generate_name}x", "uid-made"
        self.calls.append(("create", made))
        return made

    async def update(self, obj: Any) -> Any:
        self.calls.append(("update", copy(obj)))
        return copy(obj)

    async def update_status(self, obj: Any) -> Any:
        self.calls.append(("update_status", copy(obj)))
        return copy(obj)

    async def patch(self, kind: Any, name: str, patch: Any, namespace: str = "", **options: Any) -> Any:
        self.calls.append(("patch", (kind.__name__, name, patch)))


class Recorder:
    def event(self, *args: Any) -> None:
        pass


class Setting:
    def __init__(self) -> None:
        self.handle = FakeHandle()
        self.handle.client = self.client = Client()
        self.handle.recorder = Recorder()
        for name in ("one", "two"):
            node = Node(
                metadata=ObjectMeta(name=name, labels={"name": name}), status=NodeStatus(allocatable={"pods": "10"})
            )
            self.handle.snapshot.set_node(node)
        self.tell(DeviceClass(metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec()))
        self.plugin = DynamicResources(DynamicResourcesArgs(), self.handle)
        self._slices = 0

    def tell(self, obj: Any, type: str = "ADDED") -> None:
        self.handle.tell(obj, type)

    def slice(self, *devices: Device, node: str = "one", pool: str = "", count: int = 1, **spec: Any) -> ResourceSlice:
        self._slices += 1
        made = ResourceSlice(
            metadata=ObjectMeta(name=f"slice{self._slices}"),
            spec=ResourceSliceSpec(
                driver=DRIVER,
                pool=ResourcePool(name=pool or node or "shared", generation=1, resource_slice_count=count),
                node_name=node or None,
                devices=list(devices) or None,
                **spec,
            ),
        )
        self.tell(made)
        return made

    def claim(self, *requests: DeviceRequest, name: str = "claim", constraints: Any = None) -> ResourceClaim:
        made = ResourceClaim(
            metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
            spec=ResourceClaimSpec(devices=DeviceClaim(requests=list(requests), constraints=constraints)),
        )
        self.tell(made)
        return made

    def pod(self, *claims: str, name: str = "pod") -> PodInfo:
        entries = [PodResourceClaim(name=f"r{index}", resource_claim_name=each) for index, each in enumerate(claims)]
        metadata = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}")
        return PodInfo(Pod(metadata=metadata, spec=PodSpec(containers=[], resource_claims=entries), status=PodStatus()))

    def filter(self, pod: PodInfo) -> tuple[CycleState, list[str]]:
        state = CycleState()
        answer = self.plugin.pre_filter(state, pod)
        assert answer is None, answer
        mask = self.plugin.filter(state, pod, self.handle.snapshot.all_rows)
        return state, [self.handle.snapshot.names[row] for row in range(2) if mask[row]]

    def devices(self, *, node: str = "one", claims: tuple[str, ...] = ("claim",)) -> list[str] | None:
        """The devices a pod with the claims gets on the node; None if it cannot go there."""
        state, nodes = self.filter(self.pod(*claims))
        if node not in nodes:
            return None
        answer = state["DynamicResources"].answers[self.handle.snapshot.row_of[node]]
        return [each.device for one in answer.allocations for each in one.devices.results or ()]


def device(name: str, **fields: Any) -> Device:
    return Device(name=name, **fields)


def want(name: str = "r", count: int = 1, **fields: Any) -> DeviceRequest:
    fields = {"device_class_name": "gpu", "allocation_mode": "ExactCount", **fields}
    return DeviceRequest(name=name, exactly=ExactDeviceRequest(count=count, **fields))


def cel(expression: str) -> list[DeviceSelector]:
    return [DeviceSelector(cel=CELDeviceSelector(expression=expression))]


def attributes(**values: Any) -> dict[str, DeviceAttribute]:
    made = {}
    for name, value in values.items():
        kind = {bool: "bool_", int: "int_", str: "string"}[type(value)]
        made[name] = DeviceAttribute(**{kind: value})
    return made


def test_devices_are_taken_in_order_from_nodes_that_have_them() -> None:
    setting = Setting()
    setting.slice(device("a"), device("b"), device("c"))
    setting.claim(want(count=2))
    assert setting.filter(setting.pod("claim"))[1] == ["one"]
    assert setting.devices() == ["a", "b"]


def test_selectors_of_class_and_request_choose_by_attributes_capacity_and_driver() -> None:
    setting = Setting()
    setting.slice(
        device("small", attributes=attributes(model="x"), capacity={"memory": DeviceCapacity(value="10Gi")}),
        device("other", attributes=attributes(model="y"), capacity={"memory": DeviceCapacity(value="40Gi")}),
        device("right", attributes=attributes(model="x"), capacity={"memory": DeviceCapacity(value="40Gi")}),
    )
    chosen = cel(f"device.attributes['{DRIVER}'].model == 'x' && device.driver == '{DRIVER}'")
    setting.tell(DeviceClass(metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec(selectors=chosen)), "MODIFIED")
    enough = cel(f"device.capacity['{DRIVER}'].memory.compareTo(quantity('20Gi')) >= 0")
    setting.claim(want(selectors=enough))
    assert setting.devices() == ["right"]


def test_a_domain_that_a_device_knows_nothing_of_is_empty_and_a_missing_attribute_an_error() -> None:
    setting = Setting()
    setting.slice(device("a"))
    setting.claim(want(selectors=cel("has(device.attributes['other.example.com'].model)")), name="careful")
    assert setting.devices(claims=("careful",)) is None
    setting.claim(want(selectors=cel("device.attributes['other.example.com'].model == 'x'")), name="careless")
    assert setting.devices(claims=("careless",)) is None
    pod = setting.pod("careless")
    state, _ = setting.filter(pod)
    ((status, _), *_) = setting.plugin.refusals(state, pod, setting.handle.snapshot.row_numbers(slice(0, 1)))
    assert status.message == "claim default/careless: selector #0: CEL runtime error: no such key: model"


def test_all_devices_of_a_kind_or_none() -> None:
    setting = Setting()
    setting.slice(
        device("a", attributes=attributes(odd=True)), device("b"), device("c", attributes=attributes(odd=True))
    )
    odd = cel(f"'odd' in device.attributes['{DRIVER}']")
    setting.claim(want(allocation_mode="All", count=0, selectors=odd))
    assert setting.devices() == ["a", "c"]
    none = cel("false")
    setting.claim(want(allocation_mode="All", count=0, selectors=none), name="nothing")
    assert setting.devices(claims=("nothing",)) is None


def test_a_pool_that_is_being_updated_is_not_used() -> None:
    setting = Setting()
    setting.slice(device("a"), count=2)
    setting.claim(want())
    assert setting.devices() is None
    setting.slice(device("b"), count=2)
    assert setting.devices() == ["a"]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (DeviceConstraint(match_attribute=f"{DRIVER}/socket"), ["b", "c"]),
        (DeviceConstraint(distinct_attribute=f"{DRIVER}/socket"), ["a", "b"]),
        (DeviceConstraint(requests=["r"], match_attribute=f"{DRIVER}/nothing"), None),
        (DeviceConstraint(requests=["other"], match_attribute=f"{DRIVER}/nothing"), ["a", "b"]),
    ],
)
def test_constraints_between_devices_are_searched_for(constraint: DeviceConstraint, expected: list[str] | None) -> None:
    setting = Setting()
    setting.slice(
        *(device(name, attributes=attributes(socket=socket)) for name, socket in (("a", 0), ("b", 1), ("c", 1)))
    )
    setting.claim(want(count=2), constraints=[constraint])
    assert setting.devices() == expected


def test_tainted_devices_are_for_those_who_bear_it() -> None:
    setting = Setting()
    setting.slice(device("a", taints=[DeviceTaint(key="broken", value="fan", effect="NoSchedule")]), device("b"))
    setting.claim(want(), name="plain")
    assert setting.devices(claims=("plain",)) == ["b"]
    setting.claim(want(tolerations=[DeviceToleration(key="broken", operator="Exists")]), name="tolerant")
    assert setting.devices(claims=("tolerant",)) == ["a"]


def test_parts_of_a_device_use_the_same_counters() -> None:
    def part(name: str, memory: str) -> Device:
        use = DeviceCounterConsumption(counter_set="card", counters={"memory": Counter(value=memory)})
        return device(name, consumes_counters=[use])

    setting = Setting()
    counters = CounterSet(name="card", counters={"memory": Counter(value="8Gi")})
    setting.slice(node="one", pool="p", count=2, shared_counters=[counters])
    setting.slice(part("whole", "8Gi"), part("half1", "4Gi"), part("half2", "4Gi"), pool="p", count=2)
    setting.claim(want(), name="one")
    assert setting.devices(claims=("one",)) == ["whole"]
    setting.claim(want(count=2), name="two")
    assert setting.devices(claims=("two",)) == ["half1", "half2"]
    setting.claim(want(count=3), name="three")
    assert setting.devices(claims=("three",)) is None


def test_a_shared_device_is_given_out_until_its_capacity_is_used_up() -> None:
    setting = Setting()
    policy = CapacityRequestPolicy(default="2Gi", valid_range=CapacityRequestPolicyRange(min="1Gi", step="1Gi"))
    capacity = {"memory": DeviceCapacity(value="8Gi", request_policy=policy)}
    setting.slice(device("nic", allow_multiple_allocations=True, capacity=capacity))
    asked = CapacityRequirements(requests={"memory": "2500Mi"})
    for name in ("a", "b", "c"):
        setting.claim(want(capacity=asked), name=name)
    state, nodes = setting.filter(setting.pod("a", "b"))
    assert nodes == ["one"]
    results = [one.devices.results[0] for one in state["DynamicResources"].answers[0].allocations]
    assert [each.consumed_capacity for each in results] == [{"memory": "3Gi"}] * 2
    assert results[0].share_id != results[1].share_id
    assert setting.devices(claims=("a", "b", "c")) is None


def test_alternatives_are_tried_in_order_and_earlier_ones_score_more() -> None:
    setting = Setting()
    setting.slice(device("big", attributes=attributes(size=2)), node="two")
    setting.slice(device("small", attributes=attributes(size=1)), node="one")

    def size(number: int) -> DeviceSubRequest:
        chosen = cel(f"device.attributes['{DRIVER}'].size == {number}")
        mode = "ExactCount"
        return DeviceSubRequest(
            name=f"s{number}", device_class_name="gpu", allocation_mode=mode, count=1, selectors=chosen
        )

    setting.claim(DeviceRequest(name="r", first_available=[size(2), size(1)]))
    pod = setting.pod("claim")
    state, nodes = setting.filter(pod)
    assert nodes == ["one", "two"]
    rows = setting.handle.snapshot.row_numbers(slice(0, 2))
    assert setting.plugin.pre_score(state, pod, rows) is None
    assert setting.plugin.score(state, pod, rows).tolist() == [7, 8]
    (result,) = state["DynamicResources"].answers[0].allocations[0].devices.results
    assert result.request == "r/s1"


def test_devices_that_are_promised_or_allocated_are_not_given_again() -> None:
    setting = Setting()
    setting.slice(device("only"))
    setting.claim(want(), name="first")
    setting.claim(want(), name="second")
    pod = setting.pod("first")
    state, _ = setting.filter(pod)
    assert setting.plugin.reserve(state, pod, "one") is None
    assert setting.devices(claims=("second",)) is None
    again = setting.plugin.pre_filter(CycleState(), setting.pod("first", name="other"))
    assert again is not None
    assert again.message == "resource claim default/first is in the process of being allocated"
    setting.plugin.unreserve(state, pod, "one")
    assert setting.devices(claims=("second",)) == ["only"]


def test_a_claim_with_devices_keeps_its_pod_where_they_are() -> None:
    setting = Setting()
    setting.slice(device("only"), node="two")
    claim = setting.claim(want())
    state, _ = setting.filter(setting.pod("claim"))
    (allocation,) = state["DynamicResources"].answers[1].allocations
    allocated = copy(claim)
    allocated.status = ResourceClaimStatus(allocation=allocation)
    setting.tell(allocated, "MODIFIED")
    state, nodes = setting.filter(setting.pod("claim"))
    assert nodes == ["two"]
    rows = setting.handle.snapshot.row_numbers(slice(0, 2))[:1]
    ((status, _),) = setting.plugin.refusals(state, setting.pod("claim"), rows)
    assert status.reasons == ("resourceclaim not available on the node",)


async def test_what_was_decided_is_written_into_the_claim_before_the_pod_is_bound() -> None:
    setting = Setting()
    setting.slice(device("only"))
    setting.claim(want())
    pod = setting.pod("claim")
    state, _ = setting.filter(pod)
    setting.plugin.reserve(state, pod, "one")
    assert await setting.plugin.pre_bind(state, pod, "one") is None
    (first, finalized), (second, written) = setting.client.calls
    assert (first, second) == ("update", "update_status")
    assert finalized.metadata.finalizers == ["resource.kubernetes.io/delete-protection"]
    assert [each.device for each in written.status.allocation.devices.results] == ["only"]
    assert written.status.allocation.allocation_timestamp
    (term,) = written.status.allocation.node_selector.node_selector_terms
    assert term.match_fields[0].values == ["one"]
    assert [(each.resource, each.name, each.uid) for each in written.status.reserved_for] == [
        ("pods", "pod", "uid-pod")
    ]
    setting.tell(written, "MODIFIED")
    assert setting.plugin._devices.pending == {}
    setting.plugin.unreserve(state, pod, "one")
    await asyncio.sleep(0)
    assert setting.client.calls[-1][1][2]["status"] == {"reservedFor": [{"$patch": "delete", "uid": "uid-pod"}]}


async def test_devices_that_must_be_made_ready_are_waited_for() -> None:
    setting = Setting()
    setting.slice(device("fabric", binding_conditions=["Attached"], binding_failure_conditions=["Broken"]))
    setting.claim(want())
    pod = setting.pod("claim")
    state, _ = setting.filter(pod)
    setting.plugin.reserve(state, pod, "one")
    waiting = asyncio.create_task(setting.plugin.pre_bind(state, pod, "one"))
    for _ in range(5):
        await asyncio.sleep(0)
    written = setting.client.calls[-1][1]
    setting.tell(written, "MODIFIED")
    await asyncio.sleep(0)
    assert not waiting.done()
    failed = copy(written)
    said = Condition(type="Broken", status="True", reason="Cable", message="cut")
    failed.status.devices = [AllocatedDeviceStatus(driver=DRIVER, pool="one", device="fabric", conditions=[said])]
    setting.tell(failed, "MODIFIED")
    with pytest.raises(DeviceBindingFailed, match='claim=claim, reason=Cable, message="cut"'):
        await waiting


async def test_an_extended_resource_of_a_class_becomes_a_claim() -> None:
    setting = Setting()
    spec = DeviceClassSpec(extended_resource_name="example.com/gpu")
    setting.tell(DeviceClass(metadata=ObjectMeta(name="gpu"), spec=spec), "MODIFIED")
    setting.slice(device("a"), device("b"))
    needs = ResourceRequirements(requests={"example.com/gpu": "2"})
    metadata = ObjectMeta(name="pod", namespace="default", uid="uid-pod")
    containers = [Container(name="main", resources=needs)]
    pod = PodInfo(Pod(metadata=metadata, spec=PodSpec(containers=containers), status=PodStatus()))
    state, nodes = setting.filter(pod)
    assert nodes == ["one"]
    setting.plugin.reserve(state, pod, "one")
    await setting.plugin.pre_bind(state, pod, "one")
    kinds = [name for name, _ in setting.client.calls]
    assert kinds == ["create", "update", "update_status", "patch"]
    made = setting.client.calls[0][1]
    assert made.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert made.metadata.owner_references[0].uid == "uid-pod"
    (request,) = made.spec.devices.requests
    assert (request.name, request.exactly.count) == ("container-0-request-0", 2)
    patch = setting.client.calls[3][1][2]
    assert patch["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": "pod-extended-resources-x",
        "requestMappings": [
            {
                "containerName": "main",
                "resourceName": "example.com/gpu",
                "requestName": "container-0-request-0",
            }
        ],
    }


def test_a_pod_waits_outside_of_the_queue_until_its_claims_are_made() -> None:
    setting = Setting()
    entry = PodResourceClaim(name="r", resource_claim_template_name="t")
    metadata = ObjectMeta(name="pod", namespace="default", uid="uid-pod")
    pod = Pod(metadata=metadata, spec=PodSpec(containers=[], resource_claims=[entry]), status=PodStatus())
    status = setting.plugin.pre_enqueue(PodInfo(pod))
    assert status is not None
    assert status.message == 'pod "default/pod": ResourceClaim not created yet'
    pod = copy(pod)
    pod.status.resource_claim_statuses = [PodResourceClaimStatus(name="r", resource_claim_name="claim")]
    setting.claim(want())
    status = setting.plugin.pre_enqueue(PodInfo(pod))
    assert status is not None
    assert status.message == "ResourceClaim default/claim was not created for Pod default/pod (Pod is not owner)"


async def test_unused_devices_are_deallocated_for_a_pod_that_fits_nowhere() -> None:
    setting = Setting()
    setting.slice(device("only"), node="two")
    claim = setting.claim(want())
    result = DeviceRequestAllocationResult(request="r", driver=DRIVER, pool="gone", device="gone")
    allocated = copy(claim)
    state, _ = setting.filter(setting.pod("claim"))
    selector = copy(state["DynamicResources"].answers[1].allocations[0].node_selector)
    selector.node_selector_terms[0].match_fields[0].values = ["gone"]
    devices = DeviceAllocationResult(results=[result])
    allocated.status = ResourceClaimStatus(allocation=AllocationResult(devices=devices, node_selector=selector))
    setting.tell(allocated, "MODIFIED")
    pod = setting.pod("claim")
    state, nodes = setting.filter(pod)
    assert nodes == []
    _, status = await setting.plugin.post_filter(state, pod, None)
    assert status.message == "deallocation of ResourceClaim completed"
    ((name, written),) = setting.client.calls
    assert name == "update_status"
    assert written.status.allocation is None


def hopeless(setting: Setting, *, node: str = "one", devices: int = 30) -> None:
    """A claim that a node's devices do not satisfy, which only trying all of their combinations shows."""
    found = (device(f"{node}{index}", attributes=attributes(number=index % 6)) for index in range(devices))
    setting.slice(*found, node=node)
    setting.claim(want(count=7), constraints=[DeviceConstraint(distinct_attribute=f"{DRIVER}/number")])


async def test_a_search_that_is_too_long_for_a_cycle_goes_on_beside_it_and_the_pod_is_tried_again_at_its_end() -> None:
    setting = Setting()
    hopeless(setting)
    setting.plugin._filter_timeout = 0.3
    tried_again = asyncio.Event()
    setting.handle.activate = lambda pods: tried_again.set()
    setting.handle.clock.monotonic = time.monotonic
    state, nodes = setting.filter(setting.pod("claim"))
    assert nodes == []
    answers = state["DynamicResources"].answers
    assert answers[0].message == "devices are being searched for"
    assert answers[1].message == "cannot allocate all claims" or answers[1] is answers[0]
    state, nodes = setting.filter(setting.pod("claim"))
    assert state["DynamicResources"].answers[0].message == "devices are being searched for", "it is not begun anew"
    async with asyncio.timeout(60):
        await tried_again.wait()
    state, nodes = setting.filter(setting.pod("claim"))
    assert nodes == []
    assert state["DynamicResources"].answers[0].message == "timed out trying to allocate devices"
    assert state["DynamicResources"].answers[0].code == Code.UNSCHEDULABLE, "it waits for something to change"


async def test_what_a_search_beside_the_cycle_found_is_used_while_it_holds() -> None:
    setting = Setting()
    setting.slice(*(device(f"d{index}", attributes=attributes(number=index)) for index in range(8)))
    setting.claim(want(count=7), constraints=[DeviceConstraint(distinct_attribute=f"{DRIVER}/number")])
    tried_again = asyncio.Event()
    setting.handle.activate = lambda pods: tried_again.set()
    monotonic, now = setting.handle.clock.monotonic, iter(range(10_000_000))
    setting.handle.clock.monotonic = lambda: float(next(now))  # every look at the clock takes a second
    _, nodes = setting.filter(setting.pod("claim"))
    assert nodes == []
    async with asyncio.timeout(60):
        await tried_again.wait()
    assert setting.devices() == [f"d{index}" for index in range(7)]
    setting.claim(want(count=2), name="other")
    setting.handle.clock.monotonic = monotonic
    pod = setting.pod("other", name="second")
    state, _ = setting.filter(pod)
    assert setting.plugin.reserve(state, pod, "one") is None  # takes two of them
    assert setting.devices() is None


async def test_a_node_that_is_found_in_time_is_enough() -> None:
    setting = Setting()
    setting.slice(device("a"), node="one")
    hopeless(setting, node="two")
    setting.tell(setting.plugin._claims.named("claim", "default"), "DELETED")
    setting.claim(want(count=1))
    looks = iter([0.0, 0.0, *([1e9] * 1000)])
    setting.handle.clock.monotonic = lambda: next(looks)
    state, nodes = setting.filter(setting.pod("claim"))
    assert nodes == ["one"]
    assert state["DynamicResources"].answers[1].message.startswith("devices were found on another node")
    assert setting.plugin._background.get("uid-pod") is None


def test_a_claim_for_more_devices_than_one_may_have_is_refused_and_not_an_error() -> None:
    setting = Setting()
    setting.slice(*(device(f"d{index}") for index in range(40)))
    setting.claim(*(want(f"r{index}", count=11) for index in range(3)))
    state, nodes = setting.filter(setting.pod("claim"))
    assert nodes == []
    answer = state["DynamicResources"].answers[0]
    assert answer.message == "claim default/claim: number of requested devices 33 exceeds the claim limit of 32"
    assert answer.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
