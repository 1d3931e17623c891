"""How large each ReplicaSet should be: rolling steps, proportional scaling, history; invariants over whole rollouts."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pybernetes.api.apps.v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.controllers.deployment import annotations
from pybernetes.controllers.deployment.scaling import (
    fenceposts,
    is_scaling_event,
    max_surge,
    max_unavailable,
    new_replicas,
    proportional,
    rolling,
    to_clean_up,
)

IntOrString = int | str


def deployment(
    replicas: int, surge: IntOrString = 0, unavailable: IntOrString = 0, kind: str = "RollingUpdate", **spec: object
) -> Deployment:
    rolling_update = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    strategy = DeploymentStrategy(type=kind, rolling_update=rolling_update if kind == "RollingUpdate" else None)
    return Deployment(
        metadata=ObjectMeta(name="web", uid="d"),
        spec=DeploymentSpec(replicas=replicas, strategy=strategy, **spec),  # type: ignore[arg-type]
        status=DeploymentStatus(),
    )


def replicaset(
    name: str, replicas: int, available: int | None = None, age: int = 0, notes: dict[str, str] | None = None
) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(
            name=name, uid=name, creation_timestamp=rfc3339(1_700_000_000 - age), annotations=notes, generation=1
        ),
        spec=ReplicaSetSpec(replicas=replicas),
        status=ReplicaSetStatus(
            replicas=replicas, available_replicas=replicas if available is None else available, observed_generation=1
        ),
    )


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (2, "0%", "1%", (0, 1)),
        (1, "1%", "25%", (1, 0)),
        (10, 0, 0, (0, 1)),
        (4, 2, 3, (2, 3)),
        (5, "100%", "100%", (5, 5)),
    ],
)
def test_surge_is_rounded_up_and_unavailable_down(
    replicas: int, surge: IntOrString, unavailable: IntOrString, expected: tuple[int, int]
) -> None:
    assert fenceposts(deployment(replicas, surge, unavailable)) == expected


def test_no_more_can_be_unavailable_than_there_are() -> None:
    assert max_unavailable(deployment(2, 0, 5)) == 2
    assert max_unavailable(deployment(0, 0, 5)) == 0
    assert max_surge(deployment(3, kind="Recreate")) == 0
    assert max_unavailable(deployment(3, kind="Recreate")) == 0


def test_a_new_replicaset_starts_with_the_surge() -> None:
    new, old = replicaset("new", 0), replicaset("old", 10, age=9)
    assert new_replicas(deployment(10, 3, 2), new, [old, new]) == 3
    assert new_replicas(deployment(10, 0, 2), new, [old, new]) == 0
    assert new_replicas(deployment(10, kind="Recreate"), new, [old, new]) == 10
    assert new_replicas(deployment(10, 3, 2), new, [new]) == 10


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "new", "old", "steps"),
    [
        pytest.param(10, 3, 2, (0, 0), [(10, 10)], [("new", 3)], id="grows by the surge"),
        pytest.param(10, 3, 2, (3, 0), [(10, 10)], [("old0", 8)], id="shrinks by the unavailable"),
        pytest.param(10, 3, 2, (5, 0), [(8, 8)], [], id="waits for the new pods"),
        pytest.param(10, 3, 2, (5, 0), [(8, 7)], [], id="a broken old pod beside broken new ones changes nothing"),
        pytest.param(10, 3, 2, (5, 5), [(8, 8)], [("old0", 3)], id="goes on when they are available"),
        pytest.param(10, 3, 2, (10, 10), [(3, 3)], [("old0", 0)], id="ends"),
        pytest.param(10, 3, 2, (10, 10), [(0, 0)], [], id="has ended"),
        pytest.param(10, 3, 2, (12, 12), [(0, 0)], [("new", 10)], id="too large a new one shrinks"),
        pytest.param(10, 0, 2, (0, 0), [(10, 3)], [("old0", 8)], id="broken old pods go, as many as may be missing"),
        pytest.param(10, 3, 2, (0, 0), [(5, 5), (8, 3)], [("old1", 3)], id="roll over: broken ones first"),
    ],
)
def test_a_step_of_a_rolling_update(
    replicas: int,
    surge: IntOrString,
    unavailable: IntOrString,
    new: tuple[int, int],
    old: list[tuple[int, int]],
    steps: list[tuple[str, int]],
) -> None:
    olds = [replicaset(f"old{index}", *each, age=10 - index) for index, each in enumerate(old)]
    done = rolling(deployment(replicas, surge, unavailable), replicaset("new", *new), olds)
    assert [(step.replicaset.metadata.name, step.replicas) for step in done if step.replicaset.metadata] == steps


@given(
    replicas=st.integers(0, 20),
    surge=st.integers(0, 20),
    unavailable=st.integers(0, 20),
    old=st.lists(st.integers(0, 20), max_size=3),
    readiness=st.lists(st.integers(0, 20), min_size=1, max_size=80),
)
def test_a_rollout_keeps_its_bounds_and_ends(
    replicas: int, surge: int, unavailable: int, old: list[int], readiness: list[int]
) -> None:
    """Played with pods that become available in random portions; no step may break a promise."""
    subject = deployment(replicas, surge, unavailable)
    sets = {f"old{index}": [size, size] for index, size in enumerate(old)} | {"new": [0, 0]}
    most = max(replicas + max_surge(subject), sum(old))
    least = min(replicas - max_unavailable(subject), sum(old))
    for step in range(400):
        objects = {name: replicaset(name, *sizes, age=5) for name, sizes in sets.items()}
        new = objects.pop("new")
        for scale in rolling(subject, new, list(objects.values())):
            assert scale.replicaset.metadata is not None
            sizes = sets[scale.replicaset.metadata.name or ""]
            sizes[0] = scale.replicas
            sizes[1] = min(sizes[1], scale.replicas)
        assert sum(size for size, _ in sets.values()) <= most
        assert sum(available for _, available in sets.values()) >= least
        if step >= len(readiness) or readiness[step]:
            ready = readiness[step] if step < len(readiness) else 20
            sets["new"][1] = min(sets["new"][0], sets["new"][1] + ready)
    assert sets.pop("new") == [replicas, replicas]
    assert all(sizes == [0, 0] for sizes in sets.values())


def sized(name: str, replicas: int, age: int, before: int, most: int) -> ReplicaSet:
    notes = {annotations.DESIRED_REPLICAS: str(before), annotations.MAX_REPLICAS: str(most)}
    return replicaset(name, replicas, age=age, notes=notes)


@pytest.mark.parametrize(
    ("replicas", "sizes", "expected"),
    [
        pytest.param(15, (8, 5), {"new": 7, "old": 11}, id="up from 10 with a surge of 3: proportional to 8 and 5"),
        pytest.param(5, (8, 5), {"new": 3, "old": 5}, id="down"),
        pytest.param(0, (8, 5), {"new": 0, "old": 0}, id="to nothing"),
        pytest.param(10, (8, 5), {"new": 5, "old": 8}, id="unchanged: annotations only"),
    ],
)
def test_a_change_of_replicas_is_shared(replicas: int, sizes: tuple[int, int], expected: dict[str, int]) -> None:
    old, new = sized("old", sizes[0], 9, 10, 13), sized("new", sizes[1], 0, 10, 13)
    steps = proportional(deployment(replicas, 3, 2), new, [old])
    assert {step.replicaset.metadata.name: step.replicas for step in steps if step.replicaset.metadata} == expected
    assert all(step.force for step in steps)


def test_a_single_active_replicaset_takes_it_all() -> None:
    old, new = replicaset("old", 4, age=9), replicaset("new", 0)
    assert [(step.replicaset, step.replicas) for step in proportional(deployment(7, 3, 2), new, [old])] == [(old, 7)]
    assert proportional(deployment(4, 3, 2), new, [old]) == []
    empty = replicaset("old", 0, age=9)
    assert [step.replicaset for step in proportional(deployment(7, 3, 2), new, [empty])] == [new]
    assert [step.replicaset for step in proportional(deployment(7, 3, 2), None, [empty])] == [empty]
    assert proportional(deployment(7, 3, 2), None, []) == []


def test_a_saturated_new_one_ends_the_old_ones() -> None:
    new, old = sized("new", 5, 0, 5, 6), replicaset("old", 2, age=9)
    assert [(step.replicaset, step.replicas) for step in proportional(deployment(5, 1, 0), new, [old])] == [(old, 0)]


@given(
    replicas=st.integers(0, 50),
    surge=st.integers(0, 10),
    sizes=st.lists(st.integers(1, 30), min_size=2, max_size=5),
)
@example(replicas=1, surge=2, sizes=[2, 2, 2, 2, 2])
def test_shares_add_up_to_what_is_allowed_unless_the_largest_would_be_negative(
    replicas: int, surge: int, sizes: list[int]
) -> None:
    """The largest ReplicaSet takes what rounding left over, but no less than 0: then too many pods stay, never too few.

    The next sync scales down the rest.
    """
    before = sum(sizes)
    sets = [sized(f"r{index}", size, index, before, before) for index, size in enumerate(sizes)]
    subject = deployment(replicas, surge, 1)
    steps = proportional(subject, sets[0], sets[1:])
    assert steps
    if steps[0].force:
        allowed = replicas + max_surge(subject) if replicas else 0
        total = sum(step.replicas for step in steps)
        assert all(step.replicas >= 0 for step in steps)
        assert total == allowed or (steps[0].replicas == 0 and allowed < total < before)


def test_five_replicasets_of_two_shrink_to_four_pods_where_three_are_allowed() -> None:
    sets = [sized(f"r{index}", 2, index, 10, 10) for index in range(5)]
    steps = proportional(deployment(1, 2, 1), sets[0], sets[1:])
    assert [step.replicas for step in steps] == [0, 1, 1, 1, 1]


def test_a_scaling_event_is_seen_in_the_annotation_of_an_active_one() -> None:
    assert is_scaling_event(deployment(5), [sized("a", 3, 0, 3, 4)])
    assert not is_scaling_event(deployment(3), [sized("a", 3, 0, 3, 4)])
    assert not is_scaling_event(deployment(5), [sized("a", 0, 0, 3, 4)])
    assert not is_scaling_event(deployment(5), [replicaset("a", 3, notes={annotations.DESIRED_REPLICAS: "x"})])


def test_the_oldest_revisions_beyond_the_limit_are_cleaned_up() -> None:
    def old(name: str, number: int, replicas: int = 0) -> ReplicaSet:
        return replicaset(name, replicas, notes={annotations.REVISION: str(number)})

    sets = [old("c", 10), old("a", 2), old("busy", 1, replicas=1), old("b", 9)]
    found = to_clean_up(deployment(1, revision_history_limit=2), sets)
    assert [each.metadata.name for each in found if each.metadata] == ["a"]
    assert len(to_clean_up(deployment(1, revision_history_limit=0), sets)) == 3
    assert to_clean_up(deployment(1, revision_history_limit=2**31 - 1), sets) == []
    assert to_clean_up(deployment(1), sets) == []
    unseen = old("unseen", 1)
    unseen.status = ReplicaSetStatus()
    assert to_clean_up(deployment(1, revision_history_limit=0), [unseen]) == []
