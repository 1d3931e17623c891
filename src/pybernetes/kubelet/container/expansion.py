"""`$(NAME)` in commands, arguments, variables and subpaths: replaced where it is known, left as it is where not.

`$$` is one dollar, so `$$(NAME)` comes out as the text `$(NAME)`. Nothing nests and nothing is expanded twice.
Variables that use others can double with each one, so the result is bounded by what Linux takes for one string.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

MAX_STRING: Final = 131071
"""Bytes of one argument, or of one variable with its name: Linux's MAX_ARG_STRLEN without the final zero byte."""


class TooLong(ValueError):
    """A value is longer than the kernel takes."""


def expand(text: str, lookup: Callable[[str], str]) -> str:
    """The text with every reference replaced by what `lookup` says, in linear time. Raises `TooLong`."""
    pieces: list[str] = []
    length = 0

    def add(piece: str) -> None:
        nonlocal length
        length += len(piece)
        if length > MAX_STRING:
            raise TooLong(f"more than {MAX_STRING} bytes after expansion")
        pieces.append(piece)

    at, last = 0, text.rfind(")")
    while (dollar := text.find("$", at)) >= 0:
        add(text[at:dollar])
        follows = text[dollar + 1 : dollar + 2]
        if follows == "$":
            add("$")
            at = dollar + 2
        elif follows == "(" and last > dollar:
            end = text.index(")", dollar)
            add(lookup(text[dollar + 2 : end]))
            at = end + 1
        else:  # no reference: the dollar and what follows are meant as they are
            add("$")
            at = dollar + 1
    add(text[at:])
    return "".join(pieces)


def expand_known(text: str, *variables: Mapping[str, str]) -> str:
    """The text with the references to these variables replaced; the first mapping that has a name counts."""

    def lookup(name: str) -> str:
        return next((each[name] for each in variables if name in each), f"$({name})")

    return expand(text, lookup)


def expand_subpath(text: str, variables: Mapping[str, str]) -> str:
    """A `subPathExpr`: every variable must be there and not empty, or the path would be another one."""
    missing: set[str] = set()

    def lookup(name: str) -> str:
        value = variables.get(name, "")
        if not value:
            missing.add(name)
        return value

    expanded = expand(text, lookup)
    if missing:
        raise ValueError(f"missing value for {', '.join(sorted(missing))}")
    return expanded
