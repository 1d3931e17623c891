"""All pods of all simulated nodes: watched together, pretended one by one, reported as a kubelet reports them."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Sequence
from typing import Final

from pybernetes.api.core.v1 import Node, Pod, PodStatus
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.events import EventRecorder
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, copy

from ..backoff import CRASH_LOOP_BASE, CRASH_LOOP_LONGEST, BackOff
from ..events import container_reference
from ..status_manager import StatusManager
from .behaviour import Rule, unknown
from .pod import Outcome, SimulatedPod

COLLECT_EVERY: Final = 60.0
log = logging.getLogger(__name__)


class Addresses:
    """Addresses of a node's pods: the lowest free one of its range, as long as the pod lives."""

    def __init__(self) -> None:
        self._used: dict[str, dict[str, str]] = {}

    def take(self, node: str, ranges: Sequence[str], uid: str) -> list[str]:
        """One address of each range; none while the node has no range."""
        found = []
        for each in ranges:
            used = self._used.setdefault(f"{node} {each}", {})
            hosts = ipaddress.ip_network(each).hosts()
            next(hosts, None)  # the gateway's
            taken = set(used.values())
            free = next((text for host in hosts if (text := str(host)) not in taken), None)
            if free is not None:
                used[uid] = free
                found.append(free)
        return found

    def give_back(self, node: str, ranges: Sequence[str], uid: str) -> None:
        """The pod is gone."""
        for each in ranges:
            self._used.get(f"{node} {each}", {}).pop(uid, None)

    def keep(self, node: str, ranges: Sequence[str], uid: str, addresses: Sequence[str]) -> None:
        """The pod has these already."""
        for each in ranges:
            for address in addresses:
                if ipaddress.ip_address(address) in ipaddress.ip_network(each):
                    self._used.setdefault(f"{node} {each}", {})[uid] = address


class Agent:
    """Pretends the pods of the nodes that `host_ips` has addresses for; None = another kubelet's node."""

    def __init__(
        self,
        client: Client,
        informers: InformerFactory,
        clock: Clock,
        recorder: EventRecorder,
        host_ips: Callable[[str], Sequence[str] | None],
        rules: Sequence[Rule] = (),
    ) -> None:
        self.rules = rules
        self._clock = clock
        self._recorder = recorder
        self._host_ips = host_ips
        self._addresses = Addresses()
        self._backoff = BackOff(clock, CRASH_LOOP_BASE, CRASH_LOOP_LONGEST)
        self._pods: dict[str, Pod] = {}
        """By uid, as the server showed them last."""
        self._simulated: dict[str, SimulatedPod] = {}
        self._timers: dict[str, Timer] = {}
        self._nodes = informers.informer(Node)
        self._statuses = StatusManager(client, clock, self._pods.get, self._may_be_running)
        self._waiting: dict[str, dict[str, None]] = {}
        """Uids of pods that wait for their node to get a range of addresses, by node."""
        self._nodes.add_handler(self._node_changed, lambda _, new: self._node_changed(new), lambda _: None)
        informers.informer(Pod).add_handler(self._seen, lambda _, new: self._seen(new), self._gone)
        self._collecting = clock.call_later(COLLECT_EVERY, self._collect)

    def pods_on(self, node: str) -> list[tuple[Pod, SimulatedPod]]:
        """The pods of a node, with what they pretend."""
        return [
            (pod, self._simulated[uid])
            for uid, pod in self._pods.items()
            if pod.spec and pod.spec.node_name == node and uid in self._simulated
        ]

    async def stop(self) -> None:
        """Report nothing more."""
        self._collecting.cancel()
        for timer in self._timers.values():
            timer.cancel()
        await self._statuses.stop()

    # -- what the server shows

    def _seen(self, pod: Pod) -> None:
        node = (pod.spec.node_name if pod.spec else None) or ""
        if not node or self._host_ips(node) is None or pod.metadata is None:
            return
        uid = pod.metadata.uid or ""
        before = self._pods.get(uid)
        self._pods[uid] = pod
        if before is None or _asks_for_something_else(before, pod):
            self._sync(uid)
        self._statuses.pod_changed(uid)

    def _gone(self, pod: Pod) -> None:
        uid = (pod.metadata.uid if pod.metadata else None) or ""
        if self._pods.pop(uid, None) is None:
            return
        self._simulated.pop(uid, None)
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        node = (pod.spec.node_name if pod.spec else None) or ""
        self._addresses.give_back(node, self._ranges(node), uid)
        self._waiting.get(node, {}).pop(uid, None)
        self._statuses.remove(uid)

    def _node_changed(self, node: Node) -> None:
        name = (node.metadata.name if node.metadata else None) or ""
        if self._ranges(name):
            for uid in self._waiting.pop(name, {}):
                self._sync(uid)

    # -- pretending

    def _sync(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        pod = self._pods.get(uid)
        if pod is None:
            return
        simulated = self._simulated.get(uid) or self._begin(uid, pod)
        if simulated is None:
            return
        old = self._statuses.get(uid) or pod.status or PodStatus()
        outcome = simulated.sync(pod, copy(old), self._clock.now())
        self._tell(pod, outcome)
        self._statuses.set(pod, outcome.status)
        if outcome.ended:
            self._statuses.terminate(pod)
        elif outcome.again_at is not None:
            seconds = max(0.0, outcome.again_at - self._clock.now())
            self._timers[uid] = self._clock.call_later(seconds, self._sync, uid)

    def _begin(self, uid: str, pod: Pod) -> SimulatedPod | None:
        assert pod.spec is not None
        node = pod.spec.node_name or ""
        known = [each.ip or "" for each in (pod.status and pod.status.pod_ips) or ()]
        ips: Sequence[str] = known
        if not pod.spec.host_network:
            ranges = self._ranges(node)
            self._addresses.keep(node, ranges, uid, known)
            ips = known or self._addresses.take(node, ranges, uid)
            if not ips and not (pod.metadata and pod.metadata.deletion_timestamp):
                self._waiting.setdefault(node, {})[uid] = None
                return None
        made = self._simulated[uid] = SimulatedPod(pod, self.rules, self._backoff, ips, self._host_ips(node) or ())
        for problem in unknown(pod):
            self._recorder.event(pod, "Warning", "BadSimulation", problem)
        return made

    def _ranges(self, node: str) -> list[str]:
        found = self._nodes.get(Key("", node))
        if found is None or found.spec is None:
            return []
        return found.spec.pod_cidrs or ([found.spec.pod_cidr] if found.spec.pod_cidr else [])

    def _tell(self, pod: Pod, outcome: Outcome) -> None:
        for each in outcome.told:
            about = container_reference(pod, each.container) if each.container else pod
            self._recorder.event(about, each.type, each.reason, each.message)

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
