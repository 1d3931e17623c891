"""Patterns that could take Python's engine for ever: those are left to RE2, whose time is that of the text's length.

Who writes a schema or a policy writes patterns, and who writes objects writes what they are matched with; `(a+)+$`
and thirty letters would hold up the whole server. RE2 itself is used where Python's engine could go astray and nowhere
else: a search through its wrapper takes 15 us, Python's less than one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

SHORT = 256  # characters up to which what grows with a power of the length is no matter

MOST_WORK = 50_000_000
"""Instructions of a pattern times bytes of a text, for patterns with many: RE2 takes 10 ns each when it cannot keep
what it has found out (half a second). Beyond that nothing is found."""
MANY_INSTRUCTIONS = 1000
MEMORY = 2 << 20
"""Bytes for one pattern; a quarter of RE2's default. Larger patterns take seconds to compile, and are refused."""

_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


class Refused(ValueError):
    """RE2's error for a pattern."""


class Linear:
    """A pattern for RE2, as far as we use patterns: `search` and `finditer`."""

    __slots__ = ("_pattern", "_quick", "_re2")

    def __init__(self, pattern: str, quick: re.Pattern[str] | None) -> None:
        """`quick` is good enough for short texts."""
        self._pattern = pattern
        self._quick = quick
        self._re2: Any = None

    def check(self) -> None:
        """Raise Refused if RE2 does not take the pattern."""
        import re2  # type: ignore[import-untyped]

        try:
            self._compiled()
        except re2.error as error:
            said = error.args[0] if error.args else b""
            raise Refused(said.decode() if isinstance(said, bytes) else str(said)) from None

    def search(self, text: str) -> Any:
        """The first match, or None."""
        if self._quick is not None and len(text) <= SHORT:
            return self._quick.search(text)
        compiled = self._compiled()
        if _too_much(compiled, text):
            return None
        return compiled.search(text)

    def finditer(self, text: str) -> Iterator[Any]:
        """All matches that do not overlap."""
        if self._quick is not None and len(text) <= SHORT:
            return self._quick.finditer(text)
        compiled = self._compiled()
        if _too_much(compiled, text):
            return iter(())
        found: Iterator[Any] = compiled.finditer(text)
        return found

    def _compiled(self) -> Any:
        if self._re2 is None:
            import re2

            options = re2.Options()
            options.log_errors = False
            options.max_mem = MEMORY
            self._re2 = re2.compile(self._pattern, options)
        return self._re2


def _too_much(compiled: Any, text: str) -> bool:
    size = compiled.programsize
    return bool(size > MANY_INSTRUCTIONS and size * len(text) > MOST_WORK)


def guarded(pattern: str, translated: str, compiled: re.Pattern[str]) -> re.Pattern[str] | Linear:
    """The compiled pattern if it cannot go astray, else one that uses RE2 where it could."""
    from re import _parser  # type: ignore[attr-defined]

    nested, endless = _survey(_parser.parse(translated, re.ASCII), False)
    if nested:
        return Linear(pattern, None)
    return Linear(pattern, compiled) if endless else compiled


def _survey(parsed: Any, repeated: bool) -> tuple[bool, int]:
    """Whether a repetition is inside another one, and how many have no end."""
    nested, endless = False, 0
    for operation, argument in parsed:
        name = str(operation)
        if name in _REPEATS:
            low, high, inner = argument
            if repeated and high > 1 and high != low:
                nested = True
            inside, count = _survey(inner, repeated or high > 1)
            nested, endless = nested or inside, endless + count + (high > 64)
        elif name == "BRANCH":
            nested = nested or repeated
            for branch in argument[1]:
                inside, count = _survey(branch, repeated)
                nested, endless = nested or inside, endless + count
        elif name == "SUBPATTERN":
            inside, count = _survey(argument[3], repeated)
            nested, endless = nested or inside, endless + count
    return nested, endless
