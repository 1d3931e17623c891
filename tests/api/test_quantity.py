"""Quantities parse, compare, add and print as upstream's do."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api import quantity
from pybernetes.api.quantity import Quantity, QuantityError, canonicalize, parse

CANONICAL = [
    ("0", "0"),
    ("0n", "0"),
    ("0Ki", "0"),
    ("-0", "0"),
    ("+0", "0"),
    (".", "0"),
    ("Mi", "0"),
    ("1", "1"),
    ("1.", "1."),
    ("100m", "100m"),
    ("0.1", "100m"),
    (".5", "500m"),
    ("0.5", "500m"),
    ("1000m", "1"),
    ("1500m", "1500m"),
    ("1.5", "1500m"),
    ("1.500", "1.500"),
    ("1000", "1k"),
    ("1200", "1200"),
    ("1500000", "1500k"),
    ("005", "005"),
    ("+5", "+5"),
    ("-5", "-5"),
    ("1Ki", "1Ki"),
    ("8Ki", "8Ki"),
    ("1024Ki", "1Mi"),
    ("1025Ki", "1025Ki"),
    ("1024Mi", "1Gi"),
    ("128974848", "128974848"),
    ("129e6", "129e6"),
    ("129M", "129M"),
    ("123Mi", "123Mi"),
    ("1.5Gi", "1536Mi"),
    ("0.5Ki", "512"),
    ("0.5Mi", "512Ki"),
    ("1.3Gi", "1395864371200m"),
    ("0.0001Ki", "102400u"),
    ("1Ei", "1Ei"),
    ("8Ei", "9223372036854775807"),
    ("9Ei", "9223372036854775807"),
    ("-9Ei", "-9223372036854775807"),
    ("1e3", "1e3"),
    ("1E3", "1E3"),
    ("1000e3", "1e6"),
    ("1e2", "100"),
    ("1e-3", "1e-3"),
    ("1e-2", "10e-3"),
    ("1E", "1E"),
    ("1.1E-9", "2e-9"),
    ("1e-20", "1e-9"),
    ("0.1n", "1n"),
    ("-0.1n", "-1n"),
    ("1.0000000001", "1000000001n"),
    ("12345678901234567890", "12345678901234567890"),
    ("100E", "100E"),
    ("1e2147483647", "10e2147483646"),
    (" 1Gi\n", "1Gi"),
]


@pytest.mark.parametrize(("text", "want"), CANONICAL)
def test_text_becomes_canonical_as_upstream_writes_it(text: str, want: str) -> None:
    assert canonicalize(text) == want


@pytest.mark.parametrize(
    ("value", "want"), [(1, "1"), (1000, "1k"), (0.1, "100m"), (1.5, "1500m"), (1e21, "1e+21"), (None, "0")]
)
def test_numbers_are_taken_like_their_text(value: object, want: str) -> None:
    assert canonicalize(value) == want


@pytest.mark.parametrize("text", ["", "1.1.M", "1+1.0M", "0.1am", "aoeu", "1 Ki", "1KI", "1Ki ", "\u0661", "1\n"])
def test_text_that_does_not_match_is_refused_with_the_pattern(text: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse(text)
    assert str(refused.value) == (
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


@pytest.mark.parametrize(
    "text", ["0.1mi", ".5i", "1i", "1e", "-3.01e-", "1ei5", "1K", "--1", "1+1", "1e99999999999999999999"]
)
def test_an_unknown_suffix_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        parse(text)


@pytest.mark.parametrize(
    "value", [True, {}, [], "9" * 5000, 10**5000, "1e" + "9" * 5000], ids=lambda v: type(v).__name__
)
def test_values_that_are_no_quantity_are_refused(value: object) -> None:
    with pytest.raises(QuantityError):
        canonicalize(value)


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("100m", 1, 100),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("1500m", 2, 1500),
        ("1Ki", 1024, 1024000),
        ("1e30", quantity.MAX_INT64, quantity.MAX_INT64),
        ("1e2147483647", quantity.MAX_INT64, quantity.MAX_INT64),
        ("0", 0, 0),
    ],
)
def test_whole_and_milli_values_round_away_from_zero(text: str, value: int, milli: int) -> None:
    assert parse(text).value() == value
    assert parse(text).milli_value() == milli


@pytest.mark.parametrize(
    ("a", "b", "total", "rest"),
    [
        ("1Gi", "1Gi", "2Gi", "0"),
        ("100m", "900m", "1", "-800m"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1Gi", "1G", "2073741824", "73741824"),
        ("1e3", "1", "1001", "999"),
        ("1Ki", "100m", "1024100m", "1023900m"),
        ("1e2147483646", "1", "1e2147483646", "1e2147483646"),
    ],
)
def test_sums_keep_the_first_format_and_zero_has_none(a: str, b: str, total: str, rest: str) -> None:
    assert str(parse(a) + parse(b)) == total
    assert str(parse(a) - parse(b)) == rest


@pytest.mark.parametrize("text", ["0", "7", "-7", "1Ki", "2000m", "0.5k", "1e3", "1000000000n"])
def test_what_has_no_fraction_is_whole(text: str) -> None:
    assert parse(text).is_whole()


@pytest.mark.parametrize("text", ["1m", "0.5", "1n", "0.0001Ki", "1500500u"])
def test_what_has_a_fraction_is_not_whole_however_small_it_is(text: str) -> None:
    assert not parse(text).is_whole()


def test_rounding_up_keeps_the_text_when_nothing_changes() -> None:
    assert str(parse("1.500").round_up(-3)) == "1.500"
    assert str(parse("1u").round_up(-3)) == "1m"


def test_equal_values_in_different_words_are_equal_and_hash_alike() -> None:
    for a, b in [("1Ki", "1024"), ("1000m", "1"), ("1e3", "1k"), ("0", "0Mi")]:
        assert parse(a) == parse(b)
        assert hash(parse(a)) == hash(parse(b))
    assert parse("1e2147483647") > parse("1e2147483646") > parse("-1e2147483647")


def test_the_caches_stay_bounded() -> None:
    for n in range(10_000):
        canonicalize(str(n))
        parse(str(n))
    assert len(quantity._canonical) <= 4096
    assert len(quantity._parsed) <= 4096


SUFFIXES = {
    **{k: Fraction(10) ** v for k, v in quantity._DECIMAL.items()},
    **{k: Fraction(2) ** v for k, v in quantity._BINARY.items()},
}
numbers = st.from_regex(r"[+-]?[0-9]{1,22}(\.[0-9]{1,14})?", fullmatch=True)


def exact(quantity: Quantity) -> Fraction:
    return Fraction(quantity.decimal())


@given(numbers, st.sampled_from(sorted(SUFFIXES)))
def test_a_parsed_value_is_exact_down_to_nano_and_rounds_away_from_zero(number: str, suffix: str) -> None:
    got = parse(number + suffix)
    want = Fraction(Decimal(number)) * SUFFIXES[suffix]
    nanos = abs(want) * 10**9
    rounded = -(-nanos.numerator // nanos.denominator)
    if suffix in quantity._BINARY:
        rounded = min(rounded, quantity.MAX_INT64 * 10**9) if rounded > quantity.MAX_INT64 * 10**9 else rounded
    assert abs(exact(got)) * 10**9 == rounded
    assert got.sign() == (want > 0) - (want < 0)


@given(numbers, st.sampled_from([s for s in SUFFIXES if s not in "PE"] + ["e3", "E-3", "e7"]))
def test_canonical_text_means_the_same_and_stays(number: str, suffix: str) -> None:
    first = parse(number + suffix)
    if abs(exact(first)) >= 10**20:
        return  # past the largest suffix upstream loses the magnitude
    again = parse(str(first))
    assert again == first
    assert str(again) == str(first)


@given(numbers, numbers, st.sampled_from(sorted(SUFFIXES)), st.sampled_from(sorted(SUFFIXES)))
def test_comparing_and_adding_agree_with_exact_arithmetic(a: str, b: str, s: str, t: str) -> None:
    x, y = parse(a + s), parse(b + t)
    assert (x < y) == (exact(x) < exact(y))
    assert (x == y) == (exact(x) == exact(y))
    assert exact(x + y) == exact(x) + exact(y)
    assert exact(x - y) == exact(x) - exact(y)


@given(st.text(max_size=12))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        canonicalize(text)
    except QuantityError:
        pass
