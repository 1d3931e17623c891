"""Path elements and field sets: one spelling, one order, there and back."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.managedfields import fieldset, paths

SCALARS = st.one_of(st.text(max_size=5), st.integers(-(2**53), 2**53), st.booleans())
ELEMENTS = st.one_of(
    st.text(max_size=5).map(paths.field),
    st.dictionaries(st.text(min_size=1, max_size=3), SCALARS, min_size=1, max_size=3).map(
        lambda pairs: paths.key(pairs.items())
    ),
    SCALARS.map(paths.value),
    st.integers(0, 99).map(lambda at: f"i:{at}"),
)
SETS = st.frozensets(st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple), max_size=8)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("f:spec", ".spec"),
        ('k:{"name":"a"}', '[name="a"]'),
        ('k:{"port":80,"protocol":"TCP"}', '[port=80,protocol="TCP"]'),
        ('v:"a\\"b"', '[="a\\"b"]'),
        ("v:1.5", "[=1.5]"),
        ("v:true", "[=true]"),
        ("i:3", "[3]"),
    ],
)
def test_elements_as_messages_show_them(text: str, shown: str) -> None:
    assert paths.show((text,)) == shown


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('k:{"b": 2, "a": 1}', 'k:{"a":1,"b":2}'),
        ("v:1.0", "v:1"),
        ('v: "a"', 'v:"a"'),
        ("i:007", "i:7"),
        ('v:"<a>"', 'v:"\\u003ca\\u003e"'),
        ("x:future", None),
    ],
)
def test_one_spelling(text: str, canonical: str | None) -> None:
    assert paths.parse(text) == canonical


@pytest.mark.parametrize("text", ["", "f", "fspec", "k:1", "k:{", "v:", "i:x"])
def test_malformed_elements_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - upstream's words differ from case to case
        paths.parse(text)


def test_order_of_elements() -> None:
    ordered = [
        "f:a",
        "f:b",
        'k:{"a":2}',
        'k:{"a":10}',
        'k:{"a":"1"}',
        'k:{"a":"1","b":1}',
        'k:{"b":1}',
        "v:2",
        "v:10",
        'v:"a"',
        "v:false",
        "i:2",
        "i:10",
    ]
    shuffled = ordered[::-1]
    assert sorted(shuffled, key=paths.order) == ordered


@given(SETS)
def test_sets_survive_the_wire(fields: fieldset.Set) -> None:
    assert fieldset.decode(fieldset.encode(fields)) == fields


@given(SETS)
def test_walk_visits_every_path_once(fields: fieldset.Set) -> None:
    visited = list(fieldset.walk(fields))
    assert len(visited) == len(fields)
    assert frozenset(visited) == fields


def test_dot_marks_an_inner_member() -> None:
    data = b'{"f:a":{".":{},"f:b":{}},"f:c":{"f:d":{}},"f:e":{}}'
    fields = fieldset.decode(data)
    assert fields == {("f:a",), ("f:a", "f:b"), ("f:c", "f:d"), ("f:e",)}
    assert fieldset.encode(fields) == data


def test_elements_from_the_future_are_dropped() -> None:
    assert fieldset.decode({"f:a": {"x:y": {"f:z": {}}}}) == {("f:a",)}


def test_raw_bytes_and_objects_are_the_same() -> None:
    data = b'{"f:a":{"f:b":{}}}'
    assert fieldset.decode(msgspec.Raw(data)) == fieldset.decode(msgspec.json.decode(data)) == fieldset.decode(data)


def test_without_below() -> None:
    fields = frozenset({("f:a",), ("f:a", "f:b"), ("f:c", "f:d"), ("f:c", "f:e", "f:f"), ("f:g",)})
    gone = frozenset({("f:a",), ("f:c", "f:e")})
    assert fieldset.without_below(fields, gone) == {("f:c", "f:d"), ("f:g",)}
