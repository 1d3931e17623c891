"""The schemas and levels that every cluster has pass their own checks, and nothing else under their names does."""

from __future__ import annotations

from copy import deepcopy

import pytest

from pybernetes.api.flowcontrol.defaults import DEFAULTS
from pybernetes.api.flowcontrol.mandatory import flow_schemas, priority_level_configurations
from pybernetes.api.flowcontrol.v1 import (
    ExemptPriorityLevelConfiguration,
    FlowSchema,
    PriorityLevelConfiguration,
)
from pybernetes.api.flowcontrol.validation import CREATE
from pybernetes.api.meta.v1.objectmeta import ObjectMeta


@pytest.mark.parametrize("name", ["exempt", "catch-all"])
def test_mandatory_schemas_are_valid_as_they_are(name: str) -> None:
    schema = FlowSchema(metadata=ObjectMeta(name=name), spec=deepcopy(flow_schemas()[name]))
    DEFAULTS["FlowSchema"](schema)
    assert CREATE["FlowSchema"](schema) == []


@pytest.mark.parametrize("name", ["exempt", "catch-all"])
def test_mandatory_levels_are_valid_as_they_are(name: str) -> None:
    level = PriorityLevelConfiguration(
        metadata=ObjectMeta(name=name), spec=deepcopy(priority_level_configurations()[name])
    )
    DEFAULTS["PriorityLevelConfiguration"](level)
    assert CREATE["PriorityLevelConfiguration"](level) == []


def test_an_administrator_may_give_shares_to_the_exempt_level() -> None:
    level = PriorityLevelConfiguration(
        metadata=ObjectMeta(name="exempt"), spec=deepcopy(priority_level_configurations()["exempt"])
    )
    assert level.spec is not None
    level.spec.exempt = ExemptPriorityLevelConfiguration(nominal_concurrency_shares=5)
    DEFAULTS["PriorityLevelConfiguration"](level)
    assert CREATE["PriorityLevelConfiguration"](level) == []
