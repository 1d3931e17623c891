"""`./pyb bench pods`: how long a pod takes from its creation until it is Ready, on a real node with real containers.

A cluster is started with `pyb up` on an empty folder. Pods are made and watched over the API as any client would, one
at a time and many at once, with each OCI runtime; each ends on TERM, and its deletion is timed until it is gone. At the
end the cluster is stopped. Upstream's figures (kubelet v1.36.4, containerd 1.6, one machine) stand beside ours.

Stages are what the watch shows: a status that is overtaken by the next one is not seen. The processor's time of a pod
is that of all pods made at once; `machine` is everything, this benchmark and the pods' own processes as well.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from _cluster import Cluster, cluster
from _load import Report
from _processes import by_role, cpu_seconds, idle_cpu, machine_seconds, memory_mb

from pybernetes.api import errors
from pybernetes.api.core.v1 import Container, Node, Pod, PodSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.node.v1 import RuntimeClass
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.http import ConnectionFailed

NAMESPACE = "default"
NAME = "bench-pods"
PATIENCE = 120.0
SETTLING = 10.0
"""Seconds after the last pod until the cluster counts as idle: what pods have left is being removed."""
COMPONENTS = ("apiserver", "containerd", "controller-manager", "kubelet", "launcher", "runtime", "scheduler")
MEMORY = "target 210"
MEMORY_WITH_30_PODS = "target 286 with 30"
IDLE = "target 15"
TARGETS = {
    "runc": {"p50": 0.300, "many": 2.5, "first": 2.5, "delete": 0.3},
    "crun": {"p50": 0.220, "many": 2.5, "first": 2.5, "delete": 0.3},
    "embedded": {"p50": 0.100, "p99": 0.250, "many": 1.5, "first": 2.0, "delete": 0.3},
}
STAGES = {"PodScheduled": "scheduled", "PodReadyToStartContainers": "sandbox", "Ready": "Ready"}
"""Conditions by the stage that a pod has reached with them."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench pods", description=__doc__)
    parser.add_argument("--runtime", default="containerd", help="of `pyb up` (default: %(default)s)")
    parser.add_argument("--handlers", default="runc,crun", help="OCI runtimes of containerd (default: %(default)s)")
    parser.add_argument("--one-at-a-time", type=int, default=50, metavar="N", help="default: %(default)s")
    parser.add_argument("--at-once", type=int, default=30, metavar="N", help="default: %(default)s")
    parser.add_argument("--image", default="busybox", help="has sh and sleep (default: %(default)s)")
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="default: %(default)s")
    parser.add_argument("--keep-logs", metavar="DIR", help="copy the cluster's logs there")
    options = parser.parse_args(argv)
    report = Report("pods")
    report.rows["runtime"] = options.runtime
    flags = ["--nodes", "1", "--runtime", options.runtime]
    with (
        tempfile.TemporaryDirectory(prefix="pyb-bench-") as folder,  # short, because the paths of sockets are
        cluster(Path(folder), NAME, flags, report, options.keep_logs) as made,
    ):
        supervisor = made.supervisor
        asyncio.run(measure(report, made, options))
        tell_memory(report, supervisor)
        time.sleep(SETTLING)
        idle = idle_cpu(supervisor, options.idle_seconds)
        for name, share in sorted(idle.items(), key=lambda item: -item[1]):
            if share:
                report.row(f"idle CPU: {name}", 1000 * share, "mCPU")
        report.row("idle CPU of the cluster", 1000 * sum(idle.values()), "mCPU", IDLE)
    report.save()
    return 0


async def measure(report: Report, made: Cluster, options: Any) -> None:
    """All that is measured with pods."""
    handlers = options.handlers.split(",") if options.runtime == "containerd" else [options.runtime]
    async with Client(config.load(made.kubeconfig), program="pyb-bench") as client, watching(client) as pods:
        await create(client, pod("first", options.image))
        await pods.ready("first")
        took = time.perf_counter() - made.began
        tell(report, "first pod Ready after `up` on an empty folder", took, "first", handlers[0])
        await asyncio.to_thread(tell_fresh_memory, report, made.supervisor)
        await delete(client, pods, "first")
        nodes = await client.list(Node)
        report.rows["containerRuntimeVersion"] = nodes.items[0].status.node_info.container_runtime_version
        for handler in handlers:
            runtime_class = handler if options.runtime == "containerd" else ""
            if runtime_class:
                await ensure_runtime_class(client, handler)
            await one_at_a_time(report, client, pods, options, handler, runtime_class)
            await at_once(report, client, pods, options, handler, runtime_class, made.supervisor)


async def one_at_a_time(
    report: Report, client: Client, pods: Pods, options: Any, handler: str, runtime_class: str
) -> None:
    """How long a pod takes that has the node to itself."""
    made, gone, stages = [], [], []
    for number in range(options.one_at_a_time):
        name = f"{handler}-{number}"
        began = time.perf_counter()
        made.append(await timed(create_and_wait(client, pods, pod(name, options.image, runtime_class))))
        stages.append({stage: at - began for stage, at in pods.stages(name).items()})
        gone.append(await timed(delete(client, pods, name)))
    tell_all(report, f"{handler}: create -> Ready", made, "p50", handler)
    for stage in STAGES.values():
        reached = [each[stage] for each in stages if stage in each]
        if reached:
            title = f"{handler}: create -> {stage} seen, p50 of {len(reached)}"
            report.row(title, 1000 * statistics.median(reached), "ms")
    tell_all(report, f"{handler}: graceful delete", gone, "delete", handler)


