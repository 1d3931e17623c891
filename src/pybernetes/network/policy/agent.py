"""Keeps the policy tables of a node in step with the cluster.

Woken by: NetworkPolicies and ClusterNetworkPolicies, and once there is one, by pods, namespaces, this node's Node, and
by changes that others make to the tables. Writes: the tables, nothing in the cluster. Without any policy it follows
nothing else and has no tables.
Pods are kept with no more than policies ask about: a node knows those of the whole cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections.abc import Iterator
from typing import Any

from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Container, Namespace, Node, Pod, PodSpec, PodStatus
from pybernetes.api.networking.v1 import NetworkPolicy
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.event_handlers import Handler
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, key_of
from pybernetes.component.tasks import Tasks
from pybernetes.network.nftables.client import Nftables

from .cluster_facts import ClusterPolicy
from .cluster_policies import ClusterPolicies
from .facts import PROTOCOLS, PodFacts, Range, pod_facts, policy_facts
from .kernel import Kernel
from .state import PolicyState

CLUSTER_POLICIES_WITHIN = 10.0
"""Seconds for which the first tables wait for ClusterNetworkPolicies, which this user may not be allowed to read."""
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
REPAIR_INTERVAL = 1.0
"""Seconds between two repairs: a program that changes the tables all the time must not make us do the same."""
BRIDGED = ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables")
DNS_LABELS = {"k8s-app": "kube-dns"}
log = logging.getLogger(__name__)


def lean(obj: Kind) -> None:
    """Keeps of a pod what policies ask about."""
    if isinstance(obj, Pod) and obj.spec is not None:
        spec = obj.spec
        containers = [
            *(spec.containers or ()),
            *(c for c in spec.init_containers or () if c.restart_policy == "Always"),
        ]
        ports = [port for each in containers for port in each.ports or () if port.name]
        obj.spec = PodSpec(node_name=spec.node_name, host_network=spec.host_network)
        obj.spec.containers = [Container(ports=ports)] if ports else None
        if obj.status is not None:
            obj.status = PodStatus(phase=obj.status.phase, pod_ip=obj.status.pod_ip, pod_ips=obj.status.pod_ips)
        if obj.metadata is not None:
            obj.metadata.annotations = obj.metadata.owner_references = None


class PolicyAgent:
    """The policies of a node."""

    def __init__(
        self, informers: InformerFactory, kernel: Kernel, node_name: str, clock: Clock, cluster_dns: str = ""
    ) -> None:
        self._informers, self._kernel, self._clock = informers, kernel, clock
        self._node_name, self._cluster_dns = node_name, cluster_dns
        self._state = PolicyState()
        self.started = asyncio.Event()
        """Set when the tables are those of the cluster."""
        self._anew = True
        self._absent = False
        """There is no policy any longer, and so there are no tables."""
        self._timer: Timer | None = None
        self._next = self._next_repair = 0.0
        self._repairing = False
        """The next sync rebuilds the tables because another program changed them."""
        self._failures = 0
        self._ready = False
        self._first = asyncio.Event()
        """There is, or was, a policy."""

    async def run(self, cluster_policies: asyncio.Event | None = None) -> None:
        """Work until cancelled. The tables stay when it ends. `cluster_policies`: set when they were read once."""
        self._informers.start()
        policies = self._informers.informer(NetworkPolicy)
        await policies.wait_synced()
        if cluster_policies is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(cluster_policies.wait(), CLUSTER_POLICIES_WITHIN)
        handlers: list[Handler[Any]] = []

        def policy_changed(policy: NetworkPolicy) -> None:
            self._first.set()
            self._policy(key_of(policy))

        try:
            handlers.append(policies.add_handler(policy_changed, lambda _, new: policy_changed(new), policy_changed))
            if not len(policies) and not self._state:
                self._kernel.remove()
                self.started.set()
                await self._first.wait()
            await self._follow(handlers)
        finally:
            for handler in handlers:
                handler.remove()
            if self._timer:
                self._timer.cancel()

    async def _follow(self, handlers: list[Handler[Any]]) -> None:
        """Follows what policies are about, from when there is one."""
        self.started.clear()
        see_bridged_packets()
        if self._cluster_dns:
            self._state.put_pod(Key("kube-system", "kube-dns/"), _resolver(self._cluster_dns))
        pods, namespaces = self._informers.informer(Pod), self._informers.informer(Namespace)
        nodes = self._informers.informer(Node, field_selector=f"metadata.name={self._node_name}")
        for informer in (pods, namespaces, nodes):
            await informer.wait_synced()
        handlers.append(
            namespaces.add_handler(self._namespace, lambda _, new: self._namespace(new), self._namespace_gone)
        )
        handlers.append(pods.add_handler(self._pod, lambda _, new: self._pod(new), self._pod_gone))
        handlers.append(nodes.add_handler(self._node, lambda _, new: self._node(new)))
        self._ready = True
        for policy in self._informers.informer(NetworkPolicy).items():
            self._policy(key_of(policy))
        loop, watched = asyncio.get_running_loop(), self._kernel.watch()
        loop.add_reader(watched, self._disturbed)
        try:
            self._sync()
            await asyncio.Event().wait()
        finally:
            loop.remove_reader(watched)

    # Events

    def _policy(self, key: Key) -> None:
        if not self._ready:
            return
        policy = self._informers.informer(NetworkPolicy).get(key)
        try:
            facts = policy_facts(policy) if policy is not None else None
        except ValueError as error:
            log.error("networkpolicy %s: %s; what it said before stays in force", key, error)
            return
        self._state.put_policy(key, facts)
        self._queue()

    def put_cluster_policies(self, policies: list[ClusterPolicy]) -> None:
        """All ClusterNetworkPolicies as they are now."""
        self._state.put_cluster_policies(policies)
        if policies:
            self._first.set()
        self._queue()

    def _pod(self, pod: Pod) -> None:
        self._state.put_pod(key_of(pod), pod_facts(pod, self._node_name))
        self._queue()

    def _pod_gone(self, pod: Pod) -> None:
        self._state.put_pod(key_of(pod), None)
        self._queue()

    def _namespace(self, namespace: Namespace) -> None:
        metadata = namespace.metadata
        self._state.put_namespace(key_of(namespace).name, (metadata.labels if metadata else None) or {})
        self._queue()

    def _namespace_gone(self, namespace: Namespace) -> None:
        self._state.put_namespace(key_of(namespace).name, None)
        self._queue()

    def _node(self, node: Node) -> None:
        self._state.set_ranges(_ranges((node.spec.pod_cidrs if node.spec else None) or ()))
        self._queue()

    def _disturbed(self) -> None:
        if self._kernel.disturbed():
            log.warning("another program changed the tables of network policies, they are rebuilt")
            self._anew = self._repairing = True
            self._next = max(self._next, self._next_repair)
            self._queue()

    # Syncing

    def _queue(self) -> None:
        if self._timer is None and self._ready:
            self._timer = self._clock.call_later(max(0.0, self._next - self._clock.monotonic()), self._sync)

    def _sync(self) -> None:
        """Brings the kernel in step with what is known."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        began = self._clock.monotonic()
        try:
            if not self._state:
                self._remove()
            elif self._anew or self._absent:
                self._kernel.replace(self._state)
                self._absent = False
            else:
                self._kernel.update(self._state)
        except OSError as error:
            self._failures += 1
            wait = min(LAST_RETRY, FIRST_RETRY * 2 ** min(self._failures - 1, 10))
            log.error("cannot set the rules of network policies, trying again in %g s: %s", wait, error)
            self._anew, self._next = True, began + wait
            self._queue()
            return
        self._anew, self._failures = False, 0
        if self._repairing:
            self._next_repair, self._repairing = began + REPAIR_INTERVAL, False
        self.started.set()
        log.debug("rules of network policies set in %.1f ms", (self._clock.monotonic() - began) * 1000)

    def _remove(self) -> None:
        if not self._absent:
            self._kernel.remove()
            self._absent = True
        self._state.committed()


