"""`./pyb bench volumes`: how long a claim and a pod with a claim take, on a real node with the default StorageClass.

A cluster is started with `pyb up` on an empty folder. Measured are the first claim (the driver is started for it), pods
with a claim beside the same pods without, many pods with claims at once, many claims at once that pods use in turn, and
what the driver's process has of memory. Figures depend on what else the machine does: its load is printed beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pods as bench_pods
from _cluster import Cluster, cluster
from _load import Report
from _processes import by_role, memory_mb

from pybernetes.api import errors
from pybernetes.api.core.v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Volume,
    VolumeMount,
    VolumeResourceRequirements,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client import config
from pybernetes.client.client import Client

NAME = "bench-volumes"
MORE_MS = "target 30 more"
DRIVER_MIB = "target 40"
GONE_WITHIN = 120.0


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench volumes", description=__doc__)
    parser.add_argument("--runtime", default="embedded", help="of `pyb up` (default: %(default)s)")
    parser.add_argument("--one-at-a-time", type=int, default=20, metavar="N", help="default: %(default)s")
    parser.add_argument("--at-once", type=int, default=30, metavar="N", help="default: %(default)s")
    parser.add_argument("--claims", type=int, default=200, metavar="N", help="made at once (default: %(default)s)")
    parser.add_argument("--image", default="busybox", help="has sh and sleep (default: %(default)s)")
    parser.add_argument("--keep-logs", metavar="DIR", help="copy the cluster's logs there")
    options = parser.parse_args(argv)
    report = Report("volumes")
    report.rows["runtime"] = options.runtime
    flags = ["--nodes", "1", "--runtime", options.runtime]
    with (
        tempfile.TemporaryDirectory(prefix="pyb-bench-") as folder,
        cluster(Path(folder), NAME, flags, report, options.keep_logs) as made,
    ):
        asyncio.run(measure(report, made, options))
    report.row("load of the machine, 1 min", os.getloadavg()[0], "")
    report.save()
    return 0


async def measure(report: Report, made: Cluster, options: Any) -> None:
    """All that is measured with claims."""
    async with Client(config.load(made.kubeconfig), program="pyb-bench") as client, bench_pods.watching(client) as pods:
        begin = time.perf_counter()
        await with_claim(client, pods, "first", options)
        report.row("first pod with a claim, driver started for it", 1000 * (time.perf_counter() - begin), "ms")
        await bench_pods.delete(client, pods, "first")
        plain, claimed = [], []
        for number in range(options.one_at_a_time):
            name = f"plain-{number}"
            begin = time.perf_counter()
            await bench_pods.create_and_wait(client, pods, bench_pods.pod(name, options.image))
            plain.append(time.perf_counter() - begin)
            await bench_pods.delete(client, pods, name)
            name = f"claimed-{number}"
            begin = time.perf_counter()
            await with_claim(client, pods, name, options)
            claimed.append(time.perf_counter() - begin)
            await bench_pods.delete(client, pods, name)
        report.row("pod without a claim: create -> Ready, p50", 1000 * statistics.median(plain), "ms")
        report.row("pod with a claim: create -> Ready, p50", 1000 * statistics.median(claimed), "ms")
        more = 1000 * (statistics.median(claimed) - statistics.median(plain))
        report.row("what a claim costs a pod, p50", more, "ms", MORE_MS)
        names = [f"many-{number}" for number in range(options.at_once)]
        begin = time.perf_counter()
        await asyncio.gather(*(with_claim(client, pods, name, options) for name in names))
        report.row(f"{len(names)} pods with {len(names)} claims at once, all Ready", time.perf_counter() - begin, "s")
        for pid in by_role(made.supervisor).get("csi-local", ()):
            report.row("memory of the driver's process (PSS)", memory_mb(pid), "MiB", DRIVER_MIB)
        await asyncio.gather(*(bench_pods.delete(client, pods, name) for name in names))
        await many_claims(report, client, pods, options)


async def many_claims(report: Report, client: Client, pods: Any, options: Any) -> None:
    """Many claims made at once, each used once by one pod, and deleted at once."""
    names = [f"claim-{number}" for number in range(options.claims)]
    begin = time.perf_counter()
    await asyncio.gather(*(client.create(claim(name)) for name in names))
    pod = bench_pods.pod("all", options.image)
    pod.spec.volumes = [volume(name, name) for name in names]
    pod.spec.containers[0].volume_mounts = [VolumeMount(name=name, mount_path=f"/v/{name}") for name in names]
    await bench_pods.create_and_wait(client, pods, pod)
    report.row(f"{len(names)} claims: created -> bound and mounted", time.perf_counter() - begin, "s")
    await bench_pods.delete(client, pods, "all")
    begin = time.perf_counter()
    for each in (await client.list(PersistentVolumeClaim, "default")).items:
        await client.delete(PersistentVolumeClaim, each.metadata.name or "", "default")
    async with asyncio.timeout(GONE_WITHIN):
        while (await client.list(PersistentVolume)).items:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    report.row("all claims deleted -> no volume left", time.perf_counter() - begin, "s")


async def with_claim(client: Client, pods: Any, name: str, options: Any) -> None:
    """Make a claim and a pod with it, and wait until that is Ready."""
    pod = bench_pods.pod(name, options.image)
    pod.spec.volumes = [volume("data", name)]
    pod.spec.containers[0].volume_mounts = [VolumeMount(name="data", mount_path="/data")]
    try:
        await client.create(claim(name))
    except errors.AlreadyExists:
        pass
    await bench_pods.create_and_wait(client, pods, pod)


def volume(name: str, claim_name: str) -> Volume:
    return Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim_name))


def claim(name: str) -> PersistentVolumeClaim:
    """A claim of the default class."""
    wanted = VolumeResourceRequirements(requests={"storage": "16Mi"})
    spec = PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=wanted)
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)
