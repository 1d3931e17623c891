"""The decisions of kube-scheduler v1.36.4, recorded from it (`recorded/record.py`): same nodes, reasons and scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scheduler.reference.cluster import Cluster
from scheduler.reference.harness import World, framework_of
from scheduler.test_shared import decide

from pybernetes.api.core.v1 import Namespace, Node, Pod
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.codec import decode
from pybernetes.scheduler.framework.podinfo import PodInfo

RECORDED = json.loads((Path(__file__).parent / "recorded" / "decisions.json").read_text())


def test_every_decision_reason_and_score_is_that_of_kube_scheduler() -> None:
    cluster = Cluster()
    cluster.namespaces = [Namespace(metadata=ObjectMeta(name="default"))]
    cluster.nodes = [decode(Node, json.dumps(each).encode()) for each in RECORDED["nodes"]]
    world = World(cluster)
    made = framework_of(world)
    for each in RECORDED["pods"]:
        pod = _pod(each["pod"])
        result, _ = decide(made, PodInfo(pod))
        name = each["pod"]["metadata"]["name"]
        if each["node"] is None:
            assert result.diagnosis is not None, name
            assert each["message"].startswith(result.diagnosis.message()), name
            continue
        if result.feasible is None or result.total is None:
            assert (result.node_name, "scores" in each) == (each["node"], False), name
        else:
            names = [world.snapshot.names[row] for row in result.feasible.tolist()]
            ours: dict[str, dict[str, int]] = {}
            for plugin in result.shared.score_names:
                weighed = result.shared.scores_of(plugin, result.feasible)[1] * made.weights[plugin]
                ours[plugin] = dict(zip(names, weighed.tolist(), strict=True))
            for plugin, (_, scores) in result.cluster_scores.items():
                ours[plugin] = dict(zip(names, (scores * made.weights[plugin]).tolist(), strict=True))
            # A plugin with the same for all may skip; so may ours, and it is not always the same ones.
            assert _that_differ(ours) == _that_differ(each["scores"]), name
            total = dict(zip(names, result.total.tolist(), strict=True))
            assert total[each["node"]] == max(total.values()), name
        world.bind(pod, each["node"])


def _pod(body: dict[str, Any]) -> Pod:
    pod = decode(Pod, json.dumps(body).encode())
    assert pod.metadata is not None
    assert pod.spec is not None
    pod.metadata.namespace, pod.metadata.uid = "default", f"uid-{pod.metadata.name}"
    pod.spec.scheduler_name = "default-scheduler"
    return pod


def _that_differ(scores: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {plugin: by_node for plugin, by_node in scores.items() if len(set(by_node.values())) > 1}
