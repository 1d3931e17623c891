"""Whatever a client sends as an object of any kind, it gets the object or a refusal; nothing breaks on the way."""

from __future__ import annotations

import pytest
from fuzz import wild
from fuzz.budget import SOAK, attempt, effort
from fuzz.journey import STORED, journey
from hypothesis import strategies as st

from pybernetes.api.resources import Resource

kinds = pytest.mark.parametrize("resource", STORED, ids=lambda each: f"{each.api_version}/{each.kind}")

VALIDATIONS = st.sampled_from(("Strict", "Warn", "Ignore"))


@kinds
@effort
def test_an_odd_value_in_any_field_of_any_kind(resource: Resource, effort: int) -> None:
    way = journey(resource)
    base = way.base()
    # A field of the pod template is much the same in every kind that has one, so each looks at other values.
    step = 400 if effort < SOAK else 40
    count = STORED.index(resource)
    for _, documents in wild.single(resource.type):
        for document in documents:
            count += 1
            if count % step == 0:
                way.travel(wild.encode(document))
                way.travel(wild.encode(wild.graft(base, document)))


@kinds
@effort
def test_good_objects_with_some_values_spoiled(resource: Resource, effort: int) -> None:
    way = journey(resource)
    documents = wild.mutated(way.base(), resource.type).map(wild.encode)
    attempt(way.travel, documents, VALIDATIONS, examples=15, effort=effort)


@kinds
@effort
def test_objects_full_of_odd_values(resource: Resource, effort: int) -> None:
    way = journey(resource)
    attempt(way.travel, wild.documents(resource.type).map(wild.encode), VALIDATIONS, examples=15, effort=effort)


@kinds
@effort
def test_bodies_that_are_no_objects(resource: Resource, effort: int) -> None:
    way = journey(resource)
    attempt(way.travel, wild.wild_bytes, VALIDATIONS, examples=4, effort=effort)
