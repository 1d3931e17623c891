"""Quantities such as `1.5Gi`."""

from __future__ import annotations

from ... import quantity as quantities
from ...quantity import DECIMAL_SI, Quantity, QuantityError
from ..functions import Library, function, method
from ..types import BOOL, DOUBLE, INT, STRING, Type
from ..values import INT_MAX, INT_MIN, EvaluationError, Opaque

QUANTITY = Type("object", "kubernetes.Quantity", fields={})
TYPES = {QUANTITY.name: QUANTITY}


class QuantityValue(Opaque):
    """A quantity inside an expression."""

    __slots__ = ("quantity",)
    cel_type = QUANTITY

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantityValue) and self.quantity.cmp(other.quantity) == 0

    def __hash__(self) -> int:
        return hash(self.quantity)

    def __str__(self) -> str:
        return str(self.quantity)


def _parse(text: str) -> QuantityValue:
    try:
        return QuantityValue(quantities.parse(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is(text: str) -> bool:
    try:
        quantities.parse(text)
    except QuantityError:
        return False
    return True


def _integer(value: QuantityValue) -> int | None:
    """The whole number; one that is written in fractions (1000m) is none, as upstream has it."""
    quantity = value.quantity
    if quantity.exponent < 0 or quantity.exponent > 19:
        return None
    found = quantity.mantissa * int(10**quantity.exponent)
    return found if INT_MIN <= found <= INT_MAX else None


def _as_integer(value: QuantityValue) -> int:
    found = _integer(value)
    if found is None:
        raise EvaluationError("cannot convert value to integer")
    return found


def _of_int(value: int) -> Quantity:
    return Quantity(value, 0, DECIMAL_SI)


LIBRARY: Library = {
    "quantity": [function("string_to_quantity", (STRING,), QUANTITY, _parse)],
    "isQuantity": [function("is_quantity_string", (STRING,), BOOL, _is)],
    "sign": [
        function("quantity_sign", (QUANTITY,), INT, lambda value: value.quantity.sign()),
    ],
    "isGreaterThan": [
        method("quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, lambda a, b: a.quantity.cmp(b.quantity) > 0)
    ],
    "isLessThan": [
        method("quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, lambda a, b: a.quantity.cmp(b.quantity) < 0)
    ],
    "compareTo": [method("quantity_compare_to", (QUANTITY, QUANTITY), INT, lambda a, b: a.quantity.cmp(b.quantity))],
    "asApproximateFloat": [
        method("quantity_get_float", (QUANTITY,), DOUBLE, lambda value: float(value.quantity.decimal()))
    ],
    "asInteger": [method("quantity_get_int", (QUANTITY,), INT, _as_integer)],
    "isInteger": [method("quantity_is_integer", (QUANTITY,), BOOL, lambda value: _integer(value) is not None)],
    "add": [
        method("quantity_add", (QUANTITY, QUANTITY), QUANTITY, lambda a, b: QuantityValue(a.quantity + b.quantity)),
        method("quantity_add_int", (QUANTITY, INT), QUANTITY, lambda a, b: QuantityValue(a.quantity + _of_int(b))),
    ],
    "sub": [
        method("quantity_sub", (QUANTITY, QUANTITY), QUANTITY, lambda a, b: QuantityValue(a.quantity - b.quantity)),
        method("quantity_sub_int", (QUANTITY, INT), QUANTITY, lambda a, b: QuantityValue(a.quantity - _of_int(b))),
    ],
}
