"""Environments: which variables and functions an expression may use. Compiling and running start here.

    environment = Environment({"self": type_from_schema(schema), "request": DYN})
    program = environment.compile("self.replicas <= 5")      # CompileError, with places and arrows
    value, cost = program.evaluate({"self": {"replicas": 3}})  # EvaluationError, CostLimitExceeded

Compiled programs are immutable and may be run again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from . import macros
from .ast import CompileError, Ident, Node, Problem, Select
from .checker import check
from .estimate import Estimate, estimate_cost
from .frames import UNSET, Frame
from .functions import Library, merged
from .literals import check_literals
from .parser import parse
from .planner import Plan
from .types import Type
from .values import CostLimitExceeded, EvaluationError
from .work import units

PER_CALL_LIMIT = 1_000_000
"""The cost limit of one evaluation (upstream's PerCallLimit)."""
CHEAP = 10_000
"""The cost limit of an evaluation while other requests wait: a few milliseconds."""
RUNTIME_BUDGET = 10_000_000
"""The cost limit of all evaluations for one object (upstream's RuntimeCELCostBudget)."""
MATCH_CONDITIONS_BUDGET = 2_500_000
"""The cost limit of all match conditions of one webhook."""


@cache
def kubernetes_functions() -> Library:
    """Every function that Kubernetes offers everywhere."""
    from .libraries import (
        authorizer,
        comprehensions,
        formats,
        lists,
        network,
        optionals,
        quantity,
        regex,
        semver,
        sets,
        standard,
        strings,
        urls,
    )

    modules: tuple[Any, ...] = (standard, optionals, comprehensions, strings, lists, sets, regex, urls, quantity)
    modules += (network, formats, semver, authorizer)
    return merged(module.LIBRARY for module in modules)


@cache
def kubernetes_types() -> dict[str, Type]:
    """The types that have a name in expressions: `net.IP`, `kubernetes.Quantity` and so on."""
    from .libraries import authorizer, formats, network, quantity, semver, urls

    found: dict[str, Type] = {}
    for module in (authorizer, formats, network, quantity, semver, urls):
        found |= module.TYPES
    return found


class Program:
    """A compiled expression."""

    def __init__(self, source: str, root: Node, variables: Mapping[str, Type]) -> None:
        self.source = source
        self.root = root
        self.result_type = root.type
        plan = Plan(root)
        self._run = plan.run
        self._size = plan.size
        self._inputs = [(name, slot, variables[name].convert) for name, slot in plan.slots.items()]
        self.reads = frozenset(plan.slots)
        self._made = not isinstance(root, (Ident, Select))  # its value was not there before
        self.costly = False
        """Whether an evaluation has cost more than `CHEAP`."""

    def evaluate(self, bindings: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> tuple[Any, int]:
        """The value and what it cost. Raises EvaluationError or CostLimitExceeded, which know the cost too."""
        values = [UNSET] * self._size
        for name, slot, convert in self._inputs:
            value: Any = bindings.get(name, UNSET)
            values[slot] = value if convert is None or value is UNSET else convert(value)
        frame = Frame(values, limit)
        try:
            result = self._run(frame)
            if self._made and isinstance(result, (list, dict)) and units(result) > PER_CALL_LIMIT:
                raise CostLimitExceeded  # a list that holds itself many times: writing it down needs the room
        except (EvaluationError, CostLimitExceeded) as error:
            error.cost = frame.cost
            raise
        except RecursionError:
            failed = EvaluationError("expression is nested too deeply")
            failed.cost = frame.cost
            raise failed from None
        except (TypeError, AttributeError, ValueError, OverflowError):  # a value that is not of its declared type
            failed = EvaluationError("no such overload")
            failed.cost = frame.cost
            raise failed from None
        if frame.cost > limit:
            exceeded = CostLimitExceeded()
            exceeded.cost = frame.cost
            raise exceeded
        return result, frame.cost

    def estimate(self, variables: Mapping[str, Type] | None = None) -> Estimate:
        """The least and greatest cost of an evaluation, from the bounds in the variables' types."""
        return estimate_cost(self.root, variables or {})


class Environment:
    """Variables and their types, functions, named types, macros."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        *,
        types: Mapping[str, Type] | None = None,
        functions: Library | None = None,
        bindings: bool = False,
    ) -> None:
        self.variables = dict(variables)
        self.types = {**kubernetes_types(), **(types or {})}
        base = kubernetes_functions()
        self.functions = base if functions is None else merged((base, functions))
        self.macros = macros.STANDARD | macros.BINDINGS if bindings else macros.STANDARD

    def extend(self, variables: Mapping[str, Type]) -> Environment:
        """The same with more variables."""
        made = Environment.__new__(Environment)
        made.__dict__.update(self.__dict__)
        made.variables = {**self.variables, **variables}
        return made

    def compile(self, expression: str) -> Program:
        """The expression, parsed and checked. Raises CompileError."""
        try:
            root = parse(expression, self.macros)
            check(expression, root, self.variables, self.functions, self.types)
            check_literals(expression, root)
            return Program(expression, root, self.variables)
        except RecursionError:
            raise CompileError(expression, [Problem(-1, "expression recursion limit exceeded: 250")]) from None
