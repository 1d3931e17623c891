"""The cluster as columns: always what a walk over all nodes and pods would count."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from scheduler.pods import info, node

from pybernetes.api.core.v1 import ContainerPort
from pybernetes.api.core.v1.affinity import Taint
from pybernetes.api.core.v1.container import Container
from pybernetes.scheduler.framework.podinfo import PodInfo
from pybernetes.scheduler.snapshot.journal import Journal
from pybernetes.scheduler.snapshot.snapshot import Snapshot


def columns(snapshot: Snapshot) -> dict[str, Any]:
    """Everything that a row says, by node."""
    found: dict[str, Any] = {}
    for name, row in snapshot.row_of.items():
        found[name] = {
            "alive": bool(snapshot.alive[row]),
            "cpu": int(snapshot.allocatable("cpu")[row]),
            "used": int(snapshot.requested("cpu")[row]),
            "gpu": int(snapshot.requested("example.com/gpu")[row]),
            "nonzero": (int(snapshot.nonzero_cpu[row]), int(snapshot.nonzero_memory[row])),
            "pods": (int(snapshot.pod_count[row]), int(snapshot.allowed_pods[row])),
            "zone": snapshot.label_values[int(snapshot.label("zone")[row])],
            "taints": [each.key for each in snapshot.taint_sets[int(snapshot.taints[row])]],
            "on it": sorted(snapshot.info(row).pods),
            "ports": dict(snapshot.info(row).ports),
            "matching": int(snapshot.counters.get("web", lambda pod: pod.labels.get("app") == "web").counts[row]),
        }
    return found


def test_columns_are_what_counting_from_nothing_gives_whatever_happens() -> None:
    rng = random.Random(7)
    snapshot = Snapshot()
    nodes: dict[str, Any] = {}
    pods: dict[str, tuple[PodInfo, str]] = {}
    columns(snapshot)  # the label's column and the counter exist from the beginning
    for step in range(600):
        name = f"n{rng.randrange(90)}"
        what = rng.random()
        if what < 0.35:
            taints = [Taint(key="k", effect="NoSchedule")] if rng.random() < 0.3 else None
            nodes[name] = node(
                name,
                labels={"zone": f"z{rng.randrange(3)}"} if rng.random() < 0.8 else None,
                cpu=f"{rng.randrange(1, 9)}",
                taints=taints,
            )
            snapshot.set_node(nodes[name])
        elif what < 0.5:
            nodes.pop(name, None)
            snapshot.remove_node(name)
        elif what < 0.8 or not pods:
            wanted: dict[str, Any] = {"cpu": f"{rng.randrange(0, 900)}m"}
            if rng.random() < 0.2:
                wanted["example.com/gpu"] = "1"
            container = Container(name="c", ports=[ContainerPort(host_port=80)] if rng.random() < 0.2 else None)
            found = info(f"p{step}", requests=wanted, labels={"app": rng.choice(("web", "db"))})
            found.spec.containers = [*(found.spec.containers or ()), container]
            pods[found.uid] = (found, name)
            snapshot.add_pod(found, name)
        else:
            uid = rng.choice(list(pods))
            snapshot.remove_pod(*pods.pop(uid))
        if step % 50 == 0:
            fresh = Snapshot()
            columns(fresh)
            for each in nodes.values():
                fresh.set_node(each)
            for found, where in pods.values():
                fresh.add_pod(found, where)
            assert columns(snapshot) == columns(fresh)
            assert (snapshot.num_nodes, snapshot.num_pods) == (len(nodes), len(pods))


def test_what_if_leaves_no_trace() -> None:
    snapshot = Snapshot()
    row = snapshot.set_node(node("n"))
    there = info("there", requests={"cpu": "1"}, labels={"app": "web"})
    snapshot.add_pod(there, "n")
    before = columns(snapshot)
    position = snapshot.pod_changes.position
    with snapshot.what_if() as change:
        change.remove(there, row)
        change.add(info("new", requests={"cpu": "3"}), row)
        assert columns(snapshot)["n"]["used"] == 3000
        assert columns(snapshot)["n"]["matching"] == 0
    assert columns(snapshot) == before
    assert snapshot.pod_changes.position == position


def test_names_that_were_handed_out_do_not_change() -> None:
    snapshot = Snapshot()
    snapshot.set_node(node("a"))
    kept = snapshot.names
    snapshot.remove_node("a")
    snapshot.set_node(node("b"))
    assert (kept, snapshot.names) == (["a"], ["b"])


def test_a_pod_may_be_on_a_node_that_is_not_known_yet() -> None:
    snapshot = Snapshot()
    found = info("p", requests={"cpu": "1"})
    row = snapshot.add_pod(found, "later")
    assert not snapshot.alive[row]
    assert snapshot.set_node(node("later")) == row
    assert (snapshot.requested("cpu")[row], snapshot.num_nodes) == (1000, 1)
    snapshot.remove_node("later")
    assert "later" in snapshot.row_of
    snapshot.remove_pod(found, "later")
    assert snapshot.row_of == {}


def test_a_counter_made_late_counts_what_is_there() -> None:
    snapshot = Snapshot()
    row = snapshot.set_node(node("n"))
    snapshot.add_pod(info("p", labels={"app": "web"}), "n")
    counter = snapshot.counters.get("k", lambda pod: int(pod.labels.get("app") == "web"), ["default"])
    elsewhere = snapshot.counters.get("other", lambda pod: 1, ["kube-system"])
    assert (counter.counts[row], elsewhere.counts[row]) == (1, 0)


def test_a_journal_that_has_forgotten_says_so() -> None:
    journal = Journal()
    start = journal.position
    journal.note(3)
    assert journal.since(start) == [3]
    for number in range(3 * Journal.KEEP):
        journal.note(number)
    assert journal.since(start) is None
    assert journal.since(journal.position) == []
    assert journal.since(journal.position - 2) == [3 * Journal.KEEP - 2, 3 * Journal.KEEP - 1]


def test_labels_get_columns_when_asked_and_keep_them() -> None:
    snapshot = Snapshot()
    for number in range(200):  # more than the first capacity
        snapshot.set_node(node(f"n{number}", labels={"zone": f"z{number % 3}"}))
    column = snapshot.label("zone")
    counts = [int(np.count_nonzero(column == snapshot.value_id(f"z{number}"))) for number in range(3)]
    assert counts == [67, 67, 66]
    assert snapshot.value_id("nowhere") == -1
    snapshot.set_node(node("n0", labels={"zone": "z1"}))
    assert snapshot.label_values[int(snapshot.label("zone")[snapshot.row_of["n0"]])] == "z1"


def test_nothing_grows_with_nodes_pods_and_labels_that_came_and_went() -> None:
    snapshot = Snapshot()
    snapshot.set_node(node("stays", labels={"host": "stays", "zone": "z"}, taints=[Taint(key="k", effect="NoExecute")]))
    snapshot.label("host")
    snapshot.label("zone")
    for number in range(3000):
        name = f"n{number}"
        taints = [Taint(key="k", value=name, effect="NoSchedule")]
        snapshot.set_node(node(name, labels={"host": name, "zone": "z"}, taints=taints, **{f"example.com/{name}": "1"}))
        pod = info(name, requests={f"example.com/pod-{number}": "1"})
        snapshot.add_pod(pod, name)
        snapshot.label(f"asked-for-{number}")
        snapshot.remove_pod(pod, name)
        snapshot.remove_node(name)
    assert len(snapshot.label_values) < 2100
    assert len(snapshot._value_ids) < 2100
    assert len(snapshot.taint_sets) < 2100
    assert len(snapshot._labels) < 300
    assert len(snapshot._allocatable) + len(snapshot._requested) < 600
    row = snapshot.row_of["stays"]
    assert snapshot.label_values[snapshot.label("host")[row]] == "stays"
    assert snapshot.label("zone")[row] == snapshot.value_id("z")
    assert [each.effect for each in snapshot.taint_sets[snapshot.taints[row]]] == ["NoExecute"]


def test_amounts_are_kept_where_sums_and_percentages_of_them_can_be_computed() -> None:
    snapshot = Snapshot()
    huge = str(2**63 - 1)
    row = snapshot.set_node(node("n", cpu=huge, memory=huge, pods=huge))
    for number in range(500):
        snapshot.add_pod(info(f"p{number}", requests={"cpu": huge, "memory": huge}), "n")
    assert snapshot.requested("cpu")[row] > 0
    assert snapshot.nonzero_memory[row] > 0
    assert snapshot.allocatable("memory")[row] * 100 > 0
    assert snapshot.allowed_pods[row] > 0
