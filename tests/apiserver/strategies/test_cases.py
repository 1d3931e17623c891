"""Objects of every kind are filled in, accepted and refused as an upstream server does it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import Case, load, outcome


@pytest.mark.parametrize("case", list(load(Path(__file__).parent / "cases")), ids=str)
def test_an_object_fares_as_with_upstream(case: Case) -> None:
    assert case.expected, "not recorded: see tools/record_cases.py"
    assert outcome(case) == case.expected
