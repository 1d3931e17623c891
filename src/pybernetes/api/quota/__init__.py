"""Computes the usage that objects charge to a ResourceQuota. Pure; for admission and the controller.

`evaluators()` has one `Evaluator` for each resource that counts more than itself; every other resource is counted by
`ObjectCount`. `calculate_usage` is the whole answer for one quota.
"""

from __future__ import annotations

from .evaluator import (
    IGNORED,
    Evaluator,
    ObjectCount,
    Operation,
    calculate_usage,
    evaluator_for,
    evaluators,
    object_count_name,
    scope_selectors,
)

__all__ = [
    "IGNORED",
    "Evaluator",
    "ObjectCount",
    "Operation",
    "calculate_usage",
    "evaluator_for",
    "evaluators",
    "object_count_name",
    "scope_selectors",
]
