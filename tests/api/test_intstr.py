"""Numbers or strings, absolute or in percent."""

from __future__ import annotations

import pytest

from pybernetes.api import intstr


@pytest.mark.parametrize(
    ("value", "total", "up", "want"),
    [
        (3, 10, True, 3),
        ("25%", 10, True, 3),
        ("25%", 10, False, 2),
        ("0%", 10, True, 0),
        ("100%", 7, False, 7),
        ("150%", 10, True, 15),
        ("-10%", 10, False, -1),
        ("99999999999999999999%", 3, True, 2**31 - 1),
        ("9" * 5000 + "%", 3, False, 2**31 - 1),
        ("99999999999999999999%", 0, True, 0),
    ],
)
def test_percentages_scale_and_round_as_asked(value: int | str, total: int, up: bool, want: int) -> None:
    assert intstr.scaled_value(value, total, up) == want


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "nil value for IntOrString"),
        ("3", "invalid value for IntOrString: invalid type: string is not a percentage"),
        (
            "x%",
            'invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax',
        ),
    ],
)
def test_other_strings_are_refused_in_upstreams_words(value: str | None, message: str) -> None:
    with pytest.raises(ValueError, match="IntOrString") as refused:
        intstr.scaled_value(value, 10, True)
    assert str(refused.value) == message


def test_text_becomes_a_number_if_it_is_one() -> None:
    assert [intstr.parse(text) for text in ("80", "-1", "http", "2147483648")] == [80, -1, "http", "2147483648"]
    assert [intstr.int_value(value) for value in (80, "80", "http")] == [80, 80, 0]
    assert intstr.is_percent("5%")
    assert not intstr.is_percent(5)
