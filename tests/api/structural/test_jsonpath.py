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
