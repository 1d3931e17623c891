"""`./pyb bench simulated`: a big cluster on one machine: 1,000 simulated nodes with 10,000 running pods.

The cluster is started with `pyb up --simulated-nodes` on an empty folder and used over the API as any client would use
it. Deployments fill it; then one more of 1,000 pods is made and rolled out anew while a watch sees whether every node
keeps renewing its Lease and stays Ready. Last comes what all of it costs: memory of all processes, and CPU while no
client asks for anything.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from _cluster import Cluster, cluster
from _load import Report
from _processes import by_role, cpu_seconds, idle_cpu, memory_mb

from pybernetes.api.apps.v1 import Deployment, DeploymentSpec
from pybernetes.api.coordination.v1 import Lease
from pybernetes.api.core.v1 import Container, Node, Pod, PodSpec, PodTemplateSpec, ResourceRequirements
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.api.times import parse_time
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory

NAME = "bench-simulated"
NAMESPACE = "default"
LEASES = "kube-node-lease"
EACH = 1000
"""Pods of a Deployment."""
LEASE_SECONDS = 40
PATIENCE = 300.0
SETTLING = 5.0
"""Seconds in which hardly an event is written when the cluster counts as idle."""
TARGET = {"memory": 2000.0, "rollout": 15.0}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench simulated", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--pods", type=int, default=10_000, help="that run all the time (default: %(default)s)")
    parser.add_argument("--rollout", type=int, default=1000, metavar="PODS", help="default: %(default)s")
    parser.add_argument("--idle-seconds", type=float, default=20.0, help="default: %(default)s")
    parser.add_argument("--store", default="sqlite", choices=("sqlite", "memory"))
    parser.add_argument("--keep-logs", metavar="DIR", help="copy the cluster's logs there")
    options = parser.parse_args(argv)
    report = Report("simulated")
    report.rows |= {"nodes": options.nodes, "pods": options.pods}
    with tempfile.TemporaryDirectory(prefix="pyb-bench-") as name:
        folder = Path(name)
        flags = ["--store", options.store, "--simulated-nodes", str(options.nodes)]
        with cluster(folder, NAME, flags, report, options.keep_logs) as made:
            asyncio.run(Bench(report, made, options).run())
    report.save()
    return 0


class Bench:
    """The phases, and what is seen of the nodes meanwhile."""

    def __init__(self, report: Report, cluster: Cluster, options: Any) -> None:
        self.report, self.cluster, self.options = report, cluster, options
        self.supervisor = cluster.supervisor
        self.oldest = 0.0
        """Seconds that the slowest Lease was not renewed."""
        self.not_ready: set[str] = set()
        self.missing: set[str] = set()

    async def run(self) -> None:
        async with Client(config.load(self.cluster.kubeconfig), program="pyb-bench") as client:
            self.client = client
            factory = InformerFactory(client)
            nodes, leases = factory.informer(Node), factory.informer(Lease)
            self.deployments = factory.informer(Deployment)
            nodes.add_handler(self.see_node, lambda _, new: self.see_node(new), lambda _: None)
            leases.add_handler(lambda _: None, self.see_lease, lambda _: None)
            factory.start()
            await factory.wait_synced()
            began = time.perf_counter()
            await self.until(lambda: all(is_ready(each) for each in nodes.items()), "all nodes are Ready")
            self.report.row("all nodes are Ready after further", time.perf_counter() - began, "s")
            self.not_ready.clear()
            await self.fill()
            await self.roll_out()
            await self.check_pods()
            for each in leases.items():
                self.age(each, time.time())
            self.tell_nodes(len(nodes.items()))
            await factory.stop()
            self.tell_memory()
            await self.settle()
        idle = idle_cpu(self.supervisor, self.options.idle_seconds)
        for name, share in sorted(idle.items(), key=lambda item: -item[1]):
            self.report.row(f"idle CPU: {name}", 1000 * share, "mCPU")
        self.report.row("idle CPU of the cluster", 1000 * sum(idle.values()), "mCPU")

    # -- phases

    async def fill(self) -> None:
        """As many pods as shall run all the time."""
        sizes = [min(EACH, self.options.pods - start) for start in range(0, self.options.pods, EACH)]
        began, spent = time.perf_counter(), self.spent()
        for number, size in enumerate(sizes):
            await self.create(f"base-{number}", size)
        await self.until(lambda: all(self.done(f"base-{number}") for number in range(len(sizes))), "all pods run")
        seconds = time.perf_counter() - began
        pods = self.options.pods
        self.report.row(f"{pods:,} pods created and Ready", seconds, "s", f"{pods / seconds:,.0f} pods/s")
        self.tell_cpu("a pod of these", spent, pods)

    async def roll_out(self) -> None:
        """One more Deployment: made, then given another image."""
        size = self.options.rollout
        began, spent = time.perf_counter(), self.spent()
        await self.create("web", size)
        await self.until(lambda: self.done("web"), "the Deployment runs")
        self.tell("rollout", f"Deployment of {size:,} pods, first rollout", time.perf_counter() - began, "s")
        self.tell_cpu("a pod of it", spent, size)
        began, spent = time.perf_counter(), self.spent()
        change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}}
        changed = await self.client.patch(Deployment, "web", change, NAMESPACE, type="strategic")
        generation = changed.metadata.generation
        await self.until(lambda: self.done("web", generation), "the Deployment is rolled out")
        self.tell("rollout", f"Deployment of {size:,} pods, another image", time.perf_counter() - began, "s")
        self.tell_cpu("a pod replaced", spent, size)

    async def create(self, name: str, replicas: int) -> None:
        labels = {"app": name}
        resources = ResourceRequirements(requests={"cpu": "100m", "memory": "128Mi"})
        container = Container(name="main", image=f"{name}:1", resources=resources)
        template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container]))
        spec = DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=labels), template=template)
        await self.client.create(Deployment(metadata=ObjectMeta(name=name, namespace=NAMESPACE), spec=spec))

    def done(self, name: str, generation: int = 1) -> bool:
        """What `kubectl rollout status` waits for."""
        found = self.deployments.named(name, NAMESPACE)
        if found is None or found.status is None or found.spec is None or found.metadata is None:
            return False
        status, wanted = found.status, found.spec.replicas
        return (status.observed_generation or 0) >= max(
            generation, found.metadata.generation
        ) and status.updated_replicas == status.available_replicas == status.replicas == wanted

    async def until(self, condition: Any, what: str) -> None:
        deadline = time.perf_counter() + PATIENCE
        while not condition():
            if time.perf_counter() > deadline:
                raise SystemExit(f"not after {PATIENCE:.0f} s: {what}")
            await asyncio.sleep(0.05)

    async def settle(self) -> None:
        """Until the last events are written, which wait for everything else."""
        began, before = time.perf_counter(), await self.events()
        while time.perf_counter() - began < PATIENCE:
            await asyncio.sleep(SETTLING)
            now = await self.events()
            if now - before < 10 * SETTLING:
                break
            before = now
        self.report.row("events are written after further", time.perf_counter() - began - SETTLING, "s")

    async def events(self) -> float:
        """How many were written."""
        answer = await self.client.transport.request("GET", "/metrics")
        lines = [line for line in answer.body.decode().splitlines() if line.startswith("apiserver_request_total{")]
        return sum(float(line.split()[-1]) for line in lines if 'resource="events"' in line)

    async def check_pods(self) -> None:
        """That there are as many running pods as there should be, each with an address of its own."""
        wanted, addresses, running = self.options.pods + self.options.rollout, set(), 0
        async for page in self.client.pages(Pod, NAMESPACE):
            for each in page.items:
                if each.metadata.deletion_timestamp is None and each.status.phase == "Running":
                    running += 1
                    addresses.add(each.status.pod_ip)
        if (running, len(addresses)) != (wanted, wanted):
            raise SystemExit(f"{running} pods run with {len(addresses)} addresses, and not {wanted}")

    # -- nodes

    def see_node(self, node: Node) -> None:
        if not is_ready(node):
            self.not_ready.add(node.metadata.name)

    def see_lease(self, old: Lease, new: Lease) -> None:
        if new.metadata.namespace == LEASES and new.spec.renew_time:
            self.age(old, parse_time(new.spec.renew_time))

    def age(self, lease: Lease, now: float) -> None:
        if lease.metadata.namespace == LEASES and lease.spec.renew_time:
            age = now - parse_time(lease.spec.renew_time)
            self.oldest = max(self.oldest, age)
            if age > LEASE_SECONDS:
                self.missing.add(lease.metadata.name)

    def tell_nodes(self, count: int) -> None:
        self.report.row("nodes", count, "")
        self.report.row("longest time without a heartbeat", self.oldest, "s", f"a Lease lasts {LEASE_SECONDS}")
        self.report.row("nodes whose Lease ran out meanwhile", len(self.missing), "", "target 0")
        self.report.row("nodes that were NotReady meanwhile", len(self.not_ready), "", "target 0")

    # -- costs

    def spent(self) -> dict[str, float]:
        return {name: cpu_seconds(pids) for name, pids in by_role(self.supervisor).items()}

    def tell_cpu(self, what: str, before: dict[str, float], pods: int) -> None:
        for name, seconds in self.spent().items():
            used = seconds - before.get(name, 0.0)
            if used > 0.05:
                self.report.row(f"  CPU for {what}: {name}", 1000 * used / pods, "ms")

    def tell_memory(self) -> None:
        total = 0.0
        for name, pids in sorted(by_role(self.supervisor).items()):
            used = sum(memory_mb(pid) for pid in pids)
            total += used
            self.report.row(f"memory (PSS): {name}", used, "MiB")
        self.tell("memory", "memory of the cluster", total, "MiB")

    def tell(self, target: str, title: str, value: float, unit: str) -> None:
        self.report.row(title, value, unit, f"target {TARGET[target]:,.0f}")


def is_ready(node: Node) -> bool:
    conditions = (node.status.conditions if node.status else None) or []
    return any(each.type == "Ready" and each.status == "True" for each in conditions)
