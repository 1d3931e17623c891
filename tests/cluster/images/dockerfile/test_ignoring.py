""".dockerignore, by the examples of docker's reference and more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.cluster.images.dockerfile import ignoring
from pybernetes.cluster.images.dockerfile.ignoring import Patterns


@pytest.mark.parametrize(
    ("lines", "ignored", "kept"),
    [
        (["*/temp*"], ["a/temporary.txt", "a/temp", "a/temp/x"], ["temp", "a/b/temp"]),
        (["*/*/temp*"], ["a/b/temporary.txt"], ["a/temp"]),
        (["temp?"], ["tempa", "tempb"], ["temp", "tempab"]),
        (["*.md", "!README.md"], ["a.md"], ["README.md", "x/a.md"]),
        (["*.md", "!README*.md", "README-secret.md"], ["README-secret.md"], ["README-a.md"]),
        (["*.md", "README-secret.md", "!README*.md"], [], ["README-secret.md"]),
        (["**/*.go"], ["a.go", "a/b/c.go"], ["a.goo"]),
        (["**"], ["a", "a/b"], []),
        (["a/**"], ["a/b", "a/b/c"], ["b"]),
        (["a/**/z"], ["a/z", "a/b/c/z", "a/z/y"], ["z", "b/z"]),
        (["foo"], ["foo", "foo/bar"], ["x/foo", "foobar"]),
        (["/foo/"], ["foo", "foo/x"], ["x/foo"]),
        (["foo", "!foo/bar"], ["foo/x"], ["foo/bar", "foo/bar/y"]),
        (["# foo", "", "  bar  "], ["bar"], ["foo", "# foo"]),
        (["[a-c]x", "[^a]y"], ["ax", "cx", "by"], ["dx", "ay"]),
        (["a\\*"], ["a*"], ["ab"]),
        (["../x", "./y"], ["x", "y"], []),
        (["."], [], ["a"]),
    ],
)
def test_what_is_ignored(lines: list[str], ignored: list[str], kept: list[str]) -> None:
    patterns = Patterns(lines)
    assert [path for path in ignored if not patterns.ignores(path)] == []
    assert [path for path in kept if patterns.ignores(path)] == []


@pytest.mark.parametrize("line", ["[", "[]", "a[", "[z-a]", "\\", "!", "[a-"])
def test_an_invalid_pattern_is_reported(line: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|range"):
        Patterns([line])


@given(st.text(alphabet="ab/*?[]^-\\!. ", max_size=20), st.text(alphabet="ab/.", max_size=10))
def test_any_line_is_a_pattern_or_an_error(line: str, path: str) -> None:
    try:
        assert isinstance(Patterns([line]).ignores(ignoring.clean(path)), bool)
    except ValueError:
        pass


@given(st.text(alphabet="a./", max_size=20))
def test_no_path_leads_above_the_root(path: str) -> None:
    assert ".." not in ignoring.clean(path).split("/")
