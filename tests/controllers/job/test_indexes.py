from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.controllers.job.indexes import Indexes

SETS = st.frozensets(st.integers(0, 60))


@pytest.mark.parametrize(
    ("text", "completions", "expected"),
    [
        ("", 5, ""),
        ("0", 5, "0"),
        ("0,1", 5, "0,1"),
        ("0-3,5,7-9", 20, "0-3,5,7-9"),
        ("0,1,2", 5, "0-2"),
        ("0-9", 4, "0-3"),
        ("2,7", 5, "2"),
        ("1-x,3,-,4", 9, "3,4"),
        ("5-3", 9, ""),
    ],
)
def test_text_is_read_up_to_the_number_of_completions_and_written_in_short(
    text: str, completions: int, expected: str
) -> None:
    assert str(Indexes.parse(text, completions)) == expected


@given(SETS, SETS)
def test_intervals_behave_as_sets(left: frozenset[int], right: frozenset[int]) -> None:
    one, other = Indexes.of(left), Indexes.of(right)
    assert one | other == Indexes.of(left | right)
    assert one & other == Indexes.of(left & right)
    assert len(one) == len(left)
    assert [index for index in range(61) if index in one] == sorted(left)
    assert list(one.missing(40)) == [index for index in range(40) if index not in left]
    assert Indexes.parse(str(one), 61) == one
