"""Names of signals as images and requests have them."""

from __future__ import annotations

import signal

import pytest

from pybernetes.cri.embedded.signals import signal_number


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("SIGKILL", signal.SIGKILL),
        ("quit", signal.SIGQUIT),
        ("9", 9),
        ("SIGRTMIN+3", signal.SIGRTMIN + 3),
        ("RTMIN", signal.SIGRTMIN),
        ("SIGRTMAX-2", signal.SIGRTMAX - 2),
        ("SIGRTMINPLUS3", signal.SIGRTMIN + 3),
        ("SIGNOTHING", signal.SIGTERM),
        ("", signal.SIGTERM),
        ("\N{SUPERSCRIPT TWO}", signal.SIGTERM),
        ("SIGRTMIN+\N{SUPERSCRIPT TWO}", signal.SIGTERM),
    ],
)
def test_signals_have_names_and_numbers_and_what_is_none_is_term(name: str, number: int) -> None:
    assert signal_number(name) == number
