"""Annotations of ReplicaSets that others wrote."""

from __future__ import annotations

import pytest

from pybernetes.api.apps.v1 import ReplicaSet
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.controllers.deployment.annotations import REVISION, max_revision, revision


def replicaset(text: str) -> ReplicaSet:
    """A ReplicaSet that says it is this revision."""
    return ReplicaSet(metadata=ObjectMeta(name="r", annotations={REVISION: text}))


@pytest.mark.parametrize(
    ("text", "found"),
    [("7", 7), ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None), ("", None), ("x", None), ("-1", -1)],
)
def test_a_revision_is_a_number_of_64_bits(text: str, found: int | None) -> None:
    assert revision(replicaset(text)) == found


def test_after_the_largest_revision_there_is_a_next_one_that_clients_can_read() -> None:
    assert max_revision([replicaset("9223372036854775807"), replicaset("3")]) + 1 == 2**63 - 1
