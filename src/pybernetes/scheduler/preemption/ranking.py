"""Which of the candidates is best: where preemption does the least harm.

In this order: fewest broken budgets, the lowest highest priority of a victim, the smallest sum of priorities, fewest
victims, the latest start of the most important ones; of equals the first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..framework.extender import Victims
from ..framework.plugin import Mask
from .victims import start_time

_OFFSET = 1 << 31
"""Added to each priority of a sum: with negative ones, more victims would look better."""

Key = tuple[int, int, int, int, float]
"""Smaller is better."""


def harm(victims: Victims) -> Key:
    """How bad it would be. The victims are in order of importance."""
    highest = max(pod.priority for pod in victims.pods)
    return (
        victims.num_pdb_violations,
        highest,
        sum(pod.priority + _OFFSET for pod in victims.pods),
        len(victims.pods),
        -min(start_time(pod) for pod in victims.pods if pod.priority == highest),
    )


def best(
    victims: Mask,
    violations: npt.NDArray[np.int64],
    priority: npt.NDArray[np.int64],
    start: npt.NDArray[np.float64],
) -> int:
    """The same for candidates as arrays, one line each (most important pod first): which line is best."""
    lines = np.arange(len(victims))
    first = victims.argmax(axis=1)
    highest = priority[lines, first]
    for badness in (
        violations,
        highest,
        np.where(victims, priority + _OFFSET, 0).sum(axis=1),
        victims.sum(axis=1),
        -start[lines, first],  # in order of importance, so the first is also the oldest of its priority
    ):
        left = badness[lines]
        lines = lines[left == left.min()]
        if len(lines) == 1:
            break
    return int(lines[0])
