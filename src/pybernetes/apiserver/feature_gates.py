"""`--feature-gates`: which of upstream's gates there are, and that each is as upstream's default has it.

What a gate guards is here or is not; none can be turned over. So a gate that is given as it is anyway is fine, and
every other is refused: a user who changes a gate must not believe that it worked. The gates, with their defaults in
v1.36 and whether upstream has locked them, are in `feature_gates.txt`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from pybernetes.api.gocompat.quote import quote

_COMPONENT = "kube"
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))  # Go's
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


def check(given: Iterable[str]) -> list[str]:
    """Errors in gates, each `[kube:]NAME=BOOL`."""
    given = list(given)
    if not given:
        return []
    known = _known()
    return [problem for each in given if (problem := _problem(each, known))]


def _problem(text: str, known: dict[str, tuple[bool, bool]]) -> str:
    component, colon, rest = text.partition(":")
    if colon and component.strip() != _COMPONENT:
        return f"component not registered: {component.strip()}"
    name, equals, word = (part.strip() for part in (rest if colon else text).partition("="))
    if not equals:
        return f"missing bool value for {name}"
    if word not in _TRUE and word not in _FALSE:
        return f"invalid value of {name}={word}, err: strconv.ParseBool: parsing {quote(word)}: invalid syntax"
    if name not in known:
        return f"unrecognized feature gate: {name}"
    on, locked = known[name]
    wanted = word in _TRUE
    if wanted == on:
        return ""
    if locked:
        return f"cannot set feature gate {name} to {_go(wanted)}, feature is locked to {_go(on)}"
    return f"cannot set feature gate {name} to {_go(wanted)}: this server has it {'on' if on else 'off'}, always"


def _known() -> dict[str, tuple[bool, bool]]:
    """The gates: whether each is on, and whether upstream would let it be changed."""
    lines = files(__package__).joinpath("feature_gates.txt").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {name: (value == "on", bool(locked)) for name, value, *locked in rows}


def _go(value: bool) -> str:
    return str(value).lower()
