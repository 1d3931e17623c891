"""How long to look: always the same few examples in the ordinary run, many new ones under `--soak`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

SOAK = 12
"""So many times the ordinary examples; the whole folder takes a quarter of an hour on a machine of its own."""

effort = pytest.mark.parametrize("effort", [1, pytest.param(SOAK, marks=pytest.mark.soak)], ids=["brief", "long"])
"""Gives a test its `effort`: 1, and SOAK when there is time."""


def attempt(check: Callable[..., Any], *inputs: st.SearchStrategy[Any], examples: int, effort: int) -> None:
    """Call `check` with so many examples of the inputs, times the effort."""

    def run(drawn: tuple[Any, ...]) -> None:
        note(repr(drawn)[:2000])
        check(*drawn)

    configured = settings(
        max_examples=examples * effort,
        derandomize=effort == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),  # explaining takes long and says little here
    )
    configured(given(st.tuples(*inputs))(run))()
