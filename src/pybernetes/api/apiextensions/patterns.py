"""Regular expressions of schemas: RE2's syntax, which is what Go compiles.

RE2 has no look-around and no backreferences, so that matching takes linear time. Python has both, so what RE2 refuses
is found first; what only RE2 knows is rewritten for Python.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .linear import Linear, guarded


class PatternError(ValueError):
    """A text that is no regular expression, in Go's words."""


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
_FORBIDDEN_GROUP = re.compile(r"\(\?(?:[=!>#]|<[=!]|\(|P=|P>|&|R|\d)")
_ESCAPES = frozenset("abfnrtvxdDsSwWBAzQEpPC")


@lru_cache(1024)
def compile_pattern(pattern: str) -> re.Pattern[str] | Linear:
    """The expression, ready for `search`, which never takes long. Raises PatternError."""
    translated = _translate(pattern)
    try:
        return guarded(pattern, translated, re.compile(translated, re.ASCII))
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"error parsing regexp: {_words(pattern, error)}") from None


def _translate(pattern: str) -> str:
    parts: list[str] = []
    at, in_class = 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            text, at = _escape(pattern, at, in_class)
            parts.append(text)
            continue
        if in_class:
            if char == "[" and (match := re.match(r"\[:(\^?)([a-z]+):\]", pattern[at:])):
                if match[2] not in _POSIX or match[1]:
                    raise PatternError(f"error parsing regexp: invalid character class range: `{match[0]}`")
                parts.append(_POSIX[match[2]])
                at += len(match[0])
                continue
            if char == "[" or (char in "-&~|" and pattern[at + 1 : at + 2] == char):
                parts.append("\\")  # one day these may be operations on sets in Python
            in_class = char != "]" or pattern[at - 1 : at] == "[" or pattern[at - 2 : at] == "[^"
        elif char == "[":
            in_class = True
        elif char == "(" and (match := _FORBIDDEN_GROUP.match(pattern, at)):
            shown = pattern[at : at + (3 if pattern[at + 2] != "<" else 4)]
            raise PatternError(f"error parsing regexp: invalid or unsupported Perl syntax: `{shown}`")
        elif char == "{" and pattern[at + 1 : at + 2] == ",":
            parts.append("\\")  # only Python takes {,2} for a repetition
        elif char in "*+?}" and pattern[at + 1 : at + 2] == "+":
            raise PatternError(f"error parsing regexp: invalid nested repetition operator: `{char}+`")
        parts.append(char)
        at += 1
    return "".join(parts)


def _escape(pattern: str, at: int, in_class: bool) -> tuple[str, int]:
    following = pattern[at + 1 : at + 2]
    if not following:
        raise PatternError("error parsing regexp: trailing backslash at end of expression: ``")
    if following == "Q" and not in_class:
        end = pattern.find("\\E", at)
        text = pattern[at + 2 : end if end >= 0 else len(pattern)]
        return re.escape(text), end + 2 if end >= 0 else len(pattern)
    if following == "z":
        return r"\Z", at + 2
    if following in "pP":
        return _property(pattern, at, in_class)
    if following == "x" and (match := re.match(r"\\x\{([0-9A-Fa-f]+)\}", pattern[at:])):
        return re.escape(chr(min(int(match[1], 16), 0x10FFFF))), at + len(match[0])
    if following.isalnum() and following not in _ESCAPES and not (following == "0" or (in_class and following == "b")):
        raise PatternError(f"error parsing regexp: invalid escape sequence: `\\{following}`")
    return pattern[at : at + 2], at + 2


def _property(pattern: str, at: int, in_class: bool) -> tuple[str, int]:
    """Classes of Unicode, as far as Python's own classes can say them."""
    match = re.match(r"\\[pP](?:\{(\^?)([A-Za-z_]+)\}|([A-Z]))", pattern[at:])
    name = (match[2] or match[3]) if match else ""
    known = {"L": "A-Za-z\\u00aa-\\U0010ffff", "Lu": "A-Z", "Ll": "a-z", "N": "0-9", "Nd": "0-9"}
    if match is None or name not in known:
        shown = match[0] if match else pattern[at : at + 2]
        raise PatternError(f"error parsing regexp: invalid character class range: `{shown}`")
    negated = (pattern[at + 1] == "P") != bool(match[1])
    if in_class:
        return known[name], at + len(match[0])
    return f"[{'^' if negated else ''}{known[name]}]", at + len(match[0])


def _words(pattern: str, error: Exception) -> str:
    text = str(error)
    if "unterminated character set" in text:
        return f"missing closing ]: `{pattern[pattern.rfind('[') :]}`"
    if "missing ), unterminated" in text:
        return f"missing closing ): `{pattern}`"
    if "unbalanced parenthesis" in text:
        return f"unexpected ): `{pattern}`"
    if "nothing to repeat" in text:
        at = getattr(error, "pos", 0) or 0
        return f"missing argument to repetition operator: `{pattern[at : at + 1]}`"
    if "multiple repeat" in text:
        at = max(0, (getattr(error, "pos", 1) or 1) - 1)
        return f"invalid nested repetition operator: `{pattern[at : at + 2]}`"
    if "bad character range" in text:
        return f"invalid character class range: `{text.removeprefix('bad character range ').partition(' at ')[0]}`"
    return f"{text}: `{pattern}`"
