"""Thousands of digits, wherever a user can write some: an answer, and never Python's refusal to convert them."""

from __future__ import annotations

from functools import reduce

import pytest

from pybernetes.api import labels
from pybernetes.api.apiextensions.patterns import compile_pattern
from pybernetes.api.apps.shared import amount
from pybernetes.api.cel.libraries import network, semver, strings
from pybernetes.api.cel.values import EvaluationError
from pybernetes.api.core.connect import _number, _port
from pybernetes.api.quantity import MAX_INT64, Quantity, QuantityError, parse

MANY = "9" * 5000


@pytest.mark.parametrize(
    "texts",
    [
        ["9" * 2900 + "e900", "1"],
        ["9" * 2900 + "e990", "1", "1n"],
        [f"9e{exponent}" for exponent in range(90_000, 0, -900)],
        [f"{'9' * 2000}e{exponent}" for exponent in range(0, 90_000, 900)],
        ["9" * 2990 + "E"] * 50,
        ["1e2147483647", "1e-9", "1e1000"],
        ["9" * 2900, "1Ki", "9" * 2900 + "Ei"],
    ],
)
def test_sums_of_quantities_have_a_text_whatever_their_digits(texts: list[str]) -> None:
    quantities = [parse(text) for text in texts]
    for total in (reduce(Quantity.__add__, quantities), reduce(Quantity.__add__, reversed(quantities))):
        assert len(str(total)) < 4300
        assert total.cmp(quantities[0]) >= 0
        assert total.value() == MAX_INT64
        assert (total - total).is_zero()
        assert str(total * 3)
        assert parse("1") < total


def test_a_sum_of_usual_numbers_is_exact() -> None:
    total = reduce(Quantity.__add__, [parse("1n")] * 10, parse("9223372036854775807"))
    assert total == parse("9223372036854775807.00000001")


def test_a_quantity_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(QuantityError):
        parse(MANY)


def test_a_percentage_beyond_int64_counts_as_the_greatest_number() -> None:
    assert amount("99999999999999999999%") == MAX_INT64
    assert amount(f"{MANY}%") == MAX_INT64
    assert amount("0025%") == 25


@pytest.mark.parametrize("read", [_number, _port])
def test_a_number_in_a_query_that_is_too_long_is_out_of_range(read: object) -> None:
    with pytest.raises(ValueError, match="value out of range"):
        read(MANY)  # type: ignore[operator]


def test_expressions_with_thousands_of_digits_end_with_their_own_errors() -> None:
    with pytest.raises(EvaluationError, match="value out of range"):
        semver._number(MANY, "Major")
    assert semver._compare_parts(MANY, MANY[:-1]) == 1
    assert semver._compare_parts("9", "10") == -1
    assert network._why(f"1.2.3.{MANY}") == "IPv4 field has value >255"
    with pytest.raises(EvaluationError, match="precision"):
        strings._format(f"%.{MANY}f", [1.0])
    assert strings._format("%.3f", [1.0]) == "1.000"


def test_a_pattern_with_a_count_of_thousands_of_digits_is_read() -> None:
    assert compile_pattern(f"a{{{MANY}}}").search("aaa") is None
    assert compile_pattern(f"[{{{MANY}}}]").search("9") is not None


def test_a_selector_compares_no_numbers_beyond_int64() -> None:
    selector = labels.parse(f"a>{'9' * 15}")
    assert not selector.matches({"a": MANY})
