"""How much a simulated container uses, over its life."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.kubelet.simulated.curves import Curve, read_curve

LINES = "0s=100m, 10s=1100m, 20s=100m"


@pytest.mark.parametrize(
    ("text", "age", "wanted"),
    [
        ("250m", 1000, 0.25),
        ("64Mi", 0, 64 << 20),
        (LINES, 0, 0.1),
        (LINES, 5, 0.6),
        (LINES, 10, 1.1),
        (LINES, 15, 0.6),
        (LINES, 100, 0.1),
        (f"{LINES}, repeat", 25, 0.6),
        ("10s=2, 20s=4", 3, 2.0),
        ("100m..300m", 0, 0.1),
        ("100m..300m", 150, 0.3),
        ("100m..300m", 225, 0.2),
        ("100m..300m", 300, 0.1),
    ],
)
def test_how_much_at_which_age(text: str, age: float, wanted: float) -> None:
    assert read_curve(text).at(age) == pytest.approx(wanted)


def test_what_was_used_since_the_start() -> None:
    assert read_curve("2").total(30) == 60
    assert read_curve(LINES).total(20) == pytest.approx(12)
    assert read_curve(LINES).total(30) == pytest.approx(13)
    assert read_curve(f"{LINES}, repeat").total(50) == pytest.approx(24 + 6)


@pytest.mark.parametrize(
    ("text", "limit", "start", "wanted"),
    [
        ("1", 1, 0, None),
        ("2", 1, 7, 7),
        (LINES, 1.1, 0, None),
        (LINES, 0.6, 0, 5),
        (LINES, 0.6, 16, None),
        (f"{LINES}, repeat", 0.6, 16, 25),
        ("0s=5, 10s=1, repeat", 3, 8, 10),
        ("0s=5, 10s=5, 20s=0", 3, 0, 0),
    ],
)
def test_when_it_is_more_than_a_limit(text: str, limit: float, start: float, wanted: float | None) -> None:
    assert read_curve(text).first_above(limit, start) == (None if wanted is None else pytest.approx(wanted))


def test_a_limit_cuts_it_off() -> None:
    capped = read_curve(LINES).capped(0.6)
    assert [capped.at(age) for age in (0, 5, 7, 15, 20)] == pytest.approx([0.1, 0.6, 0.6, 0.6, 0.1])
    assert capped.total(20) == pytest.approx(1.75 + 6 + 1.75)


def test_each_container_can_be_at_another_place() -> None:
    moved = read_curve("1..3").moved(75)
    assert [moved.at(age) for age in (0, 75, 225)] == [2, 3, 1]
    assert moved.total(150) == pytest.approx(2.5 * 150)
    assert moved.first_above(2.5) == pytest.approx(37.5)


points = st.lists(st.tuples(st.floats(0.1, 50), st.floats(0, 10)), min_size=1, max_size=5)


@given(points, st.floats(0, 10), st.floats(0, 500), st.booleans())
def test_what_was_used_only_grows_and_never_faster_than_the_limit(
    steps: list[tuple[float, float]], limit: float, age: float, repeat: bool
) -> None:
    age_of, made = 0.0, [(0.0, steps[0][1])]
    for step, value in steps:
        age_of += step
        made.append((age_of, value))
    curve = Curve(tuple(made), age_of if repeat else 0.0).capped(limit)
    used = curve.total(age + 1) - curve.total(age)
    assert -1e-6 <= used <= limit + 1e-6


@pytest.mark.parametrize(
    "text", ["", "a", "-1", "2..1", "1..", "0s=1, 0s=2", "5s=1, 3s=2", "0s=1, x", "0s=1, repeat", "-5s=1", "x=1"]
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_curve(text)
