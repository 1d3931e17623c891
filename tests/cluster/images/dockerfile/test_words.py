"""Words of Dockerfiles: the rules of docker's reference, and no surprise for anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.cluster.images.dockerfile import words

VARIABLES = {"A": "a", "EMPTY": "", "PATH": "/usr/bin:/bin", "FILE": "a.tar.gz", "S": "x y"}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("plain", "plain"),
        ("$A", "a"),
        ("${A}b", "ab"),
        ("$Ab", ""),
        ("\\$A", "$A"),
        ("\\\\$A", "\\a"),
        ("'$A'", "$A"),
        ('"$A"', "a"),
        ('"\\$A"', "$A"),
        ('"\\n"', "\\n"),
        ("$", "$"),
        ("$.", "$."),
        ("a$", "a$"),
        ("${MISSING}", ""),
        ("${MISSING:-d}", "d"),
        ("${MISSING-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY-d}", ""),
        ("${A:-d}", "a"),
        ("${A:+d}", "d"),
        ("${EMPTY:+d}", ""),
        ("${EMPTY+d}", "d"),
        ("${MISSING:+d}", ""),
        ("${MISSING:-${A}x}", "ax"),
        ("${MISSING:-'$A'}", "$A"),
        ("${A:?must be}", "a"),
        ("${FILE#*.}", "tar.gz"),
        ("${FILE##*.}", "gz"),
        ("${FILE%.*}", "a.tar"),
        ("${FILE%%.*}", "a"),
        ("${FILE%z}", "a.tar.g"),
        ("${PATH/bin/x}", "/usr/x:/bin"),
        ("${PATH//bin/x}", "/usr/x:/x"),
        ("${PATH//bin}", "/usr/:/"),
        ("${FILE/a.t?r/b}", "b.gz"),
        ("a b", "a b"),
    ],
)
def test_variables_are_put_in(word: str, expected: str) -> None:
    assert words.expand(word, VARIABLES) == expected


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("${A", "closing brace"),
        ("${}", "no name"),
        ("${A:=d}", "unsupported modifier"),
        ("${A:", "unsupported modifier"),
        ("'a", "single quote"),
        ('"a', "double quote"),
        ("${MISSING:?say it}", "MISSING: say it"),
        ("${A:-" * 100, "substitutions in each other"),
    ],
)
def test_errors_are_reported(word: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        words.expand(word, {**VARIABLES, "A": ""})


def test_the_escape_character_may_be_another() -> None:
    assert words.expand("C:\\x`$A", VARIABLES, "`") == "C:\\x$A"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=b", [("A", "b")]),
        ("A=b C=d", [("A", "b"), ("C", "d")]),
        ('A="b c" D=e', [("A", '"b c"'), ("D", "e")]),
        ("A=b\\ c", [("A", "b\\ c")]),
        ("A the rest  of it", [("A", "the rest  of it")]),
        ("A =b", [("A", "=b")]),
        ("A=", [("A", "")]),
    ],
)
def test_pairs_are_read_in_both_forms(text: str, expected: list[tuple[str, str]]) -> None:
    assert words.pairs(text) == expected


@pytest.mark.parametrize("text", ["A", "", "A=b c", "=b"])
def test_an_invalid_pair_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match=r"NAME=VALUE|no name"):
        words.pairs(text)


def test_a_here_document_keeps_its_quotes() -> None:
    assert words.expand_text("say \"$A\" '$A' \\$A\n", VARIABLES) == "say \"a\" 'a' $A\n"


@given(st.text(alphabet="aA${}:-+?#%/'\"\\ *", max_size=40))
def test_any_word_has_a_value_or_an_error(word: str) -> None:
    try:
        assert isinstance(words.expand(word, VARIABLES), str)
    except ValueError:
        pass
    assert isinstance(words.split(word), list)
