"""`./pyb bench scheduler`: pods a second, from their creation to their binding.

Nodes and pods are API objects, the API server and the scheduler are processes of their own, bindings and events are
real; at the end every pod is looked up and the placement checked. The rate is shown beside what upstream would reach.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from _decision import decision_seconds
from _load import TOKEN, Report, Server, free_port, resident_mib
from _workloads import WORKLOADS, Body, Workload, nodes, overcommitted

PODS = "/api/v1/namespaces/default/pods"
CREATORS = 24
ACCOUNT = (
    "/api/v1/namespaces/default/serviceaccounts",
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}},
)
"""Pods need it, and no controller makes it here."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench scheduler")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--workload", default="basic", help=f"of {', '.join(WORKLOADS)}, or all")
    parser.add_argument("--store", default="sqlite", choices=("sqlite", "memory"))
    parser.add_argument("--config", default="", help="a KubeSchedulerConfiguration for the scheduler")
    parser.add_argument("--profile", default="", help="write a profile of the scheduler to this file (cProfile; slow)")
    options = parser.parse_args(argv)
    names = list(WORKLOADS) if options.workload == "all" else options.workload.split(",")
    for name in names:
        if name not in WORKLOADS:
            parser.error(f"no workload {name!r}; there are: {', '.join(WORKLOADS)}")
    report = Report("scheduler")
    report.rows |= {"nodes": options.nodes, "pods": options.pods}
    with tempfile.TemporaryDirectory(prefix="pyb-bench-") as folder:
        for name in names:
            own = Path(folder) / name
            own.mkdir()
            measure(report, name, WORKLOADS[name], own, options)
    report.save()
    return 0


def measure(report: Report, name: str, workload: Workload, folder: Path, options: Any) -> None:
    """All rows of one workload."""
    number = min(options.pods, workload.most(options.nodes))
    if name != "preemption":  # there a decision is to make room, and takes the API server's part
        alone = decision_seconds(workload, options.nodes, min(number, 3000))
        report.row(f"{name}: decision alone, CPU", alone * 1e6, "us/pod", "target 200 at 5,000 nodes")
    url = "memory://" if options.store == "memory" else f"sqlite://{folder}/store.db"
    server = Server(
        folder,
        url,
        "--max-requests-inflight=10000",
        "--max-mutating-requests-inflight=10000",
        "--disable-admission-plugins=TaintNodesByCondition",
    )
    scheduler: Scheduler | None = None
    try:
        for path, body in (ACCOUNT, *workload.extra):
            server.call("POST", path, body)
        asyncio.run(create(server, "/api/v1/nodes", nodes(options.nodes, workload.zones)))
        scheduler = Scheduler(folder, server, options)
        before = list(workload.before(options.nodes, number))
        if before:
            asyncio.run(create(server, PODS, before))
            scheduler.wait(0 if workload.stay_pending else len(before), tried=len(before))
        counts, cpu = scheduler.counts(), (scheduler.cpu(), server_cpu(server), time.process_time())
        started = time.perf_counter()
        asyncio.run(create(server, PODS, workload.pods(number)))
        created = time.perf_counter() - started
        seconds = scheduler.wait(counts["scheduled"] + number) - started
        after = scheduler.counts()
        rate = number / seconds
        note = f"{number} pods, {options.nodes} nodes, {seconds:.1f} s; created in {created:.1f} s"
        report.row(f"{name}: pods", rate, "pods/s", note)
        attempts = max(1.0, after["algorithm_count"] - counts["algorithm_count"])
        decision = (after["algorithm_sum"] - counts["algorithm_sum"]) / attempts
        report.row(f"{name}: attempt, as it waits for others", decision * 1e6, "us", f"{attempts:.0f} attempts")
        report.row(f"{name}: scheduler's CPU", (scheduler.cpu() - cpu[0]) / number * 1e6, "us/pod")
        report.row(f"{name}: API server's CPU", (server_cpu(server) - cpu[1]) / number * 1e6, "us/pod")
        report.row(f"{name}: CPU of who creates", (time.process_time() - cpu[2]) / number * 1e6, "us/pod")
        report.row(f"{name}: scheduler's memory", resident_mib(scheduler.process.pid), "MiB")
        check(server, workload)
    finally:
        if scheduler is not None:
            scheduler.stop()
        server.stop()


