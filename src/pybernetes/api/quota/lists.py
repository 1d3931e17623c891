"""Arithmetic on lists of resources: names with quantities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..quantity import Quantity, parse

Resources = dict[str, Quantity]
ONE = Quantity(1)
ZERO = Quantity(0)


def parsed(resources: Mapping[str, Any] | None) -> Resources:
    """A field of an object as quantities."""
    return {name: parse(str(value)) for name, value in (resources or {}).items()}


def formatted(resources: Resources) -> dict[str, Any]:
    """Quantities as a field of an object."""
    return {name: str(value) for name, value in resources.items()}


def add(a: Resources, b: Resources) -> Resources:
    """The sum; a name in only one of them is taken as it is."""
    result = dict(a)
    for name, value in b.items():
        result[name] = result[name] + value if name in result else value
    return result


def subtract(a: Resources, b: Resources) -> Resources:
    """The difference; may be negative."""
    return add(a, {name: -value for name, value in b.items()})


def mask(resources: Resources, names: Iterable[str]) -> Resources:
    """Only these names."""
    wanted = set(names)
    return {name: value for name, value in resources.items() if name in wanted}


def equal(a: Resources, b: Resources) -> bool:
    """Whether both have the same names with equal quantities, however they are written."""
    return a.keys() == b.keys() and all(value == b[name] for name, value in a.items())


def exceeding(used: Resources, hard: Resources) -> list[str]:
    """The names of which more is used than allowed, sorted."""
    return sorted(name for name, limit in hard.items() if name in used and used[name] > limit)


def negative(resources: Resources) -> list[str]:
    """The names with a quantity below zero, sorted."""
    return sorted(name for name, value in resources.items() if value.sign() < 0)


def without_zeros(resources: Resources) -> Resources:
    """Only what is not zero."""
    return {name: value for name, value in resources.items() if value}
