"""RuntimeClass: overhead, selectors and tolerations."""

from __future__ import annotations

from apiserver.admission.conftest import Play


def test_answers_as_upstream(play: Play) -> None:
    play("runtime_class")