def _ranges(cidrs: list[str] | tuple[str, ...]) -> Iterator[Range]:
    for text in cidrs:
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            continue
        yield network.network_address.packed, network.broadcast_address.packed


def _resolver(address: str) -> PodFacts:
    """Cluster DNS, which has no pods here, as policies know it elsewhere: pods of kube-dns in kube-system."""
    ports = tuple((name, PROTOCOLS[kind], 53) for name, kind in (("dns", "UDP"), ("dns-tcp", "TCP")))
    return PodFacts("kube-system", DNS_LABELS, (ipaddress.ip_address(address).packed,), ports)


def see_bridged_packets() -> None:
    """Lets rules see packets between two pods of one bridge."""
    for name in BRIDGED:
        path = f"/proc/sys/net/bridge/{name}"
        try:
            with open(path) as file:
                if file.read().strip() == "1":
                    continue
            with open(path, "w") as file:
                file.write("1")
        except OSError as error:
            log.warning("cannot set %s: policies between pods of one node may have no effect: %s", path, error)


async def serve(client: Client, node_name: str, clock: Clock, cluster_dns: str = "") -> None:
    """The policies of this node, until cancelled."""
    informers, tasks = InformerFactory(client, transform=lean), Tasks("network-policy")
    try:
        with Nftables() as nftables:
            agent = PolicyAgent(informers, Kernel(nftables), node_name, clock, cluster_dns)
            of_cluster = ClusterPolicies(client, informers, agent.put_cluster_policies)
            tasks.start("cluster network policies", of_cluster.run)
            await agent.run(of_cluster.synced)
    finally:
        await tasks.stop()
        await informers.stop()
