"""LimitRanger: defaults and bounds."""

from __future__ import annotations

from apiserver.admission.conftest import Play


def test_answers_as_upstream(play: Play) -> None:
    play("limit_ranger")
