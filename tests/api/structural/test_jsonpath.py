"""JSON paths as client-go reads them."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.api.structural.jsonpath import PathError, compile_path

DOCUMENT = {
    "metadata": {"labels": {"example.com/x": "dotted"}},
    "spec": {"n": 3, "list": [1, 2, 3, 4], "none": None},
    "status": {"conditions": [{"type": "A", "n": 1}, {"type": "Ready", "status": "True", "n": 2}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.n", [3]),
        (".spec.missing", []),
        (".spec.n.deeper", []),
        (".spec.none", [None]),
        (".metadata.labels.example\\.com/x", ["dotted"]),
        (".spec.list[0]", [1]),
        (".spec.list[-1]", [4]),
        (".spec.list[1:3]", [2, 3]),
        (".spec.list[::2]", [1, 3]),
        (".spec.list[*]", [1, 2, 3, 4]),
        (".spec.list[0,2]", [1, 3]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].n", [2]),
        (".status.conditions[?(@.n>=1)].type", ["A", "Ready"]),
        (".status.conditions[?(@.status)].type", ["Ready"]),
        (".status.conditions[?(@.type!='A')].type", ["Ready"]),
        ("..type", ["A", "Ready"]),
        (".spec['n']", [3]),
        (".metadata.labels.*", ["dotted"]),
        ("$.spec.n", [3]),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    assert compile_path(path)(DOCUMENT) == found


@pytest.mark.parametrize("path", [".spec.list[9]", ".spec.n[0]", ".spec.n[?(@.x)]", ".spec.list[?(@>'x')]"])
def test_paths_that_do_not_fit(path: str) -> None:
    with pytest.raises(PathError):
        compile_path(path)(DOCUMENT)


@pytest.mark.parametrize("path", [".a[", ".a[x]", ".a[?(@.b", "'open", ".a[?(@.b<>1)]", "range"])
def test_paths_that_cannot_be_read(path: str) -> None:
    with pytest.raises(PathError):
        compile_path(path)


TREE = {"metadata": {"name": "a", "labels": {"b": "c"}}, "spec": {"items": [{"x": [1, 2]}, {"x": [3]}], "deep": {}}}


@pytest.mark.parametrize(
    "path",
    [
        ".." * 30,
        ".." * 5000,
        "..[*]" * 40,
        ".spec.items" + "[*,*]" * 60,
        ".spec.items[" + ",".join("*" * 20_000) + "]",
        ".spec.items[?(@" + ".." * 400 + "x)]",
        ".spec.items[?(" + ".." * 40 + "==1)]",
        "'a'" * 20_000,
    ],
)
def test_a_path_that_would_take_for_ever_is_given_up(path: str) -> None:
    find = compile_path(path)
    with pytest.raises(PathError):
        find(TREE)


def test_an_object_that_is_too_large_for_a_path_is_given_up_and_a_plain_path_is_not() -> None:
    large = {"spec": {"name": "a", "items": [{"x": number} for number in range(100_000)]}}
    with pytest.raises(PathError, match="too expensive"):
        compile_path("..x")(large)
    assert compile_path(".spec.name")(large) == ["a"]
    assert compile_path(".spec.items[-1].x")(large) == [99_999]


def test_a_document_of_any_depth_can_be_looked_through() -> None:
    document: Any = {"x": 1}
    for _ in range(3000):
        document = {"a": document}
    assert compile_path("..x")(document) == [1]


@pytest.mark.parametrize("index", ["9" * 5000, "-" + "9" * 5000, "0:" + "9" * 5000, "0:1:" + "9" * 5000])
def test_an_index_with_thousands_of_digits_is_no_path(index: str) -> None:
    with pytest.raises(PathError):
        compile_path(f".items[{index}]")
