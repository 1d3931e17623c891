"""The kinds of resource/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ..base import Kind, Struct
from ..core.v1.affinity import NodeSelector
from ..meta.v1.objectmeta import Condition, ObjectMeta
from ..types import Always, Default, Enum, Int64, ListType, Patch, Pointer, Quantity, RawExtension, Required, Time


class DeviceClass(Kind):
    """A kind of devices that claims can ask for."""

    spec: Annotated[DeviceClassSpec | None, Required, Always({})] = None


class DeviceClassSpec(Struct):
    selectors: Annotated[list[DeviceSelector] | None, ListType("atomic")] = None
    config: Annotated[list[DeviceClassConfiguration] | None, ListType("atomic")] = None
    extended_resource_name: Annotated[str | None, Pointer] = None


class DeviceSelector(Struct):
    cel: CELDeviceSelector | None = None


class CELDeviceSelector(Struct):
    expression: Annotated[str | None, Required, Always("")] = None


class DeviceClassConfiguration(Struct):
    opaque: OpaqueDeviceConfiguration | None = None


class OpaqueDeviceConfiguration(Struct):
    driver: Annotated[str | None, Required, Always("")] = None
    parameters: Annotated[RawExtension, Required, Always(None)] = None


class ResourceClaim(Kind):
    """A request for devices, and what was allocated for it."""

    spec: Annotated[ResourceClaimSpec | None, Required, Always({})] = None
    status: Annotated[ResourceClaimStatus | None, Always({})] = None


class ResourceClaimSpec(Struct):
    devices: Annotated[DeviceClaim | None, Always({})] = None


class DeviceClaim(Struct):
    requests: Annotated[list[DeviceRequest] | None, Always(None), ListType("atomic")] = None
    constraints: Annotated[list[DeviceConstraint] | None, ListType("atomic")] = None
    config: Annotated[list[DeviceClaimConfiguration] | None, ListType("atomic")] = None


class DeviceRequest(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    exactly: ExactDeviceRequest | None = None
    first_available: Annotated[list[DeviceSubRequest] | None, ListType("atomic")] = None


class ExactDeviceRequest(Struct):
    device_class_name: Annotated[str | None, Required, Always("")] = None
    selectors: Annotated[list[DeviceSelector] | None, ListType("atomic")] = None
    allocation_mode: Annotated[str | None, Enum("All", "ExactCount")] = None
    count: Int64 | None = None
    admin_access: Annotated[bool | None, Pointer] = None
    tolerations: Annotated[list[DeviceToleration] | None, ListType("atomic")] = None
    capacity: CapacityRequirements | None = None


class DeviceToleration(Struct):
    key: str | None = None
    operator: Annotated[str | None, Default("Equal"), Enum("Equal", "Exists")] = None
    value: str | None = None
    effect: Annotated[str | None, Enum("NoExecute", "NoSchedule", "None")] = None
    toleration_seconds: Annotated[Int64 | None, Pointer] = None


class CapacityRequirements(Struct):
    requests: dict[str, Quantity] | None = None


class DeviceSubRequest(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    device_class_name: Annotated[str | None, Required, Always("")] = None
    selectors: Annotated[list[DeviceSelector] | None, ListType("atomic")] = None
    allocation_mode: Annotated[str | None, Enum("All", "ExactCount")] = None
    count: Int64 | None = None
    tolerations: Annotated[list[DeviceToleration] | None, ListType("atomic")] = None
    capacity: CapacityRequirements | None = None


class DeviceConstraint(Struct):
    requests: Annotated[list[str] | None, ListType("atomic")] = None
    match_attribute: Annotated[str | None, Pointer] = None
    distinct_attribute: Annotated[str | None, Pointer] = None


class DeviceClaimConfiguration(Struct):
    requests: Annotated[list[str] | None, ListType("atomic")] = None
    opaque: OpaqueDeviceConfiguration | None = None


class ResourceClaimStatus(Struct):
    allocation: AllocationResult | None = None
    reserved_for: Annotated[
        list[ResourceClaimConsumerReference] | None, ListType("map", keys=("uid",)), Patch("merge", "uid")
    ] = None
    devices: Annotated[
        list[AllocatedDeviceStatus] | None, ListType("map", keys=("driver", "device", "pool", "shareID"))
    ] = None


class AllocationResult(Struct):
    devices: Annotated[DeviceAllocationResult | None, Always({})] = None
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None


class DeviceAllocationResult(Struct):
    results: Annotated[list[DeviceRequestAllocationResult] | None, ListType("atomic")] = None
    config: Annotated[list[DeviceAllocationConfiguration] | None, ListType("atomic")] = None


class DeviceRequestAllocationResult(Struct):
    request: Annotated[str | None, Required, Always("")] = None
    driver: Annotated[str | None, Required, Always("")] = None
    pool: Annotated[str | None, Required, Always("")] = None
    device: Annotated[str | None, Required, Always("")] = None
    admin_access: Annotated[bool | None, Pointer] = None
    tolerations: Annotated[list[DeviceToleration] | None, ListType("atomic")] = None
    binding_conditions: Annotated[list[str] | None, ListType("atomic")] = None
    binding_failure_conditions: Annotated[list[str] | None, ListType("atomic")] = None
    share_id: Annotated[str | None, Pointer] = field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] | None = None


class DeviceAllocationConfiguration(Struct):
    source: Annotated[str | None, Required, Always(""), Enum("FromClaim", "FromClass")] = None
    requests: Annotated[list[str] | None, ListType("atomic")] = None
    opaque: OpaqueDeviceConfiguration | None = None


class ResourceClaimConsumerReference(Struct):
    api_group: str | None = None
    resource: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None
    uid: Annotated[str | None, Required, Always("")] = None


class AllocatedDeviceStatus(Struct):
    driver: Annotated[str | None, Required, Always("")] = None
    pool: Annotated[str | None, Required, Always("")] = None
    device: Annotated[str | None, Required, Always("")] = None
    share_id: Annotated[str | None, Pointer] = field(default=None, name="shareID")
    conditions: Annotated[list[Condition] | None, Always(None), ListType("map", keys=("type",))] = None
    data: RawExtension = None
    network_data: NetworkDeviceData | None = None


class NetworkDeviceData(Struct):
    interface_name: str | None = None
    ips: Annotated[list[str] | None, ListType("atomic")] = None
    hardware_address: str | None = None


class ResourceClaimTemplate(Kind):
    """A ResourceClaim to be made for each pod."""

    spec: Annotated[ResourceClaimTemplateSpec | None, Required, Always({})] = None


class ResourceClaimTemplateSpec(Struct):
    metadata: Annotated[ObjectMeta | None, Always({})] = None
    spec: Annotated[ResourceClaimSpec | None, Required, Always({})] = None


class ResourceSlice(Kind):
    """Devices that a driver offers."""

    spec: Annotated[ResourceSliceSpec | None, Required, Always({})] = None


class ResourceSliceSpec(Struct):
    driver: Annotated[str | None, Required, Always("")] = None
    pool: Annotated[ResourcePool | None, Required, Always({})] = None
    node_name: Annotated[str | None, Pointer] = None
    node_selector: NodeSelector | None = None
    all_nodes: Annotated[bool | None, Pointer] = None
    devices: Annotated[list[Device] | None, ListType("atomic")] = None
    per_device_node_selection: Annotated[bool | None, Pointer] = None
    shared_counters: Annotated[list[CounterSet] | None, ListType("atomic")] = None


class ResourcePool(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    generation: Annotated[Int64 | None, Required, Always(0)] = None
    resource_slice_count: Annotated[Int64 | None, Required, Always(0)] = None


class Device(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: Annotated[list[DeviceCounterConsumption] | None, ListType("atomic")] = None
    node_name: Annotated[str | None, Pointer] = None
    node_selector: NodeSelector | None = None
    all_nodes: Annotated[bool | None, Pointer] = None
    taints: Annotated[list[DeviceTaint] | None, ListType("atomic")] = None
    binds_to_node: Annotated[bool | None, Pointer] = None
    binding_conditions: Annotated[list[str] | None, ListType("atomic")] = None
    binding_failure_conditions: Annotated[list[str] | None, ListType("atomic")] = None
    allow_multiple_allocations: Annotated[bool | None, Pointer] = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] | None = None


class DeviceAttribute(Struct):
    int_: Annotated[Int64 | None, Pointer] = None
    bool_: Annotated[bool | None, Pointer] = None
    string: Annotated[str | None, Pointer] = None
    version: Annotated[str | None, Pointer] = None
    ints: Annotated[list[Int64] | None, ListType("atomic")] = None
    bools: Annotated[list[bool] | None, ListType("atomic")] = None
    strings: Annotated[list[str] | None, ListType("atomic")] = None
    versions: Annotated[list[str] | None, ListType("atomic")] = None


class DeviceCapacity(Struct):
    value: Annotated[Quantity | None, Required, Always("0")] = None
    request_policy: CapacityRequestPolicy | None = None


class CapacityRequestPolicy(Struct):
    default: Annotated[Quantity | None, Always(None)] = None
    valid_values: Annotated[list[Quantity] | None, ListType("atomic")] = None
    valid_range: CapacityRequestPolicyRange | None = None


class CapacityRequestPolicyRange(Struct):
    min: Annotated[Quantity | None, Required] = None
    max: Quantity | None = None
    step: Quantity | None = None


class DeviceCounterConsumption(Struct):
    counter_set: Annotated[str | None, Required, Always("")] = None
    counters: Annotated[dict[str, Counter] | None, Required] = None


class Counter(Struct):
    value: Annotated[Quantity | None, Required, Always("0")] = None


class DeviceTaint(Struct):
    key: Annotated[str | None, Required, Always("")] = None
    value: str | None = None
    effect: Annotated[str | None, Required, Always(""), Enum("NoExecute", "NoSchedule", "None")] = None
    time_added: Time | None = None


class NodeAllocatableResourceMapping(Struct):
    capacity_key: Annotated[str | None, Pointer] = None
    allocation_multiplier: Quantity | None = None


class CounterSet(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    counters: Annotated[dict[str, Counter] | None, Required] = None
