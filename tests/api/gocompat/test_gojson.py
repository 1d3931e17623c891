"""What is wrong with a body, in Go's words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.gocompat import gojson
from pybernetes.api.gocompat.gojson import Number, Pairs, SyntaxProblem


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "unexpected end of JSON input"),
        (b" {", "unexpected end of JSON input"),
        (b'{"a"', "unexpected end of JSON input"),
        (b'"a', "unexpected end of JSON input"),
        (b"-", "unexpected end of JSON input"),
        (b"tru", "unexpected end of JSON input"),
        (b"x", "invalid character 'x' looking for beginning of value"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"{a}", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 2}', "invalid character '2' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
        (b"nul1", "invalid character '1' in literal null (expecting 'l')"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b"01", "invalid character '1' after top-level value"),
        (b'"\n"', "invalid character '\\n' in string literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12x4"', "invalid character 'x' in \\u hexadecimal character escape"),
        (b"'a'", "invalid character '\\'' looking for beginning of value"),
        (b'{1"', "invalid character '1' looking for beginning of object key string"),
        (b"NaN", "invalid character 'N' looking for beginning of value"),
        (b"[" * 10_001, "invalid character '[' exceeded max depth"),
    ],
)
def test_a_syntax_error_is_described_as_go_does(body: bytes, problem: str) -> None:
    assert gojson.syntax_problem(body) == problem
    with pytest.raises(SyntaxProblem):
        gojson.loads(body)


def test_objects_keep_their_repeated_keys_and_numbers_their_text() -> None:
    value = gojson.loads(b'{"a":1,"a":1.50,"b":[1e3]}')
    assert value == [("a", 1), ("a", "1.50"), ("b", ["1e3"])]
    assert isinstance(value, Pairs)
    assert isinstance(value[1][1], Number)
    assert gojson.plain(value) == {"a": 1.5, "b": [1000.0]}
    assert gojson.plain(2**70) == float(2**70)


def test_what_is_no_text_becomes_the_replacement_character() -> None:
    assert gojson.loads(b'"\xff"') == "\ufffd"
    assert gojson.loads(rb'"\ud800x\ud83d\ude00\\ud800"') == "\ufffdx\U0001f600\\ud800"


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    with pytest.raises(SyntaxProblem, match="exceeded max depth"):
        gojson.loads(b'{"a":' * 100_000)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values, st.sampled_from([None, 1]))
def test_valid_json_has_no_problem(value: object, indent: int | None) -> None:
    assert gojson.syntax_problem(json.dumps(value, indent=indent).encode()) is None


@given(st.binary(max_size=20) | st.text(alphabet='{}[]",:1e.-tn\\u ', max_size=12).map(str.encode))
def test_a_problem_is_found_exactly_where_python_finds_one(body: bytes) -> None:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(body.decode("utf-8", "replace"), parse_constant=refuse)
        fine = True
    except ValueError:
        fine = False
    assert (gojson.syntax_problem(body) is None) == fine
