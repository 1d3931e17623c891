"""Tolerations that cover others, found without comparing each with each."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.core.tolerations import Covering, merge_tolerations
from pybernetes.api.core.v1 import Toleration

tolerations = st.builds(
    Toleration,
    key=st.sampled_from((None, "", "a", "b")),
    operator=st.sampled_from((None, "", "Equal", "Exists", "Lt")),
    value=st.sampled_from((None, "", "x", "y")),
    effect=st.sampled_from((None, "", "NoSchedule", "NoExecute")),
    toleration_seconds=st.sampled_from((None, 0, 5, 9)),
)


def covers(wide: Toleration, narrow: Toleration) -> bool:
    """The rule for two tolerations."""
    if wide == narrow:
        return True
    if (narrow.key or "") != (wide.key or "") and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect and wide.effect != narrow.effect:
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in (None, "", "Equal"):
        return narrow.operator == "Equal" and (narrow.value or "") == (wide.value or "")
    return wide.operator == "Exists"


@given(st.lists(tolerations, max_size=8), tolerations)
def test_one_of_many_covers_a_toleration_if_it_would_alone(many: list[Toleration], one: Toleration) -> None:
    assert Covering(many).covers(one) == any(covers(each, one) for each in many)


@given(st.lists(tolerations, max_size=6), st.lists(tolerations, max_size=3))
def test_merging_leaves_out_what_another_covers(first: list[Toleration], second: list[Toleration]) -> None:
    everything = [*first, *second]
    expected: list[Toleration] = []
    for index, each in enumerate(everything):
        others = [*expected, *(other for other in everything[index + 1 :] if other != each)]
        if not any(covers(other, each) for other in others):
            expected.append(each)
    assert merge_tolerations(first, second) == expected


def test_equal_tolerations_are_merged_to_one() -> None:
    one = Toleration(key="a", operator="Exists")
    assert merge_tolerations(list(itertools.repeat(one, 50_000)), [one]) == [one]
