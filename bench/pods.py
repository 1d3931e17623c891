"""`./pyb bench pods`: how long a pod takes from its creation until it is Ready, on a real node with real containers.

A cluster is started with `pyb up` on an empty folder. Pods are made and watched over the API as any client would, one
at a time and many at once, with each OCI runtime; each ends on TERM, and its deletion is timed until it is gone. At the
end the cluster is stopped. Upstream's figures (kubelet v1.36.4, containerd 1.6, one machine) stand beside ours.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from _load import Report
from _processes import by_role, cpu_seconds, idle_cpu, memory_mb

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
COMPONENTS = ("apiserver", "containerd", "controller-manager", "kubelet", "scheduler")
UPSTREAM = {"runc": 0.525, "crun": 0.497, "many": 4.9, "first": 9.9, "delete": 1.06}
TARGET = {"runc": 0.300, "crun": 0.220, "many": 2.5, "first": 2.5, "delete": 0.3}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench pods", description=__doc__)
    parser.add_argument("--runtime", default="containerd", help="of `pyb up` (default: %(default)s)")
    parser.add_argument("--handlers", default="runc,crun", help="OCI runtimes to measure (default: %(default)s)")
    parser.add_argument("--one-at-a-time", type=int, default=15, metavar="N", help="default: %(default)s")
    parser.add_argument("--at-once", type=int, default=30, metavar="N", help="default: %(default)s")
    parser.add_argument("--image", default="busybox", help="has sh and sleep (default: %(default)s)")
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="default: %(default)s")
    parser.add_argument("--keep-logs", metavar="DIR", help="copy the cluster's logs there")
    options = parser.parse_args(argv)
    report = Report("pods")
    report.rows["runtime"] = options.runtime
    # Short, because the paths of sockets are.
    with tempfile.TemporaryDirectory(prefix="pyb-bench-") as folder, cluster(Path(folder), options, report) as started:
        supervisor = int((Path(folder) / "data/run/supervisor.pid").read_text().split()[0])
        asyncio.run(measure(report, Path(folder) / "data", options, started, supervisor))
        tell_memory(report, supervisor)
        time.sleep(SETTLING)
        idle = idle_cpu(supervisor, options.idle_seconds)
        for name, share in sorted(idle.items(), key=lambda item: -item[1]):
            if share:
                report.row(f"idle CPU: {name}", 1000 * share, "mCPU")
        report.row("idle CPU of the cluster", 1000 * sum(idle.values()), "mCPU")
    report.save()
    return 0


@contextlib.contextmanager
def cluster(folder: Path, options: Any, report: Report) -> Iterator[float]:
    """A cluster of its own; yields when `up` was typed."""
    environment = {**os.environ, "KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)}
    flags = ["--name", NAME, "--data-dir", str(folder / "data")]
    command = [sys.executable, "-m", "pybernetes"]
    up = ["up", *flags, "--port", "0", "--nodes", "1", "--runtime", options.runtime]
    began = time.perf_counter()
    try:
        done = subprocess.run([*command, *up], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"pyb up failed:\n{done.stdout}{done.stderr}")
        report.row("up, on an empty folder", time.perf_counter() - began, "s")
        yield began
    finally:
        if options.keep_logs:
            subprocess.run(["cp", "-r", str(folder / "data/logs"), options.keep_logs])
        began = time.perf_counter()
        subprocess.run([*command, "down", *flags], env=environment, capture_output=True)
        report.row("down", time.perf_counter() - began, "s")


async def measure(report: Report, data: Path, options: Any, began: float, supervisor: int) -> None:
    """All that is measured with pods."""
    async with Client(config.load(str(data / "kubeconfig")), program="pyb-bench") as client, watching(client) as pods:
        await create(client, pod("first", options.image))
        await pods.ready("first")
        tell(report, "first pod Ready after `up` on an empty folder", time.perf_counter() - began, "first")
        await delete(client, pods, "first")
        nodes = await client.list(Node)
        report.rows["containerRuntimeVersion"] = nodes.items[0].status.node_info.container_runtime_version
        for handler in options.handlers.split(","):
            await ensure_runtime_class(client, handler)
            made, gone = [], []
            for number in range(options.one_at_a_time):
                name = f"{handler}-{number}"
                made.append(await timed(create_and_wait(client, pods, pod(name, options.image, handler))))
                gone.append(await timed(delete(client, pods, name)))
            tell_all(report, f"{handler}: create -> Ready", made, handler)
            tell_all(report, f"{handler}: graceful delete", gone, "delete")
            names = [f"{handler}-many-{number}" for number in range(options.at_once)]
            roles = {name: pids for name, pids in by_role(supervisor).items() if name in COMPONENTS}
            spent = {name: cpu_seconds(pids) for name, pids in roles.items()}
            many = await timed(
                asyncio.gather(*(create_and_wait(client, pods, pod(name, options.image, handler)) for name in names))
            )
            tell(report, f"{handler}: {len(names)} pods at once, all Ready", many, "many")
            for name, pids in roles.items():
                report.row(
                    f"{handler}: CPU of {name} for a pod", 1000 * (cpu_seconds(pids) - spent[name]) / len(names), "ms"
                )
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
        self._changed = asyncio.Condition()

    async def take(self, kind: str, obj: Pod) -> None:
        async with self._changed:
            if kind == "DELETED":
                self._seen.pop(obj.metadata.name, None)
            else:
                self._seen[obj.metadata.name] = obj
            self._changed.notify_all()

    async def ready(self, name: str) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: is_ready(self._seen.get(name)))

    async def gone(self, name: str) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: name not in self._seen)


def is_ready(obj: Pod | None) -> bool:
    conditions = (obj.status.conditions if obj and obj.status else None) or []
    return any(each.type == "Ready" and each.status == "True" for each in conditions)


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


def tell(report: Report, title: str, seconds: float, key: str) -> None:
    report.row(title, seconds, "s", f"target {TARGET[key]}, upstream {UPSTREAM[key]}")


def tell_all(report: Report, title: str, times: list[float], key: str) -> None:
    tell(report, f"{title}, p50", statistics.median(times), key)
    report.row(f"{title}, p90", sorted(times)[int(0.9 * (len(times) - 1))], "s")
    report.row(f"{title}, max", max(times), "s")


def tell_memory(report: Report, supervisor: int) -> None:
    """By role, without pods."""
    sizes = {name: sum(map(memory_mb, pids)) for name, pids in by_role(supervisor).items()}
    for name, megabytes in sorted(sizes.items(), key=lambda item: -item[1]):
        report.row(f"memory: {name}", megabytes, "MB")
    report.row("memory of the cluster without pods (PSS)", sum(sizes.values()), "MB")
