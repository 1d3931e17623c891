"""JSON Patch: the RFC, and where the server's library departs from it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.errors import BadRequest, PatchNotApplicable, RequestEntityTooLarge
from pybernetes.api.patch import json_patch


def op(kind: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, **{key.rstrip("_"): value for key, value in more.items()}}


@pytest.mark.parametrize(
    ("document", "operations", "want"),
    [
        ({"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
        ({"a": 1}, [op("add", "/a", value=2)], {"a": 2}),
        ({"a": [1, 3]}, [op("add", "/a/1", value=2)], {"a": [1, 2, 3]}),
        ({"a": [1]}, [op("add", "/a/-", value=[2])], {"a": [1, [2]]}),
        ({"a": [1]}, [op("add", "/a/1", value=2)], {"a": [1, 2]}),
        ({"a": {"b": 1}}, [op("add", "/a/c", value=None)], {"a": {"b": 1, "c": None}}),
        ({"a": 1}, [op("add", "/b")], {"a": 1, "b": None}),
        ({"a": 1, "b": 2}, [op("remove", "/a")], {"b": 2}),
        ({"a": [1, 2, 3]}, [op("remove", "/a/1")], {"a": [1, 3]}),
        ({"a": 1}, [op("replace", "/a", value={"b": 2})], {"a": {"b": 2}}),
        ({"a": [1, 2]}, [op("replace", "/a/0", value=9)], {"a": [9, 2]}),
        ({"a": 1}, [op("replace", "", value={"b": 2})], {"b": 2}),
        ({"a": {"b": 1}, "c": {}}, [op("move", "/c/d", from_="/a/b")], {"a": {}, "c": {"d": 1}}),
        ({"a": [1, 2, 3]}, [op("move", "/a/2", from_="/a/0")], {"a": [2, 3, 1]}),
        ({"a": {"b": 1}}, [op("copy", "/c", from_="/a")], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": {"b": 1}}, [op("test", "/a", value={"b": 1})], {"a": {"b": 1}}),
        ({"a": 1}, [op("test", "", value={"a": 1})], {"a": 1}),
        ({"a/b": 1, "m~n": 2}, [op("test", "/a~1b", value=1), op("test", "/m~0n", value=2)], {"a/b": 1, "m~n": 2}),
        ({"~1": 1}, [op("test", "/~01", value=1)], {"~1": 1}),
        ({"": 1}, [op("replace", "/", value=2)], {"": 2}),
        ({"a": 1}, [], {"a": 1}),
    ],
)
def test_operations_do_what_the_rfc_says(document: Any, operations: list[Any], want: Any) -> None:
    assert json_patch.apply(document, operations) == want


@pytest.mark.parametrize(
    ("document", "operations", "want"),
    [
        ({"a": [1, 2]}, [op("remove", "/a/-1")], {"a": [1]}),
        ({"a": [1, 2]}, [op("replace", "/a/-1", value=9)], {"a": [1, 9]}),
        ({"a": [1, 2]}, [op("add", "/a/-1", value=9)], {"a": [1, 2, 9]}),
        ({}, [op("replace", "/a", value=1)], {"a": 1}),
        ({}, [op("test", "/a", value=None)], {}),
        ({"a": 1}, [op("replace", "x/a", value=2)], {"a": 2}),
    ],
)
def test_departures_of_the_servers_library_are_kept(document: Any, operations: list[Any], want: Any) -> None:
    assert json_patch.apply(document, operations) == want


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({}, op("add", "/a/b", value=1)),
        ({"a": 1}, op("add", "/a/b", value=1)),
        ({"a": None}, op("add", "/a/b", value=1)),
        ({"a": [1]}, op("add", "/a/2", value=1)),
        ({"a": [1]}, op("add", "/a/-3", value=1)),
        ({"a": [1]}, op("add", "/a/x", value=1)),
        ({}, op("add", "", value=1)),
        ({}, op("remove", "/a")),
        ({"a": [1]}, op("remove", "/a/1")),
        ({"a": [1]}, op("replace", "/a/1", value=2)),
        ({"a": [1]}, op("replace", "/a/-", value=2)),
        ({}, op("replace", "", value=2)),
        ({}, op("move", "/b", from_="/a")),
        ({"a": 1}, op("move", "/b/c", from_="/a")),
        ({"a": 1}, {"op": "move", "path": "/b"}),
        ({}, op("copy", "/b/c", from_="/a")),
        ({"a": 1}, op("test", "/a", value=2)),
        ({"a": 1}, op("test", "/a", value=1.0)),
        ({"a": 1}, op("test", "/a", value=True)),
        ({"a": 1}, op("test", "/b", value=1)),
        ({"a": 1}, op("test", "/a")),
        ({"a": 1}, op("jump", "/a")),
        ({"a": 1}, {"op": "add"}),
        ({"a": 1}, {}),
        ({"a": 1}, None),
    ],
)
def test_a_patch_that_does_not_fit_is_unprocessable(document: Any, operation: Any) -> None:
    with pytest.raises(PatchNotApplicable) as refused:
        json_patch.apply(document, [operation])
    assert refused.value.code == 422
    assert refused.value.why


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({}, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ("x", "error decoding patch: json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp"),
        ([1], "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (
            [{"op": 1}],
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
    ],
)
def test_what_is_no_patch_is_a_bad_request(patch: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        json_patch.apply({}, patch)
    assert str(refused.value) == message


def test_too_many_operations_are_too_large() -> None:
    assert json_patch.apply({}, [op("add", "/a", value=1)] * 10_000) == {"a": 1}
    with pytest.raises(RequestEntityTooLarge, match="maximum operations in a JSON patch is 10000, got 10001"):
        json_patch.apply({}, [op("add", "/a", value=1)] * 10_001)


def test_copies_may_not_grow_without_bound() -> None:
    with pytest.raises(PatchNotApplicable) as refused:
        json_patch.apply({"a": ["x" * 1000]}, [op("copy", "/a/-", from_="/a")] * 100)
    assert "accumulated size" in refused.value.why


def test_a_copy_is_independent_of_its_origin() -> None:
    document = {"a": {"b": 1}}
    assert json_patch.apply(document, [op("copy", "/c", from_="/a"), op("replace", "/a/b", value=2)]) == {
        "a": {"b": 2},
        "c": {"b": 1},
    }


def test_a_patch_can_be_applied_again() -> None:
    patch = [op("add", "/a", value=[]), op("add", "/a/-", value={"b": 1}), op("replace", "/a/0/b", value=2)]
    assert [json_patch.apply({}, patch) for _ in range(2)] == [{"a": [{"b": 2}]}] * 2


def test_unknown_fields_of_operations_are_named() -> None:
    assert json_patch.unknown_fields([op("add", "/a", value=1), {"op": "add", "foo": 1}]) == [
        'json patch unknown field "[1].foo"'
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(alphabet="ab/~", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="ab/~", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(alphabet="ab/~", max_size=3), json_values, min_size=1, max_size=4), json_values)
def test_adding_then_removing_a_new_key_changes_nothing(document: dict[str, Any], value: Any) -> None:
    before = copy.deepcopy(document)
    path = "/new~1key"
    after = json_patch.apply(
        copy.deepcopy(document), [op("add", path, value=value), op("test", path, value=value), op("remove", path)]
    )
    assert after == before


@given(st.dictionaries(st.text(alphabet="ab/~", max_size=3), json_values, min_size=1, max_size=4))
def test_every_key_can_be_tested_and_moved(document: dict[str, Any]) -> None:
    for key, value in document.items():
        path = "/" + key.replace("~", "~0").replace("/", "~1")
        moved = json_patch.apply(
            copy.deepcopy(document), [op("test", path, value=value), op("move", "/elsewhere", from_=path)]
        )
        assert moved["elsewhere"] == value
        assert key not in moved
