"""Flags whose work is not done yet are refused before anything is read or changed."""

from __future__ import annotations

import pytest

from pybernetes.kubectl import main as kubectl


@pytest.mark.parametrize(
    "argv",
    [["apply", "--prune", "--applyset=x", "-f", "nothing.yaml"], ["diff", "--prune", "-f", "nothing.yaml"]],
)
def test_an_unsupported_way_to_prune_is_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl.main(argv) > 0
    assert "not supported" in capsys.readouterr().err
