"""No pattern holds up the server, and all mean the same in both engines."""

from __future__ import annotations

import contextlib
import re
import time

import pytest

from pybernetes.api.apiextensions.linear import Linear
from pybernetes.api.apiextensions.patterns import PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a+)+$", "a" * 40 + "b"),
        (r"^(a|aa)+$", "a" * 60 + "b"),
        (r"^(\w+\s?)*$", "word " * 30 + "!"),
        (r"(x+x+)+y", "x" * 40),
        (r".*.*.*=.*", "x" * 20_000),
        (r"\s+$", " " * 30_000 + "x"),
    ],
)
def test_a_pattern_that_could_explode_is_quick(pattern: str, text: str) -> None:
    began = time.process_time()  # of others on the machine nothing is said
    compile_pattern(pattern).search(text)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    "pattern", [r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"^\d{1,3}$", r"^https?://", r"[A-Z]{2,}", r"a|b"]
)
def test_ordinary_patterns_and_texts_stay_with_pythons_engine(pattern: str) -> None:
    found = compile_pattern(pattern).search("AA123https://")
    assert found is None or isinstance(found, re.Match)


SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


@pytest.mark.parametrize(
    ("text", "matches"), [("example.com", True), ("a-b.c", True), ("A.b", False), ("a..b", False), ("ä.b", False)]
)
def test_both_engines_agree(text: str, matches: bool) -> None:
    found = compile_pattern(SUBDOMAIN)
    assert isinstance(found, Linear)
    assert (found.search(text) is not None) is matches
    assert [match[0] for match in compile_pattern(r"(\w+\.)+").finditer("a.b. c.")] == ["a.b.", "c."]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("(a" * 1333 + ")" * 1333, "a" * 200_000), ("a{1000}" * 30, "a" * 1_000_000), (".{1,1000}" * 4, "é" * 300_000)],
    ids=["nested groups", "repetitions", "characters of two bytes"],
)
def test_a_large_pattern_is_not_looked_for_in_a_long_text(pattern: str, text: str) -> None:
    found = compile_pattern(pattern)
    began = time.thread_time()
    assert found.search(text) is None
    assert list(found.finditer(text)) == []
    assert time.thread_time() - began < 1.0


@pytest.mark.parametrize(
    "pattern",
    [r"\x41" * 4000, "[" + "[" * 15000 + "]", "(?i)" + "[^a]" * 4000, r"\Qa\E" * 3000, "a?" * 9000, r"\p{L}" * 3000],
)
def test_a_long_pattern_is_compiled_or_refused_quickly(pattern: str) -> None:
    began = time.thread_time()
    with contextlib.suppress(PatternError):
        compile_pattern(pattern)
    assert time.thread_time() - began < 1.0


def test_a_pattern_has_an_end() -> None:
    with pytest.raises(PatternError, match="expression too large: 20001 characters"):
        compile_pattern("a" * 20_001)
