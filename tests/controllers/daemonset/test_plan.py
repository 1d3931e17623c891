"""Which nodes fit, and which pods a DaemonSet makes and deletes: pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.apps.v1 import DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet
from pybernetes.api.core.v1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from pybernetes.api.core.v1.node import Node, NodeSpec
from pybernetes.api.core.v1.pod import Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.controllers.common.meta import name_of
from pybernetes.controllers.daemonset.controller import FailureBackoff
from pybernetes.controllers.daemonset.nodes import REVISION_HASH, Fit, fits, target_node, template_for_node
from pybernetes.controllers.daemonset.plan import calculate_status, group_by_node, manage, rolling_update

NOW = 1_700_000_000.0


def daemonset(surge: int | str | None = None, unavailable: int | str | None = None, **pod: Any) -> DaemonSet:
    rolling = RollingUpdateDaemonSet(max_surge=surge, max_unavailable=unavailable)
    return DaemonSet(
        metadata=ObjectMeta(name="agent", namespace="default", generation=3),
        spec=DaemonSetSpec(
            template=PodTemplateSpec(metadata=ObjectMeta(labels={"app": "agent"}), spec=PodSpec(**pod)),
            update_strategy=DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling),
        ),
    )


def node(name: str = "n1", labels: dict[str, str] | None = None, *taints: Taint) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(taints=list(taints)))


def pod(name: str, on: str = "n1", hashed: str = "new", ready: bool = True, **status: Any) -> Pod:
    condition = PodCondition(type="Ready", status="True" if ready else "False", last_transition_time=rfc3339(NOW - 5))
    deleting = rfc3339(NOW) if status.pop("deleting", False) else None
    return Pod(
        metadata=ObjectMeta(
            name=name, uid=name, labels={REVISION_HASH: hashed}, deletion_timestamp=deleting, namespace="default"
        ),
        spec=PodSpec(node_name=status.pop("node_name", on)),
        status=PodStatus(phase=status.pop("phase", "Running"), conditions=[condition]),
    )


def term(*expressions: tuple[str, str, list[str] | None], fields: bool = False) -> Affinity:
    found = [
        NodeSelectorRequirement(key=key, operator=operator, values=values) for key, operator, values in expressions
    ]
    one = NodeSelectorTerm(match_fields=found) if fields else NodeSelectorTerm(match_expressions=found)
    required = NodeSelector(node_selector_terms=[one])
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))


NO_SCHEDULE = Taint(key="dedicated", value="db", effect="NoSchedule")
NO_EXECUTE = Taint(key="dedicated", value="db", effect="NoExecute")


@pytest.mark.parametrize(
    ("spec", "where", "expected"),
    [
        pytest.param({}, node(), (True, True), id="anywhere"),
        pytest.param({"node_name": "n2"}, node(), (False, False), id="another node by name"),
        pytest.param({"node_selector": {"disk": "ssd"}}, node(), (False, False), id="selector"),
        pytest.param({"node_selector": {"disk": "ssd"}}, node("n1", {"disk": "ssd"}), (True, True), id="selected"),
        pytest.param({"affinity": term(("gpu", "Exists", None))}, node(), (False, False), id="affinity"),
        pytest.param({"affinity": term(("gpu", "Exists", None))}, node("n1", {"gpu": ""}), (True, True), id="affine"),
        pytest.param({"affinity": term(("cores", "Gt", ["3"]))}, node("n1", {"cores": "4"}), (True, True), id="more"),
        pytest.param({"affinity": term(("cores", "Lt", ["3"]))}, node("n1", {"cores": "4"}), (False, False), id="less"),
        pytest.param({"affinity": term(("a", "Wrong", None))}, node(), (False, False), id="nonsense matches nothing"),
        pytest.param({"affinity": term()}, node(), (False, False), id="an empty term matches nothing"),
        pytest.param(
            {"affinity": term(("metadata.name", "In", ["n1"]), fields=True)}, node(), (True, True), id="by name"
        ),
        pytest.param(
            {"affinity": term(("metadata.name", "NotIn", ["n1"]), fields=True)},
            node(),
            (False, False),
            id="not by name",
        ),
        pytest.param({}, node("n1", None, NO_SCHEDULE), (False, True), id="NoSchedule lets stay"),
        pytest.param({}, node("n1", None, NO_EXECUTE), (False, False), id="NoExecute does not"),
        pytest.param(
            {"tolerations": [Toleration(key="dedicated", operator="Exists")]},
            node("n1", None, NO_EXECUTE, NO_SCHEDULE),
            (True, True),
            id="tolerated",
        ),
        pytest.param(
            {"tolerations": [Toleration(key="dedicated", value="web")]},
            node("n1", None, NO_SCHEDULE),
            (False, True),
            id="another value",
        ),
        pytest.param(
            {},
            node("n1", None, Taint(key="node.kubernetes.io/not-ready", effect="NoExecute")),
            (True, True),
            id="every daemon bears a node that is not ready",
        ),
        pytest.param(
            {},
            node("n1", None, Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")),
            (True, True),
            id="and a cordoned one",
        ),
        pytest.param(
            {},
            node("n1", None, Taint(key="node.kubernetes.io/network-unavailable", effect="NoSchedule")),
            (False, True),
            id="not one without network",
        ),
        pytest.param(
            {"host_network": True},
            node("n1", None, Taint(key="node.kubernetes.io/network-unavailable", effect="NoSchedule")),
            (True, True),
            id="unless it needs none",
        ),
    ],
)
def test_which_nodes_fit(spec: dict[str, Any], where: Node, expected: tuple[bool, bool]) -> None:
    assert fits(daemonset(**spec), where) == Fit(*expected)


def test_a_pod_asks_for_its_node_and_bears_it() -> None:
    made = template_for_node(daemonset(affinity=term(("gpu", "Exists", None))), "n7", "abc")
    assert made.metadata is not None
    assert made.spec is not None
    assert made.metadata.labels == {"app": "agent", REVISION_HASH: "abc"}
    assert target_node(Pod(spec=made.spec)) == "n7"
    assert {(each.key, each.effect) for each in made.spec.tolerations or ()} == {
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    }


def changed(pods: list[Pod], *nodes: Node, surge: int | None = None, **options: Any) -> tuple[list[str], list[str]]:
    subject = daemonset(surge=surge, unavailable=None if surge else 1)
    changes = manage(subject, list(nodes), group_by_node(pods), "new", NOW, **options)
    return sorted(name_of(each) for each in changes.delete), sorted(changes.create)


def test_each_fitting_node_gets_one_pod_and_others_none() -> None:
    away = node("n2", None, NO_EXECUTE)
    assert changed([], node("n1"), away) == ([], ["n1"])
    assert changed([pod("a"), pod("b", "n2")], node("n1"), away) == (["b"], [])
    assert changed([pod("b", "n2")], node("n2", None, NO_SCHEDULE)) == ([], [])


def test_all_but_the_oldest_go() -> None:
    assert changed([pod("a"), pod("b"), pod("c")], node()) == (["b", "c"], [])


def test_a_pod_that_is_going_holds_its_place() -> None:
    assert changed([pod("a", deleting=True)], node()) == ([], [])
    assert changed([pod("a", deleting=True)], node(), surge=1) == ([], ["n1"])


def test_ended_pods_go_unless_they_are_held_back() -> None:
    failed, done = pod("a", phase="Failed"), pod("b", "n2", phase="Succeeded")
    assert changed([failed, done], node(), node("n2")) == (["a", "b"], [])
    assert changed([failed], node(), may_replace=lambda _: False) == ([], [])


def test_pods_for_nodes_that_are_gone_go() -> None:
    lost = pod("a", node_name=None)
    assert lost.spec is not None
    lost.spec.affinity = term(("metadata.name", "In", ["gone"]), fields=True)
    assert changed([lost, pod("bound", "gone")], node()) == (["a"], ["n1"])


@pytest.mark.parametrize(
    ("old", "new", "deleted"),
    [
        ({"ready": True}, {"ready": False}, []),
        ({"ready": True}, {"ready": True}, ["old"]),
        ({"ready": False}, {"ready": False}, ["old"]),
    ],
)
def test_with_surge_two_pods_stay_while_the_old_one_serves_and_the_new_one_does_not(
    old: dict[str, bool], new: dict[str, bool], deleted: list[str]
) -> None:
    pods = [pod("old", hashed="old", **old), pod("new", **new)]
    assert changed(pods, node(), surge=1) == (deleted, [])


@pytest.mark.parametrize(
    ("unavailable", "ready", "deleted"),
    [(1, [True] * 4, 1), ("50%", [True] * 4, 2), (1, [False, True, True, True], 1), (2, [False] * 4, 4)],
)
def test_a_rolling_update_deletes_as_many_as_may_be_missing_and_all_broken_ones(
    unavailable: int | str, ready: list[bool], deleted: int
) -> None:
    nodes = [node(f"n{number}") for number in range(4)]
    pods = [pod(f"p{number}", f"n{number}", "old", each) for number, each in enumerate(ready)]
    changes = rolling_update(daemonset(unavailable=unavailable), nodes, group_by_node(pods), "new", NOW)
    assert len(changes.delete) == deleted
    assert changes.create == []
    assert {name_of(each) for each, good in zip(pods, ready, strict=True) if not good} <= set(
        map(name_of, changes.delete)
    )


def test_a_surging_update_makes_new_pods_first() -> None:
    nodes = [node(f"n{number}") for number in range(4)]
    pods = [pod(f"p{number}", f"n{number}", "old") for number in range(4)]
    changes = rolling_update(daemonset(surge=2, unavailable=0), nodes, group_by_node(pods), "new", NOW)
    assert (changes.delete, changes.create) == ([], ["n0", "n1"])
    pods.append(pod("q0", "n0", ready=False))
    changes = rolling_update(daemonset(surge=2, unavailable=0), nodes, group_by_node(pods), "new", NOW)
    assert (changes.delete, changes.create) == ([], ["n1"])
    pods[-1] = pod("q0", "n0", ready=True)
    changes = rolling_update(daemonset(surge=2, unavailable=0), nodes, group_by_node(pods), "new", NOW)
    assert ([name_of(each) for each in changes.delete], changes.create) == (["p0"], ["n1", "n2"])


def test_the_status_counts_nodes() -> None:
    nodes = [node("n1"), node("n2"), node("n3"), node("n4", None, NO_SCHEDULE)]
    pods = [pod("a", "n1"), pod("b", "n2", "old", ready=False), pod("d", "n4")]
    status = calculate_status(daemonset(), nodes, group_by_node(pods), "new", NOW, observed=True)
    assert (status.desired_number_scheduled, status.current_number_scheduled, status.number_misscheduled) == (3, 2, 1)
    assert (status.number_ready, status.number_available, status.number_unavailable) == (1, 1, 2)
    assert (status.updated_number_scheduled, status.observed_generation) == (1, 3)


@given(
    count=st.integers(1, 8),
    surge=st.integers(0, 3),
    unavailable=st.integers(0, 3),
    ready=st.lists(st.booleans(), max_size=60),
)
def test_an_update_keeps_its_bounds_and_ends(count: int, surge: int, unavailable: int, ready: list[bool]) -> None:
    subject = daemonset(surge=surge, unavailable=unavailable)
    nodes = [node(f"n{number}") for number in range(count)]
    pods = [pod(f"old{number}", f"n{number}", "old") for number in range(count)]
    least = count - (unavailable or (0 if surge else 1)) if not surge else count
    numbers = iter(range(100_000))
    for step in range(200):
        for changes in (
            manage(subject, nodes, group_by_node(pods), "new", NOW),
            rolling_update(subject, nodes, group_by_node(pods), "new", NOW),
        ):
            if changes.delete or changes.create:
                gone = set(map(name_of, changes.delete))
                pods = [each for each in pods if name_of(each) not in gone]
                pods += [pod(f"new{next(numbers)}", where, ready=False) for where in changes.create]
                break
        serving = {target_node(each) for each in pods if calculate_ready(each)}
        assert len(serving) >= least
        if step >= len(ready) or ready[step]:
            pods = [pod(name_of(each), target_node(each) or "", _hash(each)) for each in pods]
    assert sorted(target_node(each) or "" for each in pods) == sorted(map(name_of, nodes))
    assert {_hash(each) for each in pods} == {"new"}


def calculate_ready(each: Pod) -> bool:
    assert each.status is not None
    return (each.status.conditions or [PodCondition()])[0].status == "True"


def _hash(each: Pod) -> str:
    return ((each.metadata or ObjectMeta()).labels or {})[REVISION_HASH]


def test_failing_pods_are_replaced_ever_more_slowly() -> None:
    backoff, key = FailureBackoff(), ("uid", "n1")
    assert backoff.wait(key, NOW) == 0
    assert backoff.wait(key, NOW + 0.5) == 0.5
    assert backoff.wait(key, NOW + 1) == 0
    assert backoff.wait(key, NOW + 2) == 1
    assert backoff.wait(("uid", "n2"), NOW + 2) == 0
    assert backoff.wait(key, NOW + 10_000) == 0
    assert backoff.wait(key, NOW + 10_000) == 1
