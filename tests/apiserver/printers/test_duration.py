from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.apiserver.printers.duration import human, since

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (3 * MINUTE + 25, "3m25s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 30, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 59, "3h"),
        (7 * HOUR + 5 * MINUTE, "7h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"),
        (48 * HOUR - 1, "47h"),
        (48 * HOUR, "2d"),
        (5 * DAY + 12 * HOUR, "5d12h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY + 12 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR + 30 * DAY, "2y30d"),
        (3 * YEAR + 1, "3y"),
        (8 * YEAR + 300 * DAY, "8y"),
    ],
)
def test_spans_get_coarser_the_longer_they_are(seconds: float, text: str) -> None:
    assert human(seconds) == text


@given(st.integers(0, 40 * YEAR))
def test_a_span_is_short_and_never_too_long(seconds: int) -> None:
    text = human(seconds)
    assert len(text) <= 6
    sizes = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
    total, number = 0, ""
    for char in text:
        if char.isdigit():
            number += char
        else:
            total, number = total + int(number) * sizes[char], ""
    assert total <= seconds < max(total * 1.2, total + 1)


def test_times_are_counted_from_now() -> None:
    assert since("1970-01-01T00:00:10Z", 15) == "5s"
    assert since("1970-01-01T00:00:10.500000Z", 15) == "4s"
    assert since(None, 15) == "<unknown>"
