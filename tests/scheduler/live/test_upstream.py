"""The reference that our scheduler is compared with is right: upstream's own kube-scheduler decides the same.

Needs its binary: PYB_TEST_KUBE_SCHEDULER=/path/to/kube-scheduler ./pyb test --soak. Random clusters are made on our API
server; pods get their nodes, or the reasons why not, from upstream, and the reference has to agree.
"""

from __future__ import annotations

import asyncio
import collections
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scheduler.reference import decisions, worlds
from scheduler.reference.cluster import Cluster

import tools
from pybernetes.api import errors
from pybernetes.api.core.v1 import Namespace, Node, Pod, PodCondition
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client import config
from pybernetes.client.client import Client

BINARY = os.environ.get("PYB_TEST_KUBE_SCHEDULER", "")
PLAIN = "ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds,Priority"
"""Admission that would change nodes and pods."""
SEEN = 0.5
"""Seconds until the scheduler has seen what was made; it has no way to say so."""


@contextmanager
def upstream(folder: Path) -> Iterator[Path]:
    """Our API server with upstream's scheduler; the kubeconfig."""
    with tools.api_server(folder, f"--disable-admission-plugins={PLAIN}", accounts=True) as server:
        flags = ["--kubeconfig", str(server.kubeconfig), "--leader-elect=false", "--secure-port=0"]
        with open(folder / "kube-scheduler.log", "wb") as log:
            process = subprocess.Popen([BINARY, *flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield server.kubeconfig
        finally:
            process.terminate()
            process.wait()


def acceptable(pod: Pod) -> Pod:
    """Without what an API server refuses, or what is not the scheduler's to decide."""
    pod.spec.overhead = pod.spec.priority = pod.spec.resources = pod.status = None
    pod.metadata.uid = pod.metadata.owner_references = None
    for container in [*pod.spec.containers, *(pod.spec.init_containers or [])]:
        resources = container.resources
        if resources and worlds.GPU in (resources.requests or {}):
            resources.limits = {**(resources.limits or {}), worlds.GPU: resources.requests[worlds.GPU]}
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in (required.node_selector_terms if required else None) or ():
        term.match_fields = None  # narrows the nodes looked at, with another message
    for terms in (pod.spec.affinity.pod_affinity, pod.spec.affinity.pod_anti_affinity) if pod.spec.affinity else ():
        for each in (terms.required_during_scheduling_ignored_during_execution if terms else None) or ():
            _without_negation(each)
        for weighted in (terms.preferred_during_scheduling_ignored_during_execution if terms else None) or ():
            _without_negation(weighted.pod_affinity_term)
    return pod


def _without_negation(term: Any) -> None:
    """Upstream 1.36 takes namespace selectors that match no labels at all for all namespaces; we do not."""
    for each in (term.namespace_selector.match_expressions if term.namespace_selector else None) or ():
        if each.operator in ("NotIn", "DoesNotExist"):
            each.operator, each.values = "Exists", None


async def create(client: Client, obj: Any) -> Any:
    try:
        return await client.create(obj)
    except errors.Invalid:
        return None  # random pods are not always valid


async def decided(client: Client, pod: Pod) -> tuple[Pod, PodCondition | None]:
    for _ in range(1000):
        now = await client.get(Pod, pod.metadata.name, pod.metadata.namespace)
        refused = [each for each in (now.status.conditions if now.status else None) or () if each.status == "False"]
        if now.spec.node_name or refused:
            return now, refused[0] if refused else None
        await asyncio.sleep(0.02)
    raise AssertionError(f"upstream does not decide about {pod.metadata.name}")


def reasons(message: str) -> collections.Counter[str]:
    """`0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu. preemption: ...` counted."""
    found = re.match(r"0/\d+ nodes are available: (.*?)\.(?: (?:no new|preemption).*)?$", message)
    assert found, message
    counts: collections.Counter[str] = collections.Counter()
    for part in re.split(r", (?=\d+ )", found[1]):
        number, _, reason = part.partition(" ")
        counts[reason] += int(number)
    return counts


async def compare(client: Client, seed: int) -> None:
    random = Random(seed)
    planned = worlds.cluster(random, random.randint(1, 7), 0)
    real = Cluster()
    for namespace in planned.namespaces:
        team = (namespace.metadata.labels or {}).get("team")
        patch = {"metadata": {"labels": {"team": team}}}
        real.namespaces.append(await client.patch(Namespace, namespace.metadata.name, patch))
    for node in planned.nodes:
        status, node.metadata.uid = node.status, None
        made = await client.create(node)
        made.status = status
        real.nodes.append(await client.update_status(made))
    for service in planned.services:
        service.spec.cluster_ip = "None"
        if (made_service := await create(client, service)) is not None:
            real.services.append(made_service)
    names = [each.metadata.name for each in real.nodes]
    for index in range(random.randint(0, 12)):
        pod = acceptable(worlds.pod(random, f"p{index}", names))
        pod.spec.node_name = random.choice(names)
        if (placed := await create(client, pod)) is not None:
            real.pods.append(placed)
    await asyncio.sleep(SEEN)  # not a wait for ours: upstream does not say what it has seen
    for index in range(4):
        pod = await create(client, acceptable(worlds.pod(random, f"new{index}", names, chance=0.5)))
        if pod is None:
            continue
        now, refused = await decided(client, pod)
        expected = {node.metadata.name: decisions.refusal(pod, node, real) for node in real.nodes}
        feasible = [node for node in real.nodes if expected[node.metadata.name] is None]
        if refused is not None:
            assert not feasible, (seed, index, refused.message)
            wanted = collections.Counter(why for each in expected.values() if each for why in each.reasons)
            assert reasons(refused.message or "") == wanted, (seed, index)
            await client.delete(Pod, pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0)
        else:
            totals = decisions.totals(pod, feasible, real)
            assert totals.get(now.spec.node_name) == max(totals.values(), default=0), (seed, index, totals)
            real.pods.append(now)
    for name in worlds.NAMESPACES:
        await client.delete_collection(Pod, name, grace_period_seconds=0)
    for service in real.services:
        await client.delete(type(service), service.metadata.name, service.metadata.namespace)
    await client.delete_collection(Node)
    await asyncio.sleep(SEEN)  # not a wait for ours: upstream does not say what it has seen


@pytest.mark.soak
@pytest.mark.skipif(not BINARY, reason="PYB_TEST_KUBE_SCHEDULER names no kube-scheduler")
async def test_upstream_decides_as_the_reference_does(tmp_path: Path) -> None:
    first = int(os.environ.get("PYB_TEST_SEED", "1"))
    with upstream(tmp_path) as kubeconfig:
        async with Client(config.load(kubeconfig)) as client:
            for name in worlds.NAMESPACES:
                await client.create(Namespace(metadata=ObjectMeta(name=name)))
            for seed in range(first, first + int(os.environ.get("PYB_TEST_ROUNDS", "100"))):
                await compare(client, seed)
