"""Label selectors parse, match and print as upstream's do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api import labels
from pybernetes.api.field import Path
from pybernetes.api.labels import Requirement, Selector, SelectorError, parse

KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("a=b", "a=b"),
        ("a==b", "a==b"),
        (" b = c , a ", "a,b=c"),
        ("a!=b", "a!=b"),
        ("a in (y, x)", "a in (x,y)"),
        ("a notin (z)", "a notin (z)"),
        ("!a", "!a"),
        ("! a", "!a"),
        ("a>3,b<4", "a>3,b<4"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("a in ()", "a in ()"),
        ("a in (,)", "a in ()"),
        ("a in (,x)", "a in (,x)"),
        ("a in (x,)", "a in (,x)"),
        ("a in (x,,y)", "a in (,x,y)"),
        ("in=notin", "in=notin"),
        ("in in (in)", "in in (in)"),
        ("example.com/a=b", "example.com/a=b"),
    ],
)
def test_text_is_parsed_and_printed_in_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("a in (x,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a==!", "unable to parse requirement: found '!', expected: identifier"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("-a", f'unable to parse requirement: <nil>: Invalid value: "-a": {KEY_RULE}'),
        ("a=-b", f'unable to parse requirement: values[0][a]: Invalid value: "-b": {VALUE_RULE}'),
        (
            "a>b",
            'unable to parse requirement: values[0]: Invalid value: "b": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_text_that_is_no_selector_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("", [None, {}, {"a": "b"}], []),
        ("a=b", [{"a": "b"}, {"a": "b", "c": "d"}], [None, {}, {"a": "c"}]),
        ("a=b,c=d", [{"a": "b", "c": "d"}], [None, {"a": "b"}, {"c": "d"}, {"a": "b", "c": "x"}]),
        ("a=", [{"a": ""}], [None, {}, {"a": "b"}]),
        ("a!=b", [None, {}, {"a": "c"}], [{"a": "b"}]),
        ("a in (b,c)", [{"a": "b"}, {"a": "c"}], [None, {}, {"a": "d"}]),
        ("a notin (b,c)", [None, {}, {"a": "d"}], [{"a": "b"}]),
        ("a", [{"a": ""}, {"a": "b"}], [None, {}, {"b": "a"}]),
        ("!a", [None, {}, {"b": "a"}], [{"a": ""}]),
        ("a>5", [{"a": "6"}], [None, {}, {"a": "5"}, {"a": "x"}, {"a": "9" * 30}]),
        ("a<5", [{"a": "4"}, {"a": "-1"}], [None, {}, {"a": "5"}, {"a": ""}]),
        ("a,b!=c,d in (e)", [{"a": "", "d": "e"}], [{"a": "", "b": "c", "d": "e"}, {"d": "e"}]),
    ],
)
def test_a_selector_matches(text: str, yes: list[dict[str, str] | None], no: list[dict[str, str] | None]) -> None:
    selector = parse(text)
    assert all(selector.matches(each) for each in yes)
    assert not any(selector.matches(each) for each in no)


def struct(match_labels: object = None, match_expressions: object = None) -> SimpleNamespace:
    return SimpleNamespace(match_labels=match_labels, match_expressions=match_expressions)


def expression(key: str, operator: str, *values: str) -> SimpleNamespace:
    return SimpleNamespace(key=key, operator=operator, values=list(values) or None)


def test_a_label_selector_struct_becomes_a_selector() -> None:
    expressions = [
        expression("t", "In", "y", "x"),
        expression("u", "NotIn", "z"),
        expression("v", "Exists"),
        expression("w", "DoesNotExist"),
    ]
    selector = labels.from_label_selector(struct({"a": "b"}, expressions))
    assert str(selector) == "a=b,t in (x,y),u notin (z),v,!w"


def test_no_struct_selects_nothing_and_an_empty_one_everything() -> None:
    nothing, everything = labels.from_label_selector(None), labels.from_label_selector(struct())
    assert not nothing.matches({"a": "b"})
    assert not nothing.matches(None)
    assert not nothing.empty()
    assert everything.matches(None)
    assert everything.empty()


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (struct(None, [expression("a", "Foo")]), '"Foo" is not a valid label selector operator'),
        (
            struct(None, [expression("a", "In")]),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            struct(None, [expression("a", "Exists", "b")]),
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
        ),
        (struct({"-a": "b"}), f'key: Invalid value: "-a": {KEY_RULE}'),
    ],
)
def test_a_struct_that_is_no_selector_is_refused(selector: object, message: str) -> None:
    with pytest.raises(SelectorError) as refused:
        labels.from_label_selector(selector)
    assert str(refused.value) == message


def test_the_value_a_selector_pins_down_is_known() -> None:
    selector = parse("a=b,c in (d),e in (f,g),h!=i")
    assert [selector.requires(key) for key in "aceh"] == ["b", "d", None, None]
    assert selector.requires("z") is None


def test_labels_are_validated_key_by_key() -> None:
    problems = labels.validate_labels({"-a": "b", "c": "-d"}, Path("metadata", "labels"))
    assert [str(each) for each in problems] == [
        f'metadata.labels: Invalid value: "-a": {KEY_RULE}',
        f'metadata.labels: Invalid value: "-d": {VALUE_RULE}',
    ]


names = st.from_regex(r"[a-z]([-a-z0-9_.]{0,5}[a-z0-9])?", fullmatch=True)
values = names | st.just("")
requirements = st.one_of(
    st.builds(
        lambda key, operator, value: Requirement(key, operator, [value]),
        names,
        st.sampled_from([labels.EQUALS, labels.DOUBLE_EQUALS, labels.NOT_EQUALS]),
        values,
    ),
    st.builds(
        lambda key, operator, some: Requirement(key, operator, sorted(some)),
        names,
        st.sampled_from([labels.IN, labels.NOT_IN]),
        st.sets(values, min_size=1, max_size=4),
    ),
    st.builds(Requirement, names, st.sampled_from([labels.EXISTS, labels.DOES_NOT_EXIST])),
    st.builds(
        lambda key, operator, value: Requirement(key, operator, [str(value)]),
        names,
        st.sampled_from([labels.GREATER_THAN, labels.LESS_THAN]),
        st.integers(0, 2**63 - 1),
    ),
)


@given(st.lists(requirements, max_size=5))
def test_what_a_selector_prints_is_the_selector(some: list[Requirement]) -> None:
    selector = Selector(some)
    assert parse(str(selector)) == selector


@given(st.lists(requirements, max_size=5), st.dictionaries(names, values, max_size=6))
def test_the_compiled_selector_agrees_with_its_requirements(some: list[Requirement], given: dict[str, str]) -> None:
    assert Selector(some).matches(given) == all(each.matches(given) for each in some)


@given(st.text(alphabet="ab =!(),<>\t\0in", max_size=20))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        parse(text)
    except SelectorError:
        pass
