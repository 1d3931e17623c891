"""`$(NAME)` in commands, arguments, variables and subpaths: replaced where it is known, left as it is where not.

`$$` is one dollar, so `$$(NAME)` comes out as the text `$(NAME)`. Nothing nests and nothing is expanded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


def expand(text: str, lookup: Callable[[str], str]) -> str:
    """The text with every reference replaced by what `lookup` says."""
    if "$" not in text:
        return text
    pieces: list[str] = []
    rest = text
    while True:
        before, dollar, rest = rest.partition("$")
        pieces.append(before)
        if not dollar:
            return "".join(pieces)
        if rest.startswith("$"):
            pieces.append("$")
            rest = rest[1:]
        elif rest.startswith("(") and ")" in rest:
            name, _, rest = rest[1:].partition(")")
            pieces.append(lookup(name))
        else:  # no reference: the dollar and what follows are meant as they are
            pieces.append("$")


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
