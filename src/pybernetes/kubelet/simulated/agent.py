"""All pods of all simulated nodes: watched together, pretended one by one, reported as a kubelet reports them.

A new pod is admitted by its node first (`admitting.py`); then it waits for an address and for what it mounts; then it
lives (`pod.py`) and is looked at when something has changed or a moment of its own has come. Of the pods of a silent
node nothing is heard until it comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, cast

from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import ConfigMap, Node, Pod, PodCondition, PodStatus, Secret
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import copy, resource_of, uid_of

from ..backoff import CRASH_LOOP_BASE, CRASH_LOOP_LONGEST, BackOff
from ..events import container_reference
from ..eviction.manager import REASON as EVICTED
from ..pod.refusal import PodRefused, refused_status
from ..resources.amounts import resizable, same
from ..status.manager import StatusManager
from ..status.phase import is_terminal
from ..status.pod_status import Eviction
from .addresses import Addresses
from .admitting import Admitting
from .behaviour import Rule, same_settings, unknown
from .identities import Identities, NodesClient
from .nodes import SimulatedNodes
from .pod import Outcome, SimulatedPod
from .pressure import Pressures
from .references import CONFIG_MAP, SECRET, Missing, missing
from .resizing import Resizing

COLLECT_EVERY: Final = 60.0
log = logging.getLogger(__name__)


class Agent:
    """Pretends the pods of the nodes. `start` it when the informers of nodes, ConfigMaps and Secrets are filled."""

    def __init__(
        self,
        identities: Identities,
        informers: InformerFactory,
        clock: Clock,
        nodes: SimulatedNodes,
        rules: Sequence[Rule] = (),
    ) -> None:
        self._identities = identities
        self._informers = informers
        self._clock = clock
        self._nodes = nodes
        self._rules = rules
        self._addresses = Addresses()
        self._started = False
        """Whether all pods that were there in the beginning are known."""
        self._backoff = BackOff(clock, CRASH_LOOP_BASE, CRASH_LOOP_LONGEST)
        self._pods: dict[str, Pod] = {}
        """By uid, as the server showed them last."""
        self._on: dict[str, dict[str, None]] = {}
        """Uids by node."""
        self._simulated: dict[str, SimulatedPod] = {}
        self._refused: set[str] = set()
        self._timers: dict[str, Timer] = {}
        self._resizing = Resizing(clock, self._event)
        self._admitting = Admitting(self._active, self._event)
        client = cast("Client", NodesClient(identities, lambda uid: _node_of(self._pods.get(uid))))
        self._statuses = StatusManager(client, clock, self._pods.get, self._may_be_running)
        self._waiting: dict[str, dict[str, None]] = {}
        """Uids of pods that wait for their node to get a range of addresses, by node."""
        self._lacking: dict[tuple[str, str, str], dict[str, None]] = {}
        """Uids of pods that wait for an object: by sort, namespace and name."""
        informers.informer(Node).add_handler(self._node_changed, lambda _, new: self._node_changed(new), lambda _: None)
        self._objects = {
            sort: informers.metadata_informer(resource_of(kind))
            for sort, kind in ((CONFIG_MAP, ConfigMap), (SECRET, Secret))
        }
        for sort, informer in self._objects.items():
            informer.add_handler(partial(self._appeared, sort))
        memory = nodes.quantities["memory"].value()
        self._pressures = Pressures(clock, memory, nodes.behaviour, self.pods_on, self._evict, nodes.set_pressures)
        nodes.changed.append(self._node_behaves)
        self._collecting = clock.call_later(COLLECT_EVERY, self._collect)

    async def start(self) -> None:
        """Take up the pods that are there."""
        pods = self._informers.informer(Pod, field_selector="spec.nodeName!=")  # unscheduled pods do not matter here
        pods.add_handler(self._seen, lambda _, new: self._seen(new), self._gone)
        self._informers.start()
        await self._informers.wait_synced()
        # A pod that has no address yet must not get that of one which is seen later.
        for uid, pod in self._pods.items():
            self._keep_addresses(uid, pod)
        self._started = True
        for uid in list(self._pods):
            self._sync(uid)

    async def stop(self) -> None:
        """Report nothing more."""
        self._collecting.cancel()
        for timer in self._timers.values():
            timer.cancel()
        await self._pressures.stop()
        await self._statuses.stop()

    def set_rules(self, rules: Sequence[Rule]) -> None:
        """From now on these are in force, for pods that are there as well."""
        self._rules = rules
        for uid in list(self._simulated):
            self._reconsider(uid)

    # -- what servers of kubelets ask

    def pods_on(self, node: str) -> list[tuple[Pod, SimulatedPod]]:
        """The pods of a node, with what they pretend."""
        return [(self._pods[uid], self._simulated[uid]) for uid in self._on.get(node, ()) if uid in self._simulated]

    def status_of(self, pod: Pod) -> PodStatus:
        """The newest status."""
        return self._statuses.get(uid_of(pod)) or pod.status or PodStatus()

    # -- what the server shows

    def _seen(self, pod: Pod) -> None:
        node = _node_of(pod)
        if node not in self._nodes or pod.metadata is None:
            return
        uid = uid_of(pod)
        before = self._pods.get(uid)
        self._pods[uid] = pod
        if self._nodes.silent(node):
            self._on.setdefault(node, {})[uid] = None
            return
        if before is None or uid not in self._on.get(node, {}):
            self._on.setdefault(node, {})[uid] = None
            self._sync(uid)
        elif _asks_for_something_else(before, pod):
            if _resources_differ(before, pod):
                self._resize(uid, pod, before)
            self._sync(uid)
        if before is not None and not same_settings(before, pod):
            self._tell_unknown(pod)
            self._reconsider(uid)
        self._statuses.pod_changed(uid)

    def _gone(self, pod: Pod) -> None:
        uid, node = uid_of(pod), _node_of(pod)
        if self._pods.pop(uid, None) is None:
            return
        self._on.get(node, {}).pop(uid, None)
        self._simulated.pop(uid, None)
        self._refused.discard(uid)
        self._resizing.forget(uid)
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        self._addresses.give_back(node, self._ranges(node), uid)
        self._waiting.get(node, {}).pop(uid, None)
        self._statuses.remove(uid)
        self._retry_resizes(node)

    def _node_changed(self, node: Node) -> None:
        name = (node.metadata.name if node.metadata else None) or ""
        if name in self._waiting and self._ranges(name):
            for uid in self._waiting.pop(name):
                self._sync(uid)

    def _node_behaves(self, name: str) -> None:
        """A node has come back, or gone silent: then nothing is due."""
        if self._nodes.behaviour(name).pressure or self._nodes.pressures(name):
            self._pressures.watch(name)
        if not self._nodes.silent(name):
            for uid in list(self._on.get(name, ())):
                self._sync(uid)
                self._statuses.pod_changed(uid)

    def _appeared(self, sort: str, obj: Kind) -> None:
        assert obj.metadata is not None
        for uid in self._lacking.pop((sort, obj.metadata.namespace or "", obj.metadata.name or ""), ()):
            self._sync(uid)

    # -- pretending

    def _sync(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        pod = self._pods.get(uid)
        if pod is None or not self._started or self._nodes.silent(_node_of(pod)):
            return
        if uid in self._refused:
            self._end_refused(pod)
            return
        simulated = self._simulated.get(uid) or self._begin(uid, pod)
        if simulated is None:
            return
        old = self._statuses.get(uid) or pod.status or PodStatus()
        allocated = self._resizing.allocated(pod)
        lacking = self._missing(uid, pod)
        outcome = simulated.sync(allocated, copy(old), self._clock.now(), lacking, self._resizing.conditions(uid))
        self._tell(pod, outcome)
        self._statuses.set(pod, outcome.status)
        if outcome.ended:
            self._statuses.terminate(pod)
        elif outcome.again_at is not None:
            seconds = max(0.0, outcome.again_at - self._clock.now())
            self._timers[uid] = self._clock.call_later(seconds, self._sync, uid)
        if is_terminal(outcome.status.phase) and not is_terminal(old.phase):
            self._retry_resizes(_node_of(pod))

    def _begin(self, uid: str, pod: Pod) -> SimulatedPod | None:
        """The pod begins to live, or is taken up; None while it has no address, or if the node does not take it."""
        assert pod.spec is not None
        assert pod.metadata is not None
        node = _node_of(pod)
        if not self._admitted(uid, pod):
            return None
        known = self._keep_addresses(uid, pod)
        ips: Sequence[str] = known
        if not pod.spec.host_network:
            ips = known or self._addresses.take(node, self._ranges(node), uid)
            if not ips and not pod.metadata.deletion_timestamp:
                self._waiting.setdefault(node, {})[uid] = None
                return None
        made = self._simulated[uid] = SimulatedPod(pod, self._rules, self._backoff, ips, self._nodes.host_ips(node))
        self._resizing.take_up(pod)
        self._watch_memory(pod, made)
        self._tell_unknown(pod)
        return made

    def _keep_addresses(self, uid: str, pod: Pod) -> list[str]:
        """The addresses that a pod has already, which no other one gets from now on."""
        known = [each.ip or "" for each in (pod.status and pod.status.pod_ips) or ()]
        if pod.spec is not None and not pod.spec.host_network:
            node = _node_of(pod)
            self._addresses.keep(node, self._ranges(node), uid, known)
        return known

    def _reconsider(self, uid: str) -> None:
        """The pod may have to behave in another way."""
        pod, simulated = self._pods[uid], self._simulated.get(uid)
        if simulated is None or not simulated.reconsider(pod, self._rules, self._clock.now()):
            return
        self._watch_memory(pod, simulated)
        self._sync(uid)

    def _watch_memory(self, pod: Pod, simulated: SimulatedPod) -> None:
        """Nodes can run short of it only by pods that use more than they request."""
        assert pod.spec is not None
        if any(simulated.behaviour(pod, each.name or "").memory for each in pod.spec.containers or ()):
            self._pressures.watch(_node_of(pod))

    def _tell_unknown(self, pod: Pod) -> None:
        for problem in unknown(pod):
            self._event(pod, "Warning", "BadSimulation", problem)

    def _admitted(self, uid: str, pod: Pod) -> bool:
        """Whether the node takes a pod that is new to it."""
        assert pod.metadata is not None
        node = self._nodes.node(_node_of(pod))
        status = pod.status
        new = not (status and (status.start_time or is_terminal(status.phase))) and not pod.metadata.deletion_timestamp
        if not new or node is None:
            return True
        try:
            doomed = self._admitting.admit(pod, node, self._nodes.pressures(_node_of(pod)))
        except PodRefused as refusal:
            self._event(pod, "Warning", refusal.reason, refusal.message)
            self._refused.add(uid)
            self._statuses.set(pod, refused_status(pod, refusal))
            return False
        for each, eviction, condition in doomed:
            self._end(each, eviction, condition)
        return True

    def _evict(self, pod: Pod, message: str, condition: PodCondition | None, annotations: Mapping[str, str]) -> None:
        """The node is short of something."""
        recorder = self._identities.recorder(_node_of(pod))
        recorder.event(pod, "Warning", EVICTED, message, dict(annotations))
        self._end(uid_of(pod), Eviction(EVICTED, message), condition)

    def _end(self, uid: str, eviction: Eviction, condition: PodCondition | None) -> None:
        simulated = self._simulated.get(uid)
        if simulated is not None:
            simulated.evict(eviction, condition)
            self._sync(uid)

    def _end_refused(self, pod: Pod) -> None:
        """A pod that the node has not taken has nothing to end; it may be deleted."""
        if pod.metadata and pod.metadata.deletion_timestamp:
            self._statuses.terminate(pod)

    def _missing(self, uid: str, pod: Pod) -> Missing:
        found = missing(pod, self._is_there)
        if found:
            namespace = (pod.metadata.namespace if pod.metadata else None) or ""
            for sort, name in found.objects:
                self._lacking.setdefault((sort, namespace, name), {})[uid] = None
        return found

    def _is_there(self, sort: str, namespace: str, name: str) -> bool:
        return self._objects[sort].named(name, namespace) is not None

    # -- other resources

    def _resize(self, uid: str, pod: Pod, before: Pod) -> None:
        simulated, node = self._simulated.get(uid), self._nodes.node(_node_of(pod))
        if simulated is None or node is None:
            return
        restarts = self._resizing.wanted(
            pod, before, simulated.observed, lambda wanted: self._admitting.fits(wanted, node)
        )
        simulated.restart(restarts)

    def _retry_resizes(self, node: str) -> None:
        """There may be room now for what pods would like to have."""
        for uid in [each for each in self._on.get(node, ()) if self._resizing.waits(each)]:
            pod = self._pods[uid]
            self._resize(uid, pod, self._resizing.allocated(pod))
            if not self._resizing.waits(uid):
                self._sync(uid)

    # -- what is asked of the parts

    def _active(self, node: str) -> list[Pod]:
        """The pods that have something of the node, with what they have been allocated."""
        return [
            self._resizing.allocated(self._pods[uid])
            for uid in self._on.get(node, ())
            if uid in self._simulated and not is_terminal(self.status_of(self._pods[uid]).phase)
        ]

    def _ranges(self, node: str) -> list[str]:
        found = self._nodes.node(node)
        if found is None or found.spec is None:
            return []
        return found.spec.pod_cidrs or ([found.spec.pod_cidr] if found.spec.pod_cidr else [])

    def _tell(self, pod: Pod, outcome: Outcome) -> None:
        recorder = self._identities.recorder(_node_of(pod)) if outcome.events else None
        for each in outcome.events:
            assert recorder is not None
            about = container_reference(pod, each.container) if each.container else pod
            recorder.event(about, each.type, each.reason, each.message)
        for image in outcome.images:
            self._nodes.image_used(_node_of(pod), image)

    def _event(self, pod: Pod, type: str, reason: str, message: str) -> None:
        self._identities.recorder(_node_of(pod)).event(pod, type, reason, message)

    def _may_be_running(self, uid: str) -> bool:
        simulated = self._simulated.get(uid)
        return simulated is not None and simulated.running

    def _collect(self) -> None:
        self._backoff.collect()
        self._collecting = self._clock.call_later(COLLECT_EVERY, self._collect)


def _asks_for_something_else(before: Pod, now: Pod) -> bool:
    """Whether a pod's change is one that its kubelet acts on: not its own status."""
    assert before.metadata is not None
    assert now.metadata is not None
    return (
        before.spec != now.spec
        or before.metadata.deletion_timestamp != now.metadata.deletion_timestamp
        or before.metadata.deletion_grace_period_seconds != now.metadata.deletion_grace_period_seconds
    )


def _resources_differ(before: Pod, now: Pod) -> bool:
    if before.spec is None or now.spec is None:
        return False
    pairs = zip(resizable(before.spec), resizable(now.spec), strict=False)
    return not same(before.spec.resources, now.spec.resources) or any(
        not same(old.resources, new.resources) for old, new in pairs
    )


def _node_of(pod: Pod | None) -> str:
    return (pod.spec.node_name if pod and pod.spec else None) or ""
