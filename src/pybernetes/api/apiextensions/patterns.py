"""Regular expressions of schemas: RE2's syntax, which is what Go compiles.

Most patterns mean the same to Python's engine, which is quicker; a few are rewritten for it. What it does not know, or
would take for something else, is RE2's to judge and to match.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from math import prod

from .linear import Linear, Refused, guarded


class PatternError(ValueError):
    """A text that is no regular expression, in Go's words."""


class _Unlike(Exception):
    """Python's engine would not do what RE2 does."""


MAX_REPEAT = 1000  # Go's and RE2's limit, of repetitions inside of each other together
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_FOREIGN_GROUP = re.compile(r"\(\?(?!:|P<[A-Za-z_]\w*>|[ims]+[:)])", re.ASCII)
_DIGITS = 9  # of a count: MAX_REPEAT has fewer
_COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}", re.ASCII)
_CLASS = re.compile(r"\[:([a-z]+):\]")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
LONGEST = 4096
"""Characters of a pattern that Python's engine compiles, at most 20 ms; RE2 takes a hundredth of that."""
MOST = 20_000
"""Characters of a pattern. With one `\\p{L}` after another RE2 takes 0.2 s for so many."""
_BY_LINE = re.compile(r"\(\?[is]*m")
_SPACE = r"\t\n\f\r "  # Python's has the vertical tab too
_KEPT = frozenset("afnrtvdDwW")  # escapes that both have, in a class too
_PLACES = frozenset("bBA")


@lru_cache(1024)
def compile_pattern(pattern: str) -> re.Pattern[str] | Linear:
    """The expression, ready for `search`, which never takes long. Raises PatternError."""
    if len(pattern) > MOST:
        raise PatternError(f"error parsing regexp: expression too large: {len(pattern)} characters")
    try:
        if len(pattern) > LONGEST:
            raise _Unlike
        translated = _translate(pattern)
        return guarded(pattern, translated, re.compile(translated, re.ASCII))
    except (_Unlike, re.error, OverflowError, RecursionError):
        found = Linear(pattern, None)
    try:
        found.check()
    except Refused as refused:
        raise PatternError(f"error parsing regexp: {_words(pattern, str(refused))}") from None
    return found


def _translate(pattern: str) -> str:
    found = _COUNT.findall(pattern)
    if any(len(digits) > _DIGITS for pair in found for digits in pair):
        raise _Unlike
    counts = [max(int(low), int(high or 0)) for low, high in found]
    if prod(count for count in counts if count) > MAX_REPEAT:
        raise _Unlike
    by_line = _BY_LINE.search(pattern) is not None
    parts: list[str] = []
    at, in_class = 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            text, at = _escape(pattern, at, in_class)
            parts.append(text)
            continue
        if in_class:
            if char == "[" and (match := _CLASS.match(pattern, at)):
                if match[1] not in _POSIX:
                    raise _Unlike
                parts.append(_POSIX[match[1]])
                at += len(match[0])
                continue
            if char == "-" and pattern[at + 1 : at + 2] == "-":
                raise _Unlike
            if char == "[" or (char in "&~|" and pattern[at + 1 : at + 2] == char):
                parts.append("\\")  # one day these may be operations on sets in Python
            in_class = char != "]" or pattern[at - 1 : at] == "[" or pattern[at - 2 : at] == "[^"
        elif char == "[":
            in_class = True
        elif char == "(" and _FOREIGN_GROUP.match(pattern, at):
            raise _Unlike
        elif char == "{" and pattern[at + 1 : at + 2] == ",":
            parts.append("\\")  # only Python takes {,2} for a repetition
        elif char == "$" and not by_line:
            char = r"\Z"  # Python's own matches before a last newline too
        elif char in "*+?}" and pattern[at + 1 : at + 2] == "+":
            raise _Unlike
        parts.append(char)
        at += 1
    return "".join(parts)


def _escape(pattern: str, at: int, in_class: bool) -> tuple[str, int]:
    following = pattern[at + 1 : at + 2]
    if following == "Q" and not in_class:
        end = pattern.find("\\E", at)
        text = pattern[at + 2 : end if end >= 0 else len(pattern)]
        return re.escape(text), end + 2 if end >= 0 else len(pattern)
    if following == "z" and not in_class:
        return r"\Z", at + 2
    if following == "x" and (match := _HEX.match(pattern, at)):
        digits = (match[1] or match[2]).lstrip("0") or "0"
        code = int(digits, 16) if len(digits) <= _DIGITS else sys.maxunicode + 1
        if code > sys.maxunicode:
            raise _Unlike
        return re.escape(chr(code)), at + len(match[0])
    if following in ("s", "S") and not (in_class and following == "S"):
        return _SPACE if in_class else f"[{'^' if following == 'S' else ''}{_SPACE}]", at + 2
    if following == "C":  # RE2 has it, Go has not
        raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
    alike = following in _KEPT or (following in _PLACES and not in_class)
    if not following or (following.isalnum() and not alike):
        raise _Unlike
    return pattern[at : at + 2], at + 2


_GO = {
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


def _words(pattern: str, text: str) -> str:
    """RE2's words in Go's."""
    problem, _, shown = text.partition(": ")
    if problem == "invalid perl operator" and shown in ("(?<=", "(?<!"):  # Go sees a name that is none
        begin = pattern[pattern.index(shown) :]
        name, closed, _ = begin.partition(">")
        return f"invalid named capture: `{name}{closed}`"
    return f"{_GO.get(problem, problem)}: `{shown}`"
