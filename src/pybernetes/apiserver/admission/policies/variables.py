"""`variables.x`: worked out when an expression first asks, and at most once for an evaluation of the policy."""

from __future__ import annotations

from typing import Any

from pybernetes.api.admissionregistration.expressions import Composition
from pybernetes.api.cel.environment import PER_CALL_LIMIT
from pybernetes.api.cel.types import Type
from pybernetes.api.cel.values import CostLimitExceeded, EvaluationError
from pybernetes.api.gocompat.quote import quote

_TYPE = Type("object", "kubernetes.variables", fields={})


class Variables:
    """The values so far. Their cost is charged once, to the expression that used them first."""

    __slots__ = ("_bindings", "_composition", "_cost", "_errors", "_values", "limit")
    cel_type = _TYPE

    def __init__(self, composition: Composition, bindings: dict[str, Any]) -> None:
        self._composition = composition
        self._bindings = bindings
        self._values: dict[str, Any] = {}
        self._errors: dict[str, str] = {}
        self._cost = 0
        self.limit = PER_CALL_LIMIT
        """The cost limit of one variable; exceeding less than upstream's limit ends the evaluation, to be tried
        again."""

    def cel_has(self, name: str) -> bool:
        """Whether there is such a variable."""
        return name in self._composition.variables

    def cel_field(self, name: str) -> Any:
        """The value. Raises EvaluationError."""
        if name in self._values:
            return self._values[name]
        if name not in self._errors:
            self._evaluate(name)
            if name in self._values:
                return self._values[name]
        raise EvaluationError(self._errors[name])

    def _evaluate(self, name: str) -> None:
        expression = self._composition.variables.get(name)
        if expression is None:
            self._errors[name] = f"no such key: {name}"
        elif expression.program is None:
            self._errors[name] = f"composited variable {quote(name)} fails to compile: {expression.error}"
        else:
            try:
                self._values[name], cost = expression.program.evaluate(self._bindings, self.limit)
            except (EvaluationError, CostLimitExceeded) as error:
                if isinstance(error, CostLimitExceeded) and self.limit < PER_CALL_LIMIT:
                    raise
                cost = error.cost
                self._errors[name] = f"composited variable {quote(name)} fails to evaluate: {error}"
            self._cost += cost

    def spent(self) -> int:
        """The cost since the last call."""
        cost, self._cost = self._cost, 0
        return cost
