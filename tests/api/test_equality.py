"""What counts as a change."""

from __future__ import annotations

import pytest

from pybernetes.api.core.v1.container import Container
from pybernetes.api.core.v1.pod import PodSpec
from pybernetes.api.equality import semantically_equal


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (None, [], True),
        (None, {}, True),
        (None, "", True),
        ([], None, True),
        (None, 0, False),
        (None, False, False),
        (None, ["a"], False),
        (["a"], None, False),
        ({"a": None}, {"a": {}}, True),
        ({"a": "1"}, {"a": "2"}, False),
        ({"a": "1"}, {"b": "1"}, False),
        ([1, 2], [2, 1], False),
        ([{"a": []}], [{"a": None}], True),
        (PodSpec(), PodSpec(node_selector={}), True),
        (PodSpec(), PodSpec(host_network=True), False),
        (PodSpec(containers=[Container(name="a")]), PodSpec(containers=[Container(name="a", args=[])]), True),
        (PodSpec(containers=[Container(name="a")]), PodSpec(containers=[Container(name="b", args=[])]), False),
        (PodSpec(), Container(), False),
        (None, PodSpec(), False),
    ],
)
def test_absent_and_empty_mean_the_same(one: object, other: object, equal: bool) -> None:
    assert semantically_equal(one, other) is equal
