"""Gives pods the devices that their ResourceClaims ask for, on nodes that have them.

A claim that has its devices keeps its pod where those can be used. Others get theirs with the node: `allocator` finds
devices on every node that is looked at; those of the chosen node are pending while the pod is being bound; before it is
bound they are written into the claim, which is reserved for the pod (`writer`). Extended resources that a DeviceClass
provides become a claim of their own (`extended`).

Beta features that upstream has on by default are on: shared and partitioned devices, device taints, binding conditions,
extended resources. Those that it has off (DeviceTaintRule objects, list attributes, node resources of devices, claims
of pod groups) are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pybernetes.api.core.v1 import ContainerExtendedResourceRequest, Pod
from pybernetes.api.resource.v1 import (
    AllocationResult,
    DeviceClaim,
    DeviceClass,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)
from pybernetes.api.times import parse_duration
from pybernetes.client.keys import copy, key_of, uid_of

from ...config.v1.args import DynamicResourcesArgs
from ...framework import (
    ERROR,
    SKIP,
    UNRESOLVABLE,
    UNSCHEDULABLE,
    Action,
    ClusterEvent,
    CycleState,
    Diagnosis,
    EventWithHint,
    FilterPlugin,
    Handle,
    Hint,
    Mask,
    Normalize,
    PodInfo,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Refusals,
    ReservePlugin,
    Resource,
    RowArray,
    Rows,
    ScorePlugin,
    Scores,
    Status,
)
from ...snapshot.selectors import match_node_selector
from . import conditions, extended
from .allocator import AllocationError, Allocator, NodeUnusable, SearchTimeout
from .background import CYCLE_BUDGET, BackgroundSearches
from .claims import ClaimsMissing, Devices, allocation_of, is_reserved_for, pod_claims
from .pools import Slices
from .selectors import DeviceSelectors
from .writer import ClaimWriter

FILTER_TIMEOUT = 10
"""Seconds for the search of one pod; upstream's default of `filterTimeout` for one node. 0 is no end."""
BINDING_TIMEOUT = 600
"""Seconds; upstream's default of `bindingTimeout`."""
MAX_ALTERNATIVES = 8
"""Of a request (upstream's FirstAvailableDeviceRequestMaxSize): the first is worth so much."""

CANNOT_ALLOCATE = Status(UNRESOLVABLE, "cannot allocate all claims")
TIMED_OUT = Status(UNSCHEDULABLE, "timed out trying to allocate devices")
SEARCHING = Status(UNRESOLVABLE, "devices are being searched for")
NOT_SEARCHED = Status(UNRESOLVABLE, "devices were found on another node before this one was searched")
NOT_THERE = Status(UNRESOLVABLE, "resourceclaim not available on the node")


_ASKED = "DynamicResources/asked"
"""Written when `pre_filter` has had its say."""


@dataclass(slots=True)
class _OnNode:
    """The devices allocated to a pod on one node."""

    allocations: list[AllocationResult]
    """For the claims that have none yet, in their order."""
    extended: ResourceClaim | None = None
    """The claim for extended resources, as this node needs it."""
    mappings: list[ContainerExtendedResourceRequest] = field(default_factory=list)


