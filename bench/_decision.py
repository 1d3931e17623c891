"""The choice of nodes alone: a scheduler's profile on columns that are filled directly, without an API server."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import Any

from _workloads import Workload, nodes

from pybernetes.api.core.v1 import Namespace, Node, Pod
from pybernetes.client.clock import SystemClock
from pybernetes.client.codec import decode
from pybernetes.client.informer import Informer
from pybernetes.client.watch import Event
from pybernetes.scheduler.algorithm import Algorithm
from pybernetes.scheduler.cache import Cache
from pybernetes.scheduler.config.load import default
from pybernetes.scheduler.config.spec import build
from pybernetes.scheduler.framework.podinfo import PodInfo
from pybernetes.scheduler.framework.runtime import Framework, Services
from pybernetes.scheduler.framework.state import CycleState
from pybernetes.scheduler.queue.nominator import PodNominator
from pybernetes.scheduler.snapshot.snapshot import Snapshot


def decision_seconds(workload: Workload, number_of_nodes: int, number: int) -> float:
    """CPU seconds for each pod, its being assumed included."""
    return asyncio.run(_decide(workload, number_of_nodes, number))


async def _decide(workload: Workload, number_of_nodes: int, number: int) -> float:
    clock = SystemClock()
    snapshot = Snapshot()
    informers: dict[Any, Informer[Any]] = {}

    def informer(kind: Any) -> Informer[Any]:
        return informers.setdefault(kind, Informer(kind.__name__, None, clock))  # type: ignore[arg-type]

    services = Services(
        snapshot=snapshot,
        client=None,  # type: ignore[arg-type]
        clock=clock,
        informer=informer,
        recorder=lambda name: None,
        nominator=PodNominator(),
        activate=lambda pods: None,
        random=random.Random(1),
    )
    framework = Framework(build(default()).profiles[0], services)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "resourceVersion": "1"}}
    informer(Namespace)._apply(Event("ADDED", decode(Namespace, json.dumps(namespace).encode())))
    cache = Cache(snapshot, clock)
    for each in nodes(number_of_nodes, workload.zones):
        cache.set_node(decode(Node, json.dumps(each).encode()))
    pods = [_pod(body) for body in workload.pods(number)]
    algorithm = Algorithm()
    began = time.process_time()
    for pod in pods:
        result = await algorithm.schedule(framework, CycleState(), pod)
        if not result.node_name:
            raise SystemExit(
                f"{pod.key} fits nowhere: {result.status or (result.diagnosis and result.diagnosis.message())}"
            )
        cache.assume(pod, result.node_name)
    return (time.process_time() - began) / len(pods)


def _pod(body: dict[str, Any]) -> PodInfo:
    pod = decode(Pod, json.dumps(body).encode())
    assert pod.metadata is not None
    assert pod.spec is not None
    pod.metadata.namespace, pod.metadata.uid = "default", pod.metadata.name
    pod.spec.scheduler_name = "default-scheduler"
    return PodInfo(pod)
