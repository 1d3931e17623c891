"""Prose is plain Kubernetes English: phrases of a private dialect do not come back (docs/glossary.md, CONTRIBUTING.md).

A plain search, without parsing: quick, and a hit names its file and line. Words in quotes, backquotes or paths do not
count, so that the Unix user `nobody` may be named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import tools

SOURCE = ("src",)
CODE = ("src", "tests", "tools", "bench", "examples")
PAGES = ("docs", ".")

SENTENCE = r"(?<![\w\"'`/.=@:,-])(?:{})(?![\w\"'`:/-])"
"""Words of a sentence, not of a value."""


class Rule(NamedTuple):
    literals: tuple[str, ...]
    """A file without any of these is not searched."""
    pattern: str
    instead: str
    folders: tuple[str, ...]


RULES = {
    "told": Rule(
        (" told",),
        r"\b(?:is|are|was|were|be|been|being) told\b",
        "say who is notified, or what is reported",
        (*CODE, *PAGES),
    ),
    "nobody": Rule(
        ("obody",),
        r"(?<!USER )" + SENTENCE.format("[Nn]obody"),
        "say which client, process or pod there is none of",
        (*CODE, *PAGES),
    ),
    "whoever": Rule(("hoever",), r"\b[Ww]hoever\b", "name the user, client or caller", (*CODE, *PAGES)),
    "somebody": Rule(
        ("body",),
        SENTENCE.format("(?:[Ss]ome|[Ee]very|[Aa]ny)body"),
        "name the user, client or process",
        (*SOURCE, *PAGES),
    ),
    "wish": Rule(("wish", "Wish"), r"\b[Ww]ish(?:es|ed)?\b", "a request, setting, option or term", (*CODE, *PAGES)),
    "asleep": Rule(("asleep", "roused"), r"\b(?:asleep|roused)\b", "disabled and enabled", SOURCE),
    "what": Rule(
        ('"""Wh',), r'"""(?:What|Who|Whom|Whose)\b', "say what the function returns or changes, or what it is", SOURCE
    ),
    "as upstream": Rule(('"""As upstream.',), r'"""As upstream\.', "say what it does", CODE),
    "test names": Rule(
        ("def test_",),
        r"\bdef test_\w*(?:_told|nobody|whoever|wish|somebody|everybody)(?![a-z])",
        "say the behaviour with the nouns of Kubernetes",
        ("tests",),
    ),
}


@cache
def texts(folder: str) -> list[tuple[Path, str]]:
    root = tools.ROOT / folder
    found = root.glob("*.md") if folder in PAGES else root.rglob("*.py")
    return [(file, file.read_text()) for file in sorted(found) if file != Path(__file__)]


def hits(rule: Rule) -> Iterator[str]:
    pattern = re.compile(rule.pattern)
    for folder in rule.folders:
        for file, text in texts(folder):
            if any(each in text for each in rule.literals):
                for hit in pattern.finditer(text):
                    line = text.count("\n", 0, hit.start()) + 1
                    yield f"{file.relative_to(tools.ROOT)}:{line}: {hit[0]!r}"


@pytest.mark.parametrize("name", RULES)
def test_the_phrase_is_not_used(name: str) -> None:
    found = list(hits(RULES[name]))
    assert not found, f"{RULES[name].instead}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Nobody can say.", True),
        ("a pod that nobody runs", True),
        ('runs as the user "nobody"', False),
        ("the user `nobody`", False),
        ("nobody:x:65534", False),
    ],
)
def test_the_unix_user_nobody_may_be_named(text: str, counts: bool) -> None:
    assert bool(re.search(RULES["nobody"].pattern, text)) is counts
