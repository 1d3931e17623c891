"""DefaultTolerationSeconds: five minutes on a lost node."""

from __future__ import annotations

from apiserver.admission.conftest import Play


def test_answers_as_upstream(play: Play) -> None:
    play("default_toleration_seconds")
