"""`./pyb bench controllers`: how fast Deployments become pods, and at what price.

100 Deployments of 10 pods are created, rolled, scaled and deleted; pods are played by a small kubelet in this process.
For each phase: the time until everything is as asked, and API requests for each pod.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _load import TOKEN, Report, Server, resident_mib

from pybernetes.api.apps.v1 import Deployment, DeploymentSpec, ReplicaSet
from pybernetes.api.core.v1 import Container, Pod, PodSpec, PodTemplateSpec
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}", insecure-skip-tls-verify: true}}}}]
users: [{{name: u, user: {{token: "{token}"}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench controllers")
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=10)
    options = parser.parse_args(argv)
    report = Report("controllers")
    with tempfile.TemporaryDirectory(prefix="pyb-bench-") as name:
        folder = Path(name)
        server = Server(folder, f"sqlite://{folder}/store.db", "--max-mutating-requests-inflight=0")
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=server.url, token=TOKEN))
        command = [sys.executable, "-m", "pybernetes", "controller-manager", f"--kubeconfig={kubeconfig}"]
        manager = subprocess.Popen([*command, "--leader-elect=false", "--secure-port=0"])
        try:
            asyncio.run(Bench(report, server, kubeconfig, manager.pid, options).run())
        finally:
            manager.terminate()
            manager.wait(30)
            server.stop()
    report.save()
    return 0


class Bench:
    """The phases, with the state of the cluster as the informers see it."""

    def __init__(
        self, report: Report, server: Server, kubeconfig: Path, manager: int, options: argparse.Namespace
    ) -> None:
        self.report, self.server, self.kubeconfig, self.manager = report, server, kubeconfig, manager
        self.count, self.replicas = options.deployments, options.replicas

    async def run(self) -> None:
        async with Client(config.load(self.kubeconfig), program="bench") as client:
            self.client = client
            factory = InformerFactory(client)
            self.pods = factory.informer(Pod)
            self.deployments = factory.informer(Deployment)
            self.sets = factory.informer(ReplicaSet)
            kubelet = Kubelet(client)
            self.pods.add_handler(kubelet.see, lambda old, new: kubelet.see(new))
            factory.start()
            await factory.wait_synced()
            pretending = asyncio.create_task(kubelet.run())
            await self.phase("create", self.create, self.ready)
            await self.phase("roll", lambda name: self.change(name, image="nginx:2"), self.ready)
            self.replicas *= 2
            await self.phase("scale up", lambda name: self.change(name, replicas=self.replicas), self.ready)
            await self.phase("delete", self.delete, lambda: not self.pods.items() and not self.sets.items())
            pretending.cancel()
            await factory.stop()
        self.report.row("API server, resident", resident_mib(self.server.process.pid), "MiB")
        self.report.row("controller-manager, resident", resident_mib(self.manager), "MiB")

    async def phase(self, name: str, act: Callable[[str], Any], done: Callable[[], bool]) -> None:
        before, began = self.requests(), time.perf_counter()
        await asyncio.gather(*(act(f"d{number}") for number in range(self.count)))
        while not done():
            await asyncio.sleep(0.02)
            if time.perf_counter() - began > 300:
                raise SystemExit(f"{name}: not done after 300 s")
        seconds, pods = time.perf_counter() - began, self.count * self.replicas
        self.report.row(f"{name}: {self.count} x {self.replicas}", seconds, "s", f"{pods / seconds:,.0f} pods/s")
        self.report.row(f"{name}: requests a pod", (self.requests() - before) / pods, "", "kubelet's included")

    def requests(self) -> float:
        text = self.server.call("GET", "/metrics").decode()
        lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
        return sum(float(line.split()[-1]) for line in lines if 'verb="WATCH"' not in line)

    def ready(self) -> bool:
        found = self.deployments.items()
        return len(found) == self.count and all(
            d.status is not None
            and d.status.observed_generation == d.metadata.generation
            and d.status.updated_replicas == d.status.ready_replicas == d.status.replicas == self.replicas
            for d in found
        )

    async def create(self, name: str) -> None:
        labels = {"app": name}
        template = PodTemplateSpec(
            metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="c", image="nginx:1")])
        )
        spec = DeploymentSpec(replicas=self.replicas, selector=LabelSelector(match_labels=labels), template=template)
        await self.client.create(Deployment(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))

    async def change(self, name: str, image: str = "", replicas: int = 0) -> None:
        patch: dict[str, Any] = {"spec": {}}
        if image:
            patch["spec"]["template"] = {"spec": {"containers": [{"name": "c", "image": image}]}}
        if replicas:
            patch["spec"]["replicas"] = replicas
        await self.client.patch(Deployment, name, patch, "default", type="strategic")

    async def delete(self, name: str) -> None:
        await self.client.delete(Deployment, name, "default")


class Kubelet:
    """Makes pods Ready, and lets them go when they are deleted."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.queue: asyncio.Queue[Pod] = asyncio.Queue()

    def see(self, pod: Pod) -> None:
        going = pod.metadata is not None and pod.metadata.deletion_timestamp
        if going or pod.status is None or pod.status.phase != "Running":
            self.queue.put_nowait(pod)

    async def run(self) -> None:
        await asyncio.gather(*(self.work() for _ in range(8)))

    async def work(self) -> None:
        while True:
            pod = await self.queue.get()
            meta = pod.metadata
            assert meta is not None
            try:
                if meta.deletion_timestamp:
                    await self.client.delete(Pod, meta.name or "", meta.namespace or "", grace_period_seconds=0)
                else:
                    conditions = [{"type": "Ready", "status": "True"}]
                    status = {"status": {"phase": "Running", "conditions": conditions}}
                    name, namespace = meta.name or "", meta.namespace or ""
                    await self.client.patch(Pod, name, status, namespace, type="strategic", subresource="status")
            except Exception:
                pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
