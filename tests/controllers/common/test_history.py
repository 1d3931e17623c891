"""Revisions of templates: the patch that clients compare byte by byte, numbers and order."""

from __future__ import annotations

import msgspec
import pytest

from pybernetes.api.apps.v1 import ControllerRevision
from pybernetes.api.core.v1.compute import ResourceRequirements
from pybernetes.api.core.v1.container import Container
from pybernetes.api.core.v1.pod import PodSpec, PodTemplateSpec
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.controllers.common.history import (
    in_order,
    next_collision,
    next_revision,
    revision_name,
    template_of,
    template_patch,
)

TEMPLATE = PodTemplateSpec(
    metadata=ObjectMeta(labels={"b": "1", "a": "2"}),
    spec=PodSpec(containers=[Container(name="c", image="i", resources=ResourceRequirements())]),
)


def test_the_patch_is_what_a_go_client_writes() -> None:
    assert msgspec.json.encode(template_patch(TEMPLATE)) == (
        b'{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":"2","b":"1"}},'
        b'"spec":{"containers":[{"image":"i","name":"c","resources":{}}]}}}}'
    )


def test_the_template_comes_back() -> None:
    assert template_of(ControllerRevision(data=template_patch(TEMPLATE))) == TEMPLATE


@pytest.mark.parametrize("data", [None, {}, {"spec": 1}, {"spec": {"template": {"spec": 5}}}])
def test_other_data_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="holds no pod template"):
        template_of(ControllerRevision(metadata=ObjectMeta(name="x"), data=data))


def test_numbers_order_revisions() -> None:
    one, two = ControllerRevision(revision=1), ControllerRevision(revision=2)
    assert in_order([two, one]) == [one, two]
    assert next_revision([two, one]) == 3
    assert next_revision([]) == 1


def test_long_names_are_cut() -> None:
    assert revision_name("a" * 300, "hash") == "a" * 223 + "-hash"


def test_there_is_a_next_revision_after_the_largest_and_a_next_collision() -> None:
    largest = ControllerRevision(revision=2**63 - 1)
    assert next_revision([ControllerRevision(revision=3), largest]) == 2**63 - 1
    assert next_revision([ControllerRevision(revision=3)]) == 4
    assert [next_collision(each) for each in (None, 0, 7, 2**31 - 1)] == [1, 1, 8, 0]
