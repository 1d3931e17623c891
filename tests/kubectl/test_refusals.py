"""Flags whose work is not done yet are refused before anything is read or changed."""

from __future__ import annotations

import pytest

from pybernetes.kubectl import main as kubectl


@pytest.mark.parametrize(
    "argv",
    [
        ["get", "pods", "--profile=cpu"],
        ["get", "pods", "--vmodule=x=1"],
    ],
)
def test_a_flag_without_effect_is_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl.main(argv) > 0
    assert "not supported" in capsys.readouterr().err
