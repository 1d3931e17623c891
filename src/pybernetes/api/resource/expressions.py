"""Device selectors: CEL expressions about one device.

An expression sees `device.driver`, `device.attributes[domain].name`, `device.capacity[domain].name` and
`device.allowMultipleAllocations`. Its greatest cost is known before it is evaluated, because everything in a device
has a bound.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final, NamedTuple

from ..cel import types as t
from ..cel.ast import CompileError
from ..cel.environment import Environment, Program
from ..cel.libraries.quantity import QUANTITY

MAX_COST: Final = 1_000_000
"""The cost limit of one evaluation (upstream's CELSelectorExpressionMaxCost)."""

_DOMAIN = t.Type("string", max_elements=63)
_NAME = t.Type("string", max_elements=32)
_DRIVER = t.Type("string", max_elements=63)
_ATTRIBUTE = t.Type("any", "google.protobuf.Any", max_elements=64)
"""Its type is known when there is a device, its size before."""
_PER_DEVICE: Final = 32  # attributes and capacities
DEVICE: Final = t.object_type(
    "kubernetes.DRADevice",
    {
        "driver": _DRIVER,
        "attributes": t.map_of(_DOMAIN, t.map_of(_NAME, _ATTRIBUTE, _PER_DEVICE), _PER_DEVICE),
        "capacity": t.map_of(_DOMAIN, t.map_of(_NAME, QUANTITY, _PER_DEVICE), _PER_DEVICE),
        "allowMultipleAllocations": t.Type("bool", max_elements=1),
    },
)


class Checked(NamedTuple):
    """The result of checking an expression without a device."""

    problem: str
    """Why it is none; empty if it is."""
    cost: int
    """The greatest cost."""


@cache
def environment() -> Environment:
    """The environment of selectors."""
    return Environment({"device": DEVICE}, types={DEVICE.name: DEVICE}, bindings=True)


def compile_selector(expression: str) -> Program:
    """The expression, ready to be evaluated. Raises CompileError."""
    return environment().compile(expression)


@lru_cache(256)
def check_selector(expression: str) -> Checked:
    """Whether an expression is a selector, and what it may cost."""
    try:
        program = compile_selector(expression)
    except CompileError as error:
        return Checked(f"compilation failed: {error}", 0)
    result = program.result_type
    if result.kind not in ("bool", "any"):
        return Checked(f"must evaluate to bool or the unknown type, not {result.go}", 0)
    return Checked("", program.estimate({"device": DEVICE}).max)
