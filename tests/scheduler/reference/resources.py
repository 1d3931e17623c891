"""What a pod asks for, and how well it fits: NodeResourcesFit with its three strategies, and BalancedAllocation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from pybernetes.api.core.v1 import Container, Node, Pod
from pybernetes.api.quantity import parse

from .cluster import UNRESOLVABLE, UNSCHEDULABLE, Cluster, Refusal

MISSING = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""Asked for, as far as scores go, by a container that asks for none (CPU in thousandths)."""


def number(name: str, text: object) -> int:
    quantity = parse(str(text))
    return quantity.milli_value() if name == "cpu" else quantity.value()


def asked(container: Container, missing: dict[str, int]) -> dict[str, int]:
    requests = (container.resources.requests if container.resources else None) or {}
    return {**missing, **{name: number(name, text) for name, text in requests.items()}}


def plus(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}}


def larger(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}}


def pod_requests(pod: Pod, missing: dict[str, int] | None = None, *, by_pod: bool = True) -> dict[str, int]:
    """The most the pod asks for at any moment of its life, overhead included."""
    missing = missing or {}
    spec = pod.spec
    inits = spec.init_containers or []
    running: dict[str, int] = {}
    for container in [*(spec.containers or []), *(each for each in inits if each.restart_policy == "Always")]:
        running = plus(running, asked(container, missing))
    peak = running
    for index, container in enumerate(inits):
        moment = asked(container, missing)
        for earlier in inits[:index]:
            if earlier.restart_policy == "Always":
                moment = plus(moment, asked(earlier, missing))
        peak = larger(peak, moment)
    if spec.resources and by_pod:
        for name, text in (spec.resources.requests or {}).items():
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                peak = {**peak, name: number(name, text)}
    return plus(peak, {name: number(name, text) for name, text in (spec.overhead or {}).items()})


def with_defaults(pod: Pod) -> dict[str, int]:
    """The requests of a pod on a node, for scores: a default only for what the pod itself does not settle."""
    missing = dict(MISSING)
    if pod.spec.resources and pod.spec.resources.requests:
        plain = pod_requests(pod)
        missing = {name: value for name, value in MISSING.items() if name not in plain}
    return pod_requests(pod, missing)


def allocatable(node: Node) -> dict[str, int]:
    found = (node.status.allocatable if node.status else None) or {}
    return {name: number(name, text) for name, text in found.items()}


def node_resources_fit(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    requests, has = pod_requests(pod), allocatable(node)
    others = cluster.on(node)
    used: dict[str, int] = {}
    for other in others:
        used = plus(used, pod_requests(other))
    reasons, code = [], UNSCHEDULABLE
    if len(others) + 1 > has.get("pods", 0):
        reasons.append("Too many pods")
    for name in ["cpu", "memory", "ephemeral-storage", *sorted(set(requests) - {"cpu", "memory", "ephemeral-storage"})]:
        wanted = requests.get(name, 0)
        if wanted > 0 and wanted > has.get(name, 0) - used.get(name, 0):
            reasons.append(f"Insufficient {name}")
            if wanted > has.get(name, 0):
                code = UNRESOLVABLE
    return Refusal(code, tuple(reasons)) if reasons else None


Weights = Sequence[tuple[str, int]]
CPU_AND_MEMORY: Weights = (("cpu", 1), ("memory", 1))


def _scored(
    pod: Pod, node: Node, cluster: Cluster, resources: Weights, *, defaults: bool
) -> list[tuple[int, int, int, int]]:
    """For each resource that counts: (of others, with the pod, allocatable, weight)."""
    # With defaults upstream forgets what the pod as a whole asks for, and looks at its containers only.
    requests = pod_requests(pod, MISSING, by_pod=False) if defaults else pod_requests(pod)
    has = allocatable(node)
    rows = []
    for name, weight in resources:
        plain = name not in ("cpu", "memory", "ephemeral-storage")
        if has.get(name, 0) == 0 or (plain and requests.get(name, 0) == 0):
            continue
        counted = with_defaults if defaults and name in MISSING else pod_requests
        others = sum(counted(other).get(name, 0) for other in cluster.on(node))
        rows.append((others, others + requests.get(name, 0), has[name], weight))
    return rows


def least_allocated(pod: Pod, node: Node, cluster: Cluster, resources: Weights = CPU_AND_MEMORY) -> int:
    rows = _scored(pod, node, cluster, resources, defaults=True)
    total = sum((0 if used > has else (has - used) * 100 // has) * weight for _, used, has, weight in rows)
    return total // sum(weight for *_, weight in rows) if rows else 0


def most_allocated(pod: Pod, node: Node, cluster: Cluster, resources: Weights = CPU_AND_MEMORY) -> int:
    rows = _scored(pod, node, cluster, resources, defaults=True)
    total = sum(min(used, has) * 100 // has * weight for _, used, has, weight in rows)
    return total // sum(weight for *_, weight in rows) if rows else 0


def requested_to_capacity_ratio(
    pod: Pod, node: Node, cluster: Cluster, shape: Sequence[tuple[int, int]], resources: Weights = CPU_AND_MEMORY
) -> int:
    """`shape` is (utilisation 0-100, score 0-10), rising in utilisation."""
    total = weights = 0
    for _, used, has, weight in _scored(pod, node, cluster, resources, defaults=True):
        score = _on_curve([(x, y * 10) for x, y in shape], 100 if used > has else used * 100 // has)
        if score > 0:
            total, weights = total + score * weight, weights + weight
    return math.floor(total / weights + 0.5) if weights else 0


def _on_curve(shape: Sequence[tuple[int, int]], at: int) -> int:
    if at <= shape[0][0]:
        return shape[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(shape):
        if at <= x1:
            return y0 + int((y1 - y0) * (at - x0) / (x1 - x0))  # towards zero, also when the curve falls
    return shape[-1][1]


def balanced_allocation(pod: Pod, node: Node, cluster: Cluster, resources: Weights = CPU_AND_MEMORY) -> int | None:
    requests = pod_requests(pod)
    if not any(requests.get(name, 0) for name, _ in resources):
        return None
    rows = _scored(pod, node, cluster, resources, defaults=False)
    with_pod = _balance([min(1.0, used / has) for _, used, has, _ in rows])
    without = _balance([min(1.0, others / has) for others, _, has, _ in rows])
    return 50 + int((50 + with_pod - without) / 2)


def _balance(fractions: list[float]) -> int:
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((each - mean) * (each - mean) for each in fractions) / len(fractions))
    return int((1 - deviation) * 100)