async def at_once(
    report: Report, client: Client, pods: Pods, options: Any, handler: str, runtime_class: str, supervisor: int
) -> None:
    """How long many pods take together, and which process had the processors for how long."""
    names = [f"{handler}-many-{number}" for number in range(options.at_once)]
    roles = {name: pids for name, pids in by_role(supervisor).items() if name in COMPONENTS}
    spent, machine = {name: cpu_seconds(pids) for name, pids in roles.items()}, machine_seconds()
    created = (create_and_wait(client, pods, pod(name, options.image, runtime_class)) for name in names)
    many = await timed(asyncio.gather(*created))
    machine = machine_seconds() - machine
    tell(report, f"{handler}: {len(names)} pods at once, all Ready", many, "many", handler)
    for name, pids in roles.items():
        used = cpu_seconds(pids) - spent[name]
        report.row(f"{handler}: CPU of {name} for a pod", 1000 * used / len(names), "ms")
    report.row(f"{handler}: CPU of the machine for a pod", 1000 * machine / len(names), "ms")
    size = sum(memory_mb(pid) for pids in by_role(supervisor).values() for pid in pids)
    report.row(f"{handler}: memory of the cluster with {len(names)} pods (PSS)", size, "MiB", MEMORY_WITH_30_PODS)
    together = await timed(asyncio.gather(*(delete(client, pods, name) for name in names)))
    report.row(f"{handler}: {len(names)} pods deleted at once", together, "s")


def pod(name: str, image: str, handler: str = "") -> Pod:
    """A pod that runs until it gets TERM, and ends at once then."""
    command = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"]
    return Pod(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE),
        spec=PodSpec(
            containers=[Container(name="main", image=image, image_pull_policy="IfNotPresent", command=command)],
            runtime_class_name=handler or None,
        ),
    )


async def ensure_runtime_class(client: Client, handler: str) -> None:
    with contextlib.suppress(errors.AlreadyExists):
        await client.create(RuntimeClass(metadata=ObjectMeta(name=handler), handler=handler))


async def create(client: Client, obj: Pod) -> None:
    """Create it; right after the start its ServiceAccount may not be there yet."""
    deadline = time.perf_counter() + PATIENCE
    while True:
        try:
            await client.create(obj)
            return
        except (errors.Forbidden, ConnectionFailed):
            if time.perf_counter() > deadline:
                raise
            await asyncio.sleep(0.01)


async def create_and_wait(client: Client, pods: Pods, obj: Pod) -> None:
    await create(client, obj)
    await pods.ready(obj.metadata.name)


async def delete(client: Client, pods: Pods, name: str) -> None:
    await client.delete(Pod, name, NAMESPACE)
    await pods.gone(name)


async def timed(work: Any) -> float:
    began = time.perf_counter()
    await asyncio.wait_for(work, PATIENCE)
    return time.perf_counter() - began


class Pods:
    """What a watch has told of each pod."""

    def __init__(self) -> None:
        self._seen: dict[str, Pod] = {}
        self._stages: dict[str, dict[str, float]] = {}
        """When each was seen to reach a stage."""
        self._changed = asyncio.Condition()

    async def take(self, kind: str, obj: Pod) -> None:
        async with self._changed:
            if kind == "DELETED":
                self._seen.pop(obj.metadata.name, None)
            else:
                self._seen[obj.metadata.name] = obj
                reached = self._stages.setdefault(obj.metadata.name, {})
                for condition, stage in STAGES.items():
                    if has(obj, condition):
                        reached.setdefault(stage, time.perf_counter())
            self._changed.notify_all()

    def stages(self, name: str) -> dict[str, float]:
        return self._stages[name]

    async def ready(self, name: str) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: has(self._seen.get(name), "Ready"))

    async def gone(self, name: str) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: name not in self._seen)


def has(obj: Pod | None, condition: str) -> bool:
    conditions = (obj.status.conditions if obj and obj.status else None) or []
    return any(each.type == condition and each.status == "True" for each in conditions)


@contextlib.asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Pods]:
    """The pods of the namespace, kept up to date."""
    pods = Pods()
    listed = await client.list(Pod, NAMESPACE)

    async def follow() -> None:
        version = listed.metadata.resource_version
        async with client.watch(Pod, NAMESPACE, resource_version=version) as events:
            async for event in events:
                await pods.take(event.type, event.object)

    task = asyncio.create_task(follow())
    try:
        yield pods
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def tell(report: Report, title: str, seconds: float, key: str, handler: str) -> None:
    target = TARGETS.get(handler, {}).get(key)
    report.row(title, seconds, "s", f"target {target}" if target else "")


def tell_all(report: Report, title: str, times: list[float], key: str, handler: str) -> None:
    tell(report, f"{title}, p50", statistics.median(times), key, handler)
    tell(report, f"{title}, p99 of {len(times)}", sorted(times)[int(0.99 * len(times))], "p99", handler)


def tell_memory(report: Report, supervisor: int) -> None:
    """By role, without pods."""
    sizes = {name: sum(map(memory_mb, pids)) for name, pids in by_role(supervisor).items()}
    for name, megabytes in sorted(sizes.items(), key=lambda item: -item[1]):
        report.row(f"memory at the end: {name}", megabytes, "MiB")
    report.row("memory at the end, without pods (PSS)", sum(sizes.values()), "MiB")


def tell_fresh_memory(report: Report, supervisor: int) -> None:
    """A cluster that has just been started and has nothing to do."""
    time.sleep(SETTLING)
    size = sum(memory_mb(pid) for pids in by_role(supervisor).values() for pid in pids)
    report.row("memory of the fresh cluster, with one pod (PSS)", size, "MiB", MEMORY)
