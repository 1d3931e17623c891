"""JSON Merge Patch: the RFC's cases, and nulls inside of lists."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.errors import BadRequest
from pybernetes.api.patch import merge_patch


@pytest.mark.parametrize(
    ("document", "patch", "want"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": None}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_the_patch_replaces_adds_and_removes(document: Any, patch: dict[str, Any], want: Any) -> None:
    before = copy.deepcopy((document, patch))
    assert merge_patch.apply(document, patch) == want
    assert (document, patch) == before


def test_nulls_in_maps_inside_of_lists_go_as_the_servers_library_has_it() -> None:
    assert merge_patch.apply({}, {"a": [{"b": None, "c": 1}, None]}) == {"a": [{"c": 1}, None]}
    assert merge_patch.apply({"a": [0]}, {"a": [{"b": None}]}) == {"a": [{}]}
    assert merge_patch.apply({"a": {"x": 1}}, {"a": [{"b": None}]}) == {"a": [{"b": None}]}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (None, "Invalid JSON Patch"),
        ([], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("a", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
    ],
)
def test_what_is_no_object_is_a_bad_request(patch: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        merge_patch.check(patch)
    assert str(refused.value) == message


json_values = st.recursive(
    st.none() | st.integers(0, 3) | st.text(alphabet="ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)


@given(documents, documents)
def test_a_patch_decides_which_keys_there_are_and_does_so_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch.apply(document, patch)
    assert merge_patch.apply(once, patch).keys() == once.keys()
    assert all(patch[key] is not None for key in once.keys() - document.keys())
    assert not any(key in once for key, value in patch.items() if value is None)
