"""Finds devices for claims on a node: a search with backtracking, in upstream's order, so that it finds the same.

Claims, requests, alternatives of a request, and devices are tried in the order in which they are written. A device is
taken if it is free, selectors and tolerations allow it, constraints hold, and counters and capacity suffice;
when something later does not work out it is put back and the next one is tried.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from pybernetes.api.core.v1 import Node
from pybernetes.api.core.v1.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from pybernetes.api.resource.tolerations import tolerates
from pybernetes.api.resource.v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)

from .capacity import Amounts, consumed, fits
from .constraints import Constraint
from .pools import Counters, DeviceID, Pool, PoolDevice, PoolID, Slices, amount, node_matches
from .selectors import DeviceSelectors, SelectorFailed

MAX_RESULTS = 32
"""Devices of one claim (upstream's AllocationResultsMaxSize)."""

_STEPS = 16
"""Devices looked at between two looks at the clock."""

ClassLookup = Callable[[str], DeviceClass | None]


class AllocationError(Exception):
    """Nothing can be said about the node: the pod is tried again later."""


class SearchTimeout(AllocationError):
    """The search took too long."""


class NodeUnusable(Exception):
    """The node's own devices are in disorder: it is not for this pod now."""


@dataclass(slots=True)
class Allocated:
    """Which devices are taken, by claims that have them and by claims about to get them."""

    devices: set[DeviceID] = field(default_factory=set)
    """Those that one claim has to itself."""
    capacity: dict[DeviceID, Amounts] = field(default_factory=dict)
    """Of those that are shared, what is taken."""

    def has(self, device: DeviceID) -> bool:
        """Whether it is allocated, exclusively or shared."""
        return device in self.devices or device in self.capacity


class _Request:
    """One way to fulfil a request: the request itself, or one of its alternatives."""

    def __init__(self, claim: str, parent: str, given: DeviceRequest | DeviceSubRequest, cls: DeviceClass) -> None:
        asked: ExactDeviceRequest | DeviceSubRequest
        if isinstance(given, DeviceRequest):
            asked = given.exactly or ExactDeviceRequest()
            self.admin = bool(asked.admin_access)
        else:
            asked = given
            self.admin = False
        self.claim = claim
        self.base = parent or given.name or ""
        self.sub = (given.name or "") if parent else ""
        self.cls = cls
        self.selectors: list[DeviceSelector] = asked.selectors or []
        self.tolerations: list[DeviceToleration] | None = asked.tolerations
        self.capacity = asked.capacity.requests if asked.capacity else None
        self.all = asked.allocation_mode == "All"
        self.count = 0 if self.all else (1 if asked.count is None else asked.count)
        self.devices: list[PoolDevice] = []
        """All of them, when all are asked for."""
        self._selected: dict[DeviceID, bool] = {}

    @property
    def name(self) -> str:
        """As results and configurations call it."""
        return f"{self.base}/{self.sub}" if self.sub else self.base

    def selects(self, device: PoolDevice, node: Node, selectors: DeviceSelectors) -> bool:
        """Whether the device is one of those asked for."""
        found = self._selected.get(device.id)
        if found is None:
            found = self._selected[device.id] = self._select(device, node, selectors)
        return found

    def _select(self, device: PoolDevice, node: Node, selectors: DeviceSelectors) -> bool:
        spec = self.cls.spec
        for who, some in (
            (f"class {_class_name(self.cls)}", (spec.selectors if spec else None) or []),
            (f"claim {self.claim}", self.selectors),
        ):
            for index, each in enumerate(some):
                if each.cel is None:
                    raise AllocationError(
                        f"{who}: selector #{index}: CEL expression empty (unsupported selector type?)"
                    )
                try:
                    if not selectors.matches(each.cel.expression or "", device.id.driver, device.device):
                        return False
                except SelectorFailed as error:
                    raise AllocationError(f"{who}: selector #{index}: {error}") from None
        if device.spec.per_device_node_selection:
            own = device.device
            return node_matches(node, own.node_name, own.all_nodes, own.node_selector)
        return True


@dataclass(slots=True)
class _Taken:
    """A device that a claim gets."""

    request: _Request
    device: PoolDevice
    capacity: Amounts | None
    """The capacity it consumes of a shared device."""


class Allocator:
    """Devices as they are now; asked about one node after the other."""

    def __init__(
        self,
        slices: Slices,
        allocated: Allocated,
        classes: ClassLookup,
        selectors: DeviceSelectors,
    ) -> None:
        self.slices = slices
        self.allocated = allocated
        self.classes = classes
        self.selectors = selectors
        self._available: dict[PoolID, Counters] = {}

    def allocate(
        self, node: Node, claims: Sequence[ResourceClaim], late: Callable[[], bool] | None = None
    ) -> list[AllocationResult] | None:
        """Devices for all the claims, in their order, or None. Raises AllocationError or NodeUnusable.

        `late` says whether the search has taken too long: then it raises SearchTimeout.
        """
        return _Search(self, node, claims, late).run()

    def available(self, pool: Pool) -> Counters:
        """The pool's counters less those of allocated devices."""
        found = self._available.get(pool.id)
        if found is None:
            found = {name: dict(counters) for name, counters in pool.counters.items()}
            for each in (*pool.devices, *pool.others):
                if self.allocated.has(each.id):
                    for name, counter, used in _uses(each):
                        found[name][counter] -= used
            self._available[pool.id] = found
        return found


class _Search:
    """The search on one node."""

    def __init__(
        self, allocator: Allocator, node: Node, claims: Sequence[ResourceClaim], late: Callable[[], bool] | None
    ) -> None:
        self._allocator = allocator
        self._late = late
        self._steps = 0
        self._node = node
        self._claims = claims
        self._pools = allocator.slices.pools(node)
        self._devices = [each for pool in self._pools if _usable(pool) for each in pool.devices]
        self._results: list[list[_Taken]] = [[] for _ in claims]
        self._chosen: list[list[_Request]] = [[] for _ in claims]
        self._taking: dict[DeviceID, set[int]] = {}
        """Devices that claims of this search take, and which claims."""
        self._sharing: dict[DeviceID, list[Amounts]] = {}
        self._used: dict[PoolID, Counters] = {}
        self._requests = [
            [self._alternatives(claim, each) for each in _devices(claim).requests or ()] for claim in claims
        ]
        self._constraints = [
            [_constraint(claim, each) for each in _devices(claim).constraints or ()] for claim in claims
        ]

    def run(self) -> list[AllocationResult] | None:
        for claim, requests in zip(self._claims, self._requests, strict=True):
            least = sum(min(self._number(each) for each in alternatives) for alternatives in requests)
            if least > MAX_RESULTS:
                raise AllocationError(
                    f"claim {_key(claim)}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
                )
        if self._next_request(0, 0):
            return [self._result(index) for index in range(len(self._claims))]
        if any(pool.invalid for pool in self._pools):
            raise NodeUnusable("invalid resource pools were encountered")
        return None

    # -- requests

    def _alternatives(self, claim: ResourceClaim, request: DeviceRequest) -> list[_Request]:
        name = request.name or ""
        if request.first_available:
            found = [self._request(claim, name, each, each.device_class_name) for each in request.first_available]
        else:
            exactly = request.exactly or ExactDeviceRequest()
            found = [self._request(claim, "", request, exactly.device_class_name)]
        return found

    def _request(
        self, claim: ResourceClaim, parent: str, given: DeviceRequest | DeviceSubRequest, class_name: str | None
    ) -> _Request:
        who = f"claim {_key(claim)}, request {given.name}"
        if not class_name:
            raise AllocationError(f"{who}: missing device class name (unsupported request type?)")
        found = self._allocator.classes(class_name)
        if found is None:
            raise AllocationError(f"{who}: could not retrieve device class {class_name}")
        request = _Request(_key(claim), parent, given, found)
        if request.all:
            for pool in self._pools:
                if not _usable(pool):
                    state = "being updated" if pool.incomplete else "invalid"
                    raise AllocationError(
                        f"{who}: asks for all devices, but resource pool {pool.id} is currently {state}"
                    )
            request.devices = [each for each in self._devices if self._suits(request, each)]
        return request

    def _number(self, request: _Request) -> int:
        return len(request.devices) if request.all else request.count

    def _look_at_the_clock(self) -> None:
        self._steps += 1
        if self._late is not None and self._steps % _STEPS == 0 and self._late():
            name = self._node.metadata.name if self._node.metadata else ""
            raise SearchTimeout(f"node {name}: timed out trying to allocate devices")

    def _suits(self, request: _Request, device: PoolDevice) -> bool:
        self._look_at_the_clock()
        if not request.selects(device, self._node, self._allocator.selectors):
            return False
        taken = consumed(device.device, request.capacity)
        return taken is not None and self._has_capacity(device, taken)

    # -- the search

    def _next_request(self, claim: int, request: int) -> bool:
        while claim < len(self._claims) and request >= len(self._requests[claim]):
            claim, request = claim + 1, 0
        if claim == len(self._claims):
            return True
        for each in self._requests[claim][request]:
            number = self._number(each)
            if (each.all and not number) or len(self._results[claim]) + number > MAX_RESULTS:
                continue
            self._chosen[claim].append(each)
            if self._next_device(claim, request, each, number, 0):
                return True
            self._chosen[claim].pop()
        return False

    def _next_device(self, claim: int, index: int, request: _Request, left: int, start: int) -> bool:
        """Take `left` more devices for the request, of those from `start` on, and go on with the next request."""
        if not left:
            return self._next_request(claim, index + 1)
        if request.all:
            device = request.devices[len(request.devices) - left]
            return self._try(claim, index, request, left, device, 0)
        for position in range(start, len(self._devices)):
            device = self._devices[position]
            if self._is_taken(claim, request, device) or not self._suits(request, device):
                continue
            if self._try(claim, index, request, left, device, position + 1):
                return True
        return False

    def _try(self, claim: int, index: int, request: _Request, left: int, device: PoolDevice, start: int) -> bool:
        self._look_at_the_clock()
        undo = self._take(claim, request, device)
        if undo is None:
            return False
        if self._next_device(claim, index, request, left - 1, start):
            return True
        for step in reversed(undo):
            step()
        return False

    def _is_taken(self, claim: int, request: _Request, device: PoolDevice) -> bool:
        if request.admin:  # may look at what others have, but not get it twice
            return claim in self._taking.get(device.id, ())
        return device.id in self._allocator.allocated.devices or bool(self._taking.get(device.id))

    def _take(self, claim: int, request: _Request, device: PoolDevice) -> list[Callable[[], object]] | None:
        """Take the device: how to put it back, or None if it cannot be had."""
        shared = bool(device.device.allow_multiple_allocations)
        if self._is_taken(claim, request, device):
            return None
        if any(_blocks(taint, request) for taint in device.device.taints or ()):
            return None
        taken = consumed(device.device, request.capacity)
        if taken is None or not self._has_capacity(device, taken):
            return None
        undo: list[Callable[[], object]] = []
        if not (shared and self._is_shared(device)) and not self._use_counters(device, undo):
            return None
        for constraint in self._constraints[claim]:
            if not constraint.add(request.base, request.sub, device):
                for step in reversed(undo):
                    step()
                if request.all:
                    raise AllocationError(
                        f"claim {request.claim}, request {request.sub or request.base}: cannot add device {device.id} "
                        "because a claim constraint would not be satisfied"
                    )
                return None
            undo.append(lambda each=constraint: each.remove(request.base, request.sub))  # type: ignore[misc]
        if shared:
            sharing = self._sharing.setdefault(device.id, [])
            sharing.append(taken)
            undo.append(sharing.pop)
        else:
            holders = self._taking.setdefault(device.id, set())
            holders.add(claim)
            undo.append(lambda: holders.discard(claim))
        self._results[claim].append(_Taken(request, device, taken if shared else None))
        undo.append(self._results[claim].pop)
        return undo

    def _has_capacity(self, device: PoolDevice, taken: Amounts) -> bool:
        before = self._allocator.allocated.capacity.get(device.id, {})
        return fits(device.device, taken, before, *self._sharing.get(device.id, ()))

    def _is_shared(self, device: PoolDevice) -> bool:
        return device.id in self._allocator.allocated.capacity or bool(self._sharing.get(device.id))

    def _use_counters(self, device: PoolDevice, undo: list[Callable[[], object]]) -> bool:
        uses = list(_uses(device))
        if not uses:
            return True
        used = self._used.setdefault(device.pool.id, {})

        def add(sign: int) -> None:
            for name, counter, number in uses:
                counters = used.setdefault(name, {})
                counters[counter] = counters.get(counter, Decimal(0)) + sign * number

        add(1)
        available = self._allocator.available(device.pool)
        for name, counters in available.items():
            if any(used.get(name, {}).get(counter, 0) > left for counter, left in counters.items()):
                add(-1)
                return False
        undo.append(lambda: add(-1))
        return True

    # -- the result

    def _result(self, index: int) -> AllocationResult:
        taken = self._results[index]
        return AllocationResult(
            devices=DeviceAllocationResult(
                results=[_device_result(each) for each in taken] or None,
                config=self._configuration(index) or None,
            ),
            node_selector=_node_selector(taken, self._node),
        )

    def _configuration(self, index: int) -> list[DeviceAllocationConfiguration]:
        """The configuration of classes for their requests, then that of the claim."""
        chosen = self._chosen[index]
        found: list[DeviceAllocationConfiguration] = []
        by_class: dict[str, list[str]] = {}
        for each in chosen:
            by_class.setdefault(_class_name(each.cls), []).append(each.name)
        seen: set[str] = set()
        for each in chosen:
            name = _class_name(each.cls)
            if name not in seen:
                seen.add(name)
                found += [
                    DeviceAllocationConfiguration(source="FromClass", requests=by_class[name], opaque=config.opaque)
                    for config in (each.cls.spec.config if each.cls.spec else None) or ()
                ]
        for given in _devices(self._claims[index]).config or ():
            wanted = given.requests or []
            times = 1 if not wanted else sum(1 for each in chosen if each.base in wanted or each.name in wanted)
            found += [
                DeviceAllocationConfiguration(source="FromClaim", requests=given.requests, opaque=given.opaque)
            ] * times
        return found


def _device_result(taken: _Taken) -> DeviceRequestAllocationResult:
    id, device = taken.device.id, taken.device.device
    shared = taken.capacity is not None
    return DeviceRequestAllocationResult(
        request=taken.request.name,
        driver=id.driver,
        pool=id.pool,
        device=id.device,
        admin_access=True if taken.request.admin else None,
        tolerations=taken.request.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=str(uuid.uuid4()) if shared else None,
        consumed_capacity={name: str(each) for name, each in taken.capacity.items()} if taken.capacity else None,
    )


def _node_selector(taken: Sequence[_Taken], node: Node) -> NodeSelector | None:
    """Where the devices can be used together."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in taken:
        source = each.device.device if each.device.spec.per_device_node_selection else each.device.spec
        if source.node_name is not None or each.device.device.binds_to_node:
            name = (node.metadata.name if node.metadata else None) or ""
            here = NodeSelectorRequirement(key="metadata.name", operator="In", values=[name])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[here])])
        terms = (source.node_selector.node_selector_terms if source.node_selector else None) or []
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            fields += [one for one in term.match_fields or () if one not in fields]
            expressions += [one for one in term.match_expressions or () if one not in expressions]
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=fields or None, match_expressions=expressions or None)
    return NodeSelector(node_selector_terms=[term])


def _blocks(taint: DeviceTaint, request: _Request) -> bool:
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return False
    return not any(tolerates(each, taint) for each in request.tolerations or ())


def _uses(device: PoolDevice) -> list[tuple[str, str, Decimal]]:
    """The counters of its pool that a device consumes."""
    return [
        (use.counter_set or "", name, amount(counter))
        for use in device.device.consumes_counters or ()
        for name, counter in (use.counters or {}).items()
    ]


def _constraint(claim: ResourceClaim, given: DeviceConstraint) -> Constraint:
    if given.match_attribute is None and given.distinct_attribute is None:
        raise AllocationError(f"claim {_key(claim)}: empty constraint (unsupported constraint type?)")
    return Constraint(given)


def _usable(pool: Pool) -> bool:
    return not pool.incomplete and not pool.invalid


def _devices(claim: ResourceClaim) -> DeviceClaim:
    return (claim.spec.devices if claim.spec else None) or DeviceClaim()


def _key(claim: ResourceClaim) -> str:
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata else ""


def _class_name(cls: DeviceClass) -> str:
    return (cls.metadata.name if cls.metadata else None) or ""