@dataclass(slots=True)
class _State:
    claims: list[ResourceClaim]
    """The pod's, the one made for extended resources not among them."""
    allocator: Allocator | None
    """None when all claims have their devices."""
    classes: dict[str, DeviceClass]
    resources: frozenset[str]
    """Extended resources of the pod that classes provide."""
    old_extended: ResourceClaim | None
    """Made by an earlier attempt; has to go before there is another one."""
    answers: dict[int, _OnNode | Status] = field(default_factory=dict)
    """By row."""
    unavailable: dict[str, ResourceClaim] = field(default_factory=dict)
    """Claims whose devices cannot be used on some node; giving them up may help."""
    chosen: _OnNode | None = None
    """The pod's allocation, once it has its node."""
    pending: list[str] = field(default_factory=list)
    """Uids of claims that are about to get devices."""
    made: ResourceClaim | None = None
    """The claim for extended resources, once it is made."""
    deadline: float | None = None
    """When the search of this cycle ends, once it has begun."""

    def to_allocate(self) -> list[ResourceClaim]:
        """The claims that have no devices yet."""
        return [each for each in self.claims if allocation_of(each) is None]


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """See the module."""

    name = "DynamicResources"
    Args = DynamicResourcesArgs
    normalize = Normalize.DEFAULT

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        timeout = args.binding_timeout
        self._timeout = BINDING_TIMEOUT if timeout is None else parse_duration(str(timeout)) / 1e9
        search = args.filter_timeout
        self._filter_timeout = FILTER_TIMEOUT if search is None else parse_duration(str(search)) / 1e9
        self._writer = ClaimWriter(handle, self._timeout)
        self._claims = handle.informer(ResourceClaim)
        self._classes = handle.informer(DeviceClass)
        self._slices = handle.informer(ResourceSlice)
        self._devices = Devices(self._claims)
        self._selectors = DeviceSelectors()
        self._providers: dict[str, DeviceClass] | None = None
        self._sorted: Slices | None = None
        self._background: BackgroundSearches[_OnNode | Status] = BackgroundSearches()
        self._generation = 0
        """Goes up whenever the answer of a search may have become another: devices, classes, or what is taken."""
        self._claims.add_handler(self._claim_changed, self._claim_updated, self._claim_changed)
        self._classes.add_handler(self._class_changed, lambda _, new: self._class_changed(new), self._class_changed)
        self._slices.add_handler(self._slice_changed, lambda _, new: self._slice_changed(new), self._slice_changed)

    def events_to_register(self) -> Sequence[EventWithHint]:
        change = Action.ADD | Action.UPDATE
        nodes = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        return (
            EventWithHint(ClusterEvent(Resource.NODE, nodes)),
            EventWithHint(ClusterEvent(Resource.RESOURCE_CLAIM, change), self._after_claim),
            EventWithHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM), self._after_pod),
            EventWithHint(ClusterEvent(Resource.DEVICE_CLASS, change)),
            EventWithHint(ClusterEvent(Resource.RESOURCE_SLICE, change)),
        )

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        if not pod.spec.resource_claims:
            return None
        try:
            self._claims_of(pod.pod)
        except ClaimsMissing as error:
            return Status(UNRESOLVABLE, str(error))
        return None

    # -- filter

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        state[_ASKED] = True
        classes = self._provided()
        resources = extended.wanted(dict(pod.requests), classes) if classes else frozenset()
        if not pod.spec.resource_claims and not resources:
            return SKIP
        try:
            claims = self._claims_of(pod.pod)
        except ClaimsMissing as error:
            return Status(UNRESOLVABLE, str(error))
        for claim in claims:
            wrong = self._wrong(claim)
            if wrong:
                return Status(UNRESOLVABLE, wrong)
        old = extended.find_claim(pod.pod, self._claims.in_namespace(pod.namespace)) if resources else None
        allocator = None
        if resources or any(allocation_of(each) is None for each in claims):
            allocator = Allocator(self._all_slices(), self._devices.allocated(), self._classes.named, self._selectors)
        state[self.name] = _State(claims, allocator, classes, resources, old)
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        found: _State = state[self.name]
        snapshot = self.handle.snapshot
        numbers = snapshot.row_numbers(rows)
        mask = self._usable(found, numbers)
        if found.allocator is not None:
            rest: list[int] = []
            for position in np.flatnonzero(mask & snapshot.alive[numbers]).tolist():
                row = int(numbers[position])
                if row not in found.answers:
                    answer = self._search_in_cycle(found, pod, row)
                    found.answers[row] = answer
                    if answer is SEARCHING:
                        rest.append(row)
                mask[position] = isinstance(found.answers[row], _OnNode)
            if rest:
                self._search_on(found, pod, rest)
        return mask

    def _search_in_cycle(self, found: _State, pod: PodInfo, row: int) -> _OnNode | Status:
        """The pod's allocation on a node; `SEARCHING` if this cycle has no time left to find one."""
        search = self._background.get(pod.uid)
        if search is not None and not search.running and search.generation != self._generation:
            self._background.drop(pod.uid)
            search = None
        if search is not None:
            if search.running:
                return SEARCHING
            answer = search.answers.get(self._key(found, row))
            if answer is not None:
                return answer
            if any(isinstance(each, _OnNode) for each in search.answers.values()):
                return NOT_SEARCHED
        monotonic = self.handle.clock.monotonic
        if found.deadline is None:
            found.deadline = monotonic() + CYCLE_BUDGET
        deadline = found.deadline
        if monotonic() <= deadline:
            answer = self._question(found, pod, row)(lambda: monotonic() > deadline)
            if answer is not TIMED_OUT:
                return answer
        return NOT_SEARCHED if any(isinstance(each, _OnNode) for each in found.answers.values()) else SEARCHING

    def _search_on(self, found: _State, pod: PodInfo, rows: list[int]) -> None:
        """Search beside the scheduling cycles, unless a node was found after all."""
        if any(isinstance(each, _OnNode) for each in found.answers.values()):
            found.answers.update(dict.fromkeys(rows, NOT_SEARCHED))
        elif (search := self._background.get(pod.uid)) is None or not search.running:
            self._background.start(
                pod.uid,
                self._generation,
                [(self._key(found, row), self._question(found, pod, row)) for row in rows],
                lambda answer: isinstance(answer, _OnNode),
                self._filter_timeout,
                lambda: self.handle.activate([pod.pod]),
            )

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        found: _State = state[self.name]
        groups: dict[Status, list[int]] = {}
        for row, usable in zip(rows.tolist(), self._usable(found, rows).tolist(), strict=True):
            answer = found.answers.get(row)
            status = NOT_THERE if not usable else answer if isinstance(answer, Status) else CANNOT_ALLOCATE
            groups.setdefault(status, []).append(row)
        return [(status, np.array(members, dtype=np.intp)) for status, members in groups.items()]

    def _usable(self, found: _State, rows: RowArray) -> Mask:
        """Where the devices of claims that have theirs can be used."""
        mask = np.ones(len(rows), dtype=np.bool_)
        for claim in found.claims:
            allocation = allocation_of(claim)
            if allocation is None:
                continue
            reached = np.ones(len(rows), dtype=np.bool_)
            if allocation.node_selector is not None:
                reached = match_node_selector(self.handle.snapshot, allocation.node_selector, rows)
            if not self._may_become_ready(claim):
                reached[:] = False
            if not reached.all():
                found.unavailable[uid_of(claim)] = claim
            mask &= reached
        return mask

    def _may_become_ready(self, claim: ResourceClaim) -> bool:
        try:
            ready = conditions.is_ready(claim)
        except conditions.DeviceBindingFailed:
            return False
        return ready or not conditions.is_late(claim, self.handle.clock.now(), self._timeout)

    def _key(self, found: _State, row: int) -> Hashable:
        """The cache key of a node's result; `_generation` covers the rest."""
        info = self.handle.snapshot.info(row)
        return info.name, frozenset(info.labels.items()), frozenset(self._missing(found, row))

    def _missing(self, found: _State, row: int) -> list[str]:
        """The extended resources that devices must provide because the node does not."""
        return [name for name in found.resources if not self.handle.snapshot.allocatable(name)[row]]

    def _question(self, found: _State, pod: PodInfo, row: int) -> Callable[[Callable[[], bool]], _OnNode | Status]:
        """Which devices the pod gets on a node: a function for a thread, whose argument says when to give up."""
        assert found.allocator is not None
        allocator = found.allocator
        node = self.handle.snapshot.info(row).node
        assert node is not None
        claims = found.to_allocate()
        here = self._missing(found, row)
        own: ResourceClaim | None = None
        mappings: list[ContainerExtendedResourceRequest] = []
        if here:
            if found.old_extended is not None:
                return lambda late: Status(UNRESOLVABLE, "cannot schedule extended resource claim")
            requests, mappings = extended.requests_and_mappings(pod.spec, here, found.classes)
            own = extended.new_claim(pod.pod, requests)
            claims.append(own)
        if not claims:
            return lambda late: _OnNode([])

        def search(late: Callable[[], bool]) -> _OnNode | Status:
            try:
                allocations = allocator.allocate(node, claims, late)
            except SearchTimeout:
                return TIMED_OUT
            except (NodeUnusable, AllocationError) as error:
                return Status(UNRESOLVABLE, str(error))
            return CANNOT_ALLOCATE if allocations is None else _OnNode(allocations, own, mappings)

        return search

    def _wrong(self, claim: ResourceClaim) -> str | None:
        if allocation_of(claim) is not None:
            return None
        if uid_of(claim) in self._devices.pending:
            return f"resource claim {_text(claim)} is in the process of being allocated"
        for request in _devices(claim).requests or ():
            alternatives = request.first_available or []
            named = [(f"{request.name}/{each.name}", each.device_class_name) for each in alternatives]
            if request.exactly is not None:
                named = [(request.name or "", request.exactly.device_class_name)]
            if not named:
                return f"resource claim {_text(claim)}, request {request.name}: unknown request type"
            for name, class_name in named:
                if self._classes.named(class_name or "") is None:
                    return f"request {name}: device class {class_name or ''} does not exist"
        return None

    # -- post-filter

    async def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Deallocate unused devices of the pod's claims, so that it may fit elsewhere."""
        if _ASKED not in state:  # another plugin rejected the pod before: upstream fails here without preemption
            return None, Status(ERROR, "not found")
        found: _State | None = state.get(self.name)
        if found is None:
            return None, Status(UNSCHEDULABLE, "no new claims to deallocate")
        for claim in found.unavailable.values():
            users = (claim.status.reserved_for if claim.status else None) or []
            if not users or [each.uid for each in users] == [pod.uid]:
                given_up = copy(claim)
                given_up.status = ResourceClaimStatus()
                await self.handle.client.update_status(given_up)
                return None, Status(UNSCHEDULABLE, "deallocation of ResourceClaim completed")
        if found.old_extended is not None:
            await self._writer.delete(found.old_extended)
            return None, Status(UNSCHEDULABLE, "deletion of ResourceClaim completed")
        return None, Status(UNSCHEDULABLE, "still not schedulable")

    # -- score

    def pre_score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Status | None:
        found: _State | None = state.get(self.name)
        choice = found is not None and any(
            request.first_available for claim in found.claims for request in _devices(claim).requests or ()
        )
        return None if choice else SKIP

    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        found: _State | None = state.get(self.name)
        if found is None:
            return np.zeros(self.handle.snapshot.count(rows), dtype=np.int64)
        numbers = self.handle.snapshot.row_numbers(rows)
        return np.array([self._score(found, row) for row in numbers.tolist()], dtype=np.int64)

    def _score(self, found: _State, row: int) -> int:
        """The more, the earlier the alternatives are that requests are fulfilled by."""
        answer = found.answers.get(row)
        if not isinstance(answer, _OnNode):
            return 0
        new = iter(answer.allocations)
        score = 0
        for claim in found.claims:
            allocation = allocation_of(claim) or next(new)
            results = (allocation.devices.results if allocation.devices else None) or ()
            used = {each.request for each in results}
            for request in _devices(claim).requests or ():
                for index, alternative in enumerate(request.first_available or ()):
                    if f"{request.name}/{alternative.name}" in used:
                        score += MAX_ALTERNATIVES - index
        return score

    # -- reserve

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        found: _State | None = state.get(self.name)
        if found is None or found.allocator is None:
            return None
        answer = found.answers.get(self.handle.snapshot.row_of[node_name])
        if not isinstance(answer, _OnNode):
            return Status.of_error(LookupError("claim allocation not found for node"))
        claims = [*found.to_allocate(), *([answer.extended] if answer.extended is not None else [])]
        for claim, allocation in zip(claims, answer.allocations, strict=True):
            self._devices.pending[uid_of(claim)] = allocation
            found.pending.append(uid_of(claim))
        found.chosen = answer
        self._generation += 1
        self._background.drop(pod.uid)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        found: _State | None = state.get(self.name)
        if found is None:
            return
        self._generation += bool(found.pending)
        for uid in found.pending:
            self._devices.pending.pop(uid, None)
        found.pending.clear()
        for claim in found.claims:
            if allocation_of(claim) is not None and is_reserved_for(claim, pod.uid):
                self._writer.later(self._writer.release(claim, pod.uid))
        if found.made is not None:
            self._writer.later(self._writer.delete(found.made))
            found.made = None

    # -- pre-bind

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None if self.name in state else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        found: _State | None = state.get(self.name)
        if found is None:
            return None
        chosen = found.chosen
        allocations = iter(chosen.allocations if chosen is not None else ())
        for index, claim in enumerate(found.claims):
            allocation = None if allocation_of(claim) is not None else next(allocations)
            if not is_reserved_for(claim, pod.uid):
                found.claims[index] = await self._writer.reserve(claim, allocation, pod)
        if chosen is not None and chosen.extended is not None:
            found.made = await self._writer.make(chosen.extended)
            found.made = await self._writer.reserve(found.made, next(allocations), pod)
            self._settle(found, uid_of(chosen.extended), found.made)
            await self._writer.tell_pod(pod, found.made, chosen.mappings)
        claims = [*found.claims, *([found.made] if found.made is not None else [])]
        await self._writer.wait_for_devices(claims, pod, node_name)
        return None

    def _settle(self, found: _State, uid: str, made: ResourceClaim) -> None:
        """A claim has its own uid now: its devices are pending under that until the informer knows them."""
        allocation = self._devices.pending.pop(uid, None)
        known = self._claims.get(key_of(made))
        if allocation is not None and (known is None or allocation_of(known) is None):
            self._devices.pending[uid_of(made)] = allocation
            found.pending.append(uid_of(made))

    # -- what is there

    def _claims_of(self, pod: Pod) -> list[ResourceClaim]:
        namespace = (pod.metadata.namespace if pod.metadata else None) or ""
        return pod_claims(pod, lambda name: self._claims.named(name, namespace))

    def _provided(self) -> dict[str, DeviceClass]:
        if self._providers is None:
            self._providers = extended.providers(self._classes.items())
        return self._providers

    def _all_slices(self) -> Slices:
        if self._sorted is None:
            self._sorted = Slices(self._slices.items())
        return self._sorted

    def _class_changed(self, _: DeviceClass) -> None:
        self._providers = None
        self._generation += 1

    def _slice_changed(self, _: ResourceSlice) -> None:
        self._sorted = None
        self._generation += 1

    def _claim_changed(self, claim: ResourceClaim) -> None:
        if allocation_of(claim) is not None:
            self._generation += 1

    def _claim_updated(self, old: ResourceClaim, new: ResourceClaim) -> None:
        if allocation_of(old) != allocation_of(new) or old.spec != new.spec:
            self._generation += 1

    # -- hints

    def _after_claim(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> Hint:
        if new is None:
            return Hint.SKIP
        try:
            uses = any(uid_of(each) == uid_of(new) for each in self._claims_of(pod))
        except ClaimsMissing:
            return Hint.SKIP
        if old is not None and allocation_of(old) is not None and allocation_of(new) is None:
            return Hint.QUEUE  # devices became free
        if not uses:
            return Hint.SKIP
        return Hint.SKIP if old is not None and old.status == new.status else Hint.QUEUE

    def _after_pod(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        if new is None or uid_of(new) != uid_of(pod):
            return Hint.SKIP
        try:
            self._claims_of(new)
        except ClaimsMissing:
            return Hint.SKIP
        return Hint.QUEUE


def _devices(claim: ResourceClaim) -> DeviceClaim:
    return (claim.spec.devices if claim.spec else None) or DeviceClaim()


def _text(claim: ResourceClaim) -> str:
    return str(key_of(claim))
