"""`.dockerignore`: which files of a context are not there for COPY and ADD. Pure.

A line is a pattern of Go's filepath.Match, below the context's root, with `**` for any number of folders; `!` brings
back what an earlier line took away. The last line that matches a file, or a folder above it, decides.
"""

from __future__ import annotations

import re
from functools import lru_cache


class Patterns:
    """The patterns of a file, or of --exclude."""

    def __init__(self, lines: list[str]) -> None:
        """ValueError for an invalid pattern."""
        self._rules: list[tuple[bool, re.Pattern[str]]] = []
        for raw in lines:
            line = raw.strip()
            if not line or raw.startswith("#"):
                continue
            keeps = line.startswith("!")
            pattern = clean(line[keeps:].strip())
            if not pattern:
                if keeps:
                    raise ValueError(f"the pattern {raw!r} names nothing")
                continue
            self._rules.append((keeps, pattern_of(pattern, deep=True)))
        self.brings_back = any(keeps for keeps, _ in self._rules)
        """Whether something below a folder that is ignored may still be there."""

    def __bool__(self) -> bool:
        return bool(self._rules)

    def ignores(self, path: str) -> bool:
        """Whether a path (below the root, without a leading slash) is not there."""
        found = False
        for keeps, rule in self._rules:
            if found == keeps and rule.fullmatch(path):
                found = not keeps
        return found


def clean(path: str) -> str:
    """A path below the root: without `.`, empty parts and leading slashes; `..` leads nowhere above the root."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def has_wildcard(path: str) -> bool:
    """Whether it is a pattern rather than a path."""
    return any(character in path for character in "*?[\\")


@lru_cache(maxsize=256)
def pattern_of(pattern: str, *, deep: bool = False) -> re.Pattern[str]:
    """A pattern of paths; ValueError if it is none. A `deep` one knows `**`, and matches all below what it names."""
    if not deep:
        return re.compile("/".join(_part(each) for each in pattern.split("/")), re.DOTALL)
    expression = ""
    parts = pattern.split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            expression += ".*" if last else "(?:.*/)?"
        else:
            expression += _part(part.replace("**", "*")) + ("" if last else "/")
    return re.compile(f"{expression}(?:/.*)?", re.DOTALL)


def _part(part: str) -> str:
    """One name's pattern as a regular expression."""
    expression, at = "", 0
    while at < len(part):
        character = part[at]
        at += 1
        if character == "*":
            expression += "[^/]*"
        elif character == "?":
            expression += "[^/]"
        elif character == "\\":
            if at == len(part):
                raise ValueError(f"the pattern {part!r} ends with an escape")
            expression += re.escape(part[at])
            at += 1
        elif character == "[":
            end = part.find("]", at + (part[at : at + 1] == "^") + 1)
            if end < 0:
                raise ValueError(f"the pattern {part!r} has a bracket that is not closed")
            expression += _characters(part[at:end])
            at = end + 1
        else:
            expression += re.escape(character)
    return expression


def _characters(inside: str) -> str:
    negated = inside.startswith("^")
    inside = inside[negated:]
    found, at = "", 0
    while at < len(inside):
        first = inside[at + (inside[at] == "\\") :][:1]
        at += 1 + (inside[at] == "\\")
        last = first
        if inside[at : at + 1] == "-" and at + 1 < len(inside):
            last = inside[at + 1]
            at += 2
        if not first or not last or first > last:
            raise ValueError(f"the range {inside!r} of a pattern is none")
        found += f"{re.escape(first)}-{re.escape(last)}"
    return f"(?!/)[{'^' if negated else ''}{found}]"
