"""A container that lowers its own score, or another process's, lets the kernel kill another process for its memory.

Vector: `oom_score_adj` of other processes and below one's own.
"""

from __future__ import annotations

import pytest
from escape.conftest import Inside
from escape.writing import refused

WRITES = {
    "init": "echo -1000 > /proc/1/oom_score_adj",
    "own": "echo -1000 > /proc/self/oom_score_adj",
    "old_file": "echo -17 > /proc/self/oom_adj",
}


@pytest.mark.parametrize("vector", WRITES)
def test_it_cannot_be_written(inside: Inside, vector: str) -> None:
    refused(inside, WRITES[vector])