def check(server: Server, workload: Workload) -> None:
    """Ends the benchmark if pods are not where they should be."""
    found_nodes = json.loads(server.call("GET", "/api/v1/nodes"))["items"]
    pods = json.loads(server.call("GET", PODS))["items"]
    measured = [each for each in pods if each["metadata"]["name"].startswith("pod-")]
    unbound = [each["metadata"]["name"] for each in measured if not each["spec"].get("nodeName")]
    problem = f"{len(unbound)} pods are not bound, as {unbound[0]}" if unbound else ""
    problem = problem or overcommitted(found_nodes, pods) or workload.check(found_nodes, measured)
    if problem:
        raise SystemExit(f"the result is wrong: {problem}")


async def create(server: Server, path: str, bodies: Iterable[Body]) -> None:
    """POST all, several at a time."""
    from pybernetes.client.client import Client
    from pybernetes.client.config import Config

    settings = Config(server=server.url, token=TOKEN, insecure_skip_tls_verify=True)
    async with Client(settings, program="bench") as client:
        left = iter([json.dumps(each).encode() for each in bodies])

        async def work() -> None:
            for body in left:
                await client.transport.request("POST", path, body=body)

        await asyncio.gather(*(work() for _ in range(CREATORS)))


def server_cpu(server: Server) -> float:
    return cpu_seconds(server.process.pid)


def cpu_seconds(pid: int) -> float:
    """What a process has used of processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Scheduler:
    """A `pyb scheduler` that runs for a benchmark."""

    def __init__(self, folder: Path, server: Server, options: Any) -> None:
        self._server = server
        self._port = free_port()
        kubeconfig = folder / "scheduler.kubeconfig"
        kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": {"server": server.url, "insecure-skip-tls-verify": True}}],
                    "users": [{"name": "u", "user": {"token": TOKEN}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        flags = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", f"--secure-port={self._port}"]
        flags += ["--bind-address=127.0.0.1", f"--tls-cert-file={folder}/apiserver.crt"]
        flags += [f"--tls-private-key-file={folder}/apiserver.key"]
        if options.config:  # a file says where the server is, too
            text = Path(options.config).read_text()
            own = folder / "config.yaml"
            own.write_text(f"{text.rstrip()}\nclientConnection: {{kubeconfig: {kubeconfig}}}\n")
            flags.append(f"--config={own}")
        run = ["-m", "pybernetes"]
        if options.profile:
            run = ["-m", "cProfile", "-o", options.profile, "-m", "pybernetes"]
        self.process = subprocess.Popen([sys.executable, *run, "scheduler", *flags])
        self._wait_ready()

    def counts(self) -> dict[str, float]:
        text = self._get("/metrics")

        def find(pattern: str) -> float:
            return sum(float(each) for each in re.findall(pattern, text))

        return {
            "scheduled": find(r'schedule_attempts_total\{result="scheduled".*\} (\S+)'),
            "attempts": find(r"schedule_attempts_total\{.*\} (\S+)"),
            "algorithm_sum": find(r"scheduler_scheduling_algorithm_duration_seconds_sum (\S+)"),
            "algorithm_count": find(r"scheduler_scheduling_algorithm_duration_seconds_count (\S+)"),
        }

    def wait(self, scheduled: float, tried: float = 0.0) -> float:
        """When so many pods are bound; the moment at which that was seen."""
        last, since = -1.0, time.perf_counter()
        while True:
            counts = self.counts()
            now = time.perf_counter()
            if counts["scheduled"] >= scheduled and counts["attempts"] >= tried:
                return now
            if counts["attempts"] != last:
                last, since = counts["attempts"], now
            if now - since > 60 or self.process.poll() is not None:
                raise SystemExit(f"the scheduler is stuck: {counts}, {scheduled} wanted")
            time.sleep(0.05)

    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def _get(self, path: str) -> str:
        return _fetch(f"https://127.0.0.1:{self._port}{path}")

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if self._get("/readyz") == "ok":
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise SystemExit("the scheduler does not become ready")


def _fetch(url: str) -> str:
    import ssl
    import urllib.request

    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as response:
        text: str = response.read().decode()
        return text
