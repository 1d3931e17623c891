"""Values of an enumeration are found without comparing all of them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pybernetes.api.apiextensions.enumerations import Enumeration
from pybernetes.api.apiextensions.v1 import JSONSchemaProps
from pybernetes.api.apiextensions.values import MOST_ERRORS, validate_value
from pybernetes.api.structural.checking import compile_check

VALUES = ["a", 1, 2.5, True, None, {"a": [1, {}]}, [], [0]]


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        *[("a", True), ("b", False), ("", False), (1, True), (1.0, True), (1.9, True), (2, False), (2.5, True)],
        *[(True, True), (False, False), (0, False), (None, False), ("None", False), ("1", False)],
        *[({"a": [1, {}]}, True), ({"a": [1]}, False), ({}, False), ([], True), ([0], True), ([[]], False)],
    ],
)
def test_a_value_is_one_of_them(value: Any, allowed: bool) -> None:
    assert (value in Enumeration(VALUES)) is allowed


def test_a_boolean_is_no_number() -> None:
    assert True not in Enumeration([1])
    assert 1 not in Enumeration([True])


@pytest.mark.parametrize("make", [str, lambda number: {"a": [number]}], ids=["texts", "objects"])
def test_many_items_of_many_values_take_time_in_proportion(make: Any) -> None:
    """60,000 items of 20,000 values held up the server for 49 s."""
    count = 4000
    schema = JSONSchemaProps(type="array", items=JSONSchemaProps(enum=[make(number) for number in range(count)]))
    good = [make(number) for number in range(count)]
    bad = [make(-1 - number) for number in range(count)]
    began = time.thread_time()
    assert compile_check(schema)(good)
    assert validate_value(good, schema) == []
    errors = validate_value(bad, schema)
    assert time.thread_time() - began < 1.0
    assert len(errors) == count
    assert errors[-1].detail.startswith("supported values: ")


def test_not_all_errors_of_a_large_value_are_looked_for() -> None:
    schema = JSONSchemaProps(type="array", items=JSONSchemaProps(type="object", required=["a", "b"]))
    assert len(validate_value([{}] * 50_000, schema)) == MOST_ERRORS
    keys = JSONSchemaProps(type="object", additional_properties=JSONSchemaProps(type="integer"))
    assert len(validate_value({str(number): "" for number in range(2 * MOST_ERRORS)}, keys)) == MOST_ERRORS
