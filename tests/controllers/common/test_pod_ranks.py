"""Which pods a shrinking set gives up: each rule alone, in the order in which they count."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.api.core.v1.container import Container
from pybernetes.api.core.v1.pod import ContainerStatus, Pod, PodCondition, PodSpec, PodStatus
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.controllers.common.pod_ranks import DELETION_COST, deletion_cost, pods_to_delete

NOW = 1_700_000_000.0


def pod(
    name: str,
    *,
    node: str = "n1",
    phase: str = "Running",
    ready: float | None = 100.0,
    age: float = 1000.0,
    restarts: int = 0,
    sidecar_restarts: int = 0,
    cost: str | None = None,
) -> Pod:
    conditions = []
    if ready is not None:
        since = rfc3339(NOW - ready) if ready else None
        conditions.append(PodCondition(type="Ready", status="True", last_transition_time=since))
    return Pod(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            creation_timestamp=rfc3339(NOW - age),
            annotations={DELETION_COST: cost} if cost is not None else None,
        ),
        spec=PodSpec(node_name=node or None, init_containers=[Container(name="side", restart_policy="Always")]),
        status=PodStatus(
            phase=phase,
            conditions=conditions,
            container_statuses=[ContainerStatus(name="main", restart_count=restarts)],
            init_container_statuses=[ContainerStatus(name="side", restart_count=sidecar_restarts)],
        ),
    )


@pytest.mark.parametrize(
    ("victim", "survivor"),
    [
        pytest.param({"node": "", "ready": 100.0}, {"phase": "Pending", "ready": None}, id="no node"),
        pytest.param({"phase": "Pending"}, {"phase": "Unknown"}, id="pending before unknown"),
        pytest.param({"phase": "Unknown"}, {"phase": "Running"}, id="unknown before running"),
        pytest.param({"ready": None, "cost": "9"}, {"cost": "-9"}, id="not ready before any cost"),
        pytest.param({"cost": "-1", "ready": 1000.0}, {"ready": 1.0}, id="cost below the default"),
        pytest.param({"cost": "1", "ready": 1000.0}, {"cost": "2", "ready": 1.0}, id="cost before age"),
        pytest.param({"ready": 10.0}, {"ready": 1000.0}, id="ready for a shorter time"),
        pytest.param({"ready": 0.0}, {"ready": 1.0}, id="ready since an unknown moment"),
        pytest.param({"restarts": 3, "age": 9000}, {"restarts": 1, "age": 5}, id="restarts before age"),
        pytest.param({"sidecar_restarts": 2}, {"sidecar_restarts": 1}, id="restarts of sidecars"),
        pytest.param({"age": 10.0}, {"age": 1000.0}, id="younger"),
    ],
)
def test_the_first_rule_that_tells_them_apart_decides(victim: dict[str, Any], survivor: dict[str, Any]) -> None:
    for names in (("a", "b"), ("b", "a")):  # neither the uid nor the order of the list plays a part
        gone, stays = pod(names[0], **victim), pod(names[1], **survivor)
        assert pods_to_delete([gone, stays], [], 1, NOW) == [gone]
        assert pods_to_delete([stays, gone], [], 1, NOW) == [gone]


def test_ages_of_one_magnitude_are_equal_and_the_uid_decides() -> None:
    older, younger = pod("a", age=1010.0), pod("b", age=1000.0)
    assert pods_to_delete([younger, older], [], 1, NOW) == [older]


def test_a_pod_beside_related_ones_goes_before_a_lonely_one() -> None:
    lonely, crowded = pod("a", node="n1", ready=1.0), pod("b", node="n2", ready=1000.0)
    related = [lonely, crowded, pod("other", node="n2")]
    assert pods_to_delete([lonely, crowded], related, 1, NOW) == [crowded]


def test_related_pods_that_have_ended_are_no_company() -> None:
    one, other = pod("a", node="n1"), pod("b", node="n2")
    related = [one, other, pod("done", node="n2", phase="Succeeded")]
    assert pods_to_delete([one, other], related, 1, NOW) == [one]


def test_all_pods_go_unsorted_when_all_must_go() -> None:
    pods = [pod("b"), pod("a")]
    assert pods_to_delete(pods, [], 2, NOW) == pods


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        ("05", 0),
        ("+5", 0),
        ("", 0),
        ("x", 0),
        ("2147483647", 2147483647),
        ("2147483648", 0),
        ("-2147483648", -2147483648),
    ],
)
def test_the_cost_is_a_32_bit_number_or_nothing(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", cost=text)) == cost
