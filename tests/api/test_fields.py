"""Field selectors parse, match and print as upstream's do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.fields import FieldSelectorError, Requirement, Selector, escape, parse, unescape


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", []),
        (",", []),
        ("metadata.name=a", [("metadata.name", "=", "a")]),
        ("metadata.name==a", [("metadata.name", "=", "a")]),
        ("status.phase!=Running,a=b", [("a", "=", "b"), ("status.phase", "!=", "Running")]),
        ("a=", [("a", "=", "")]),
        ("=b", [("", "=", "b")]),
        ("=", []),
        ("!=,a=b", [("a", "=", "b")]),
        (r"a=b\,c\=d\\", [("a", "=", "b,c=d\\")]),
    ],
)
def test_text_is_parsed_into_requirements_sorted_by_term(text: str, want: list[tuple[str, str, str]]) -> None:
    assert list(parse(text).requirements) == want


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        (r"a=\b", r"invalid field selector: invalid escape sequence: \b"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_text_that_is_no_selector_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(FieldSelectorError) as refused:
        parse(text)
    assert str(refused.value) == message


def test_an_absent_field_is_the_empty_text() -> None:
    assert parse("a=").matches({})
    assert parse("a!=b").matches({})
    assert not parse("a=b").matches({})
    assert parse("a=b,c!=d").matches({"a": "b", "c": "x"})
    assert not parse("a=b,c!=d").matches({"a": "b", "c": "d"})


def test_the_value_a_selector_pins_down_is_known() -> None:
    selector = parse("metadata.name=a,metadata.namespace!=b")
    assert selector.requires("metadata.name") == "a"
    assert selector.requires("metadata.namespace") is None
    assert not selector.empty()


def test_transforming_drops_requirements_that_become_empty() -> None:
    selector = parse("a=b,c!=d").transform(lambda name, value: ("", "") if name == "a" else (name.upper(), value))
    assert selector.requirements == (Requirement("C", "!=", "d"),)


@given(st.text(max_size=10))
def test_escaping_is_undone_by_unescaping(text: str) -> None:
    assert unescape(escape(text)) == text


terms = st.builds(
    Requirement,
    st.from_regex(r"[a-z]{1,4}(\.[a-z]{1,4})?", fullmatch=True),
    st.sampled_from(["=", "!="]),
    st.text(max_size=5),
)


@given(st.lists(terms, max_size=4))
def test_what_a_selector_prints_selects_the_same(some: list[Requirement]) -> None:
    again = parse(str(Selector(some)))
    assert sorted(again.requirements) == sorted(some)
