"""What may not change in a definition once objects of it may be stored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api.apiextensions.defaults import DEFAULTS
from pybernetes.api.apiextensions.v1 import CustomResourceDefinition
from pybernetes.api.apiextensions.validation import UPDATE


def definition(established: bool, **spec: Any) -> CustomResourceDefinition:
    fields = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
            **spec,
        },
        "status": {"conditions": [{"type": "Established", "status": str(established)}]},
    }
    made = msgspec.convert(fields, CustomResourceDefinition)
    DEFAULTS["CustomResourceDefinition"](made)
    return made


OTHER = {"scope": "Cluster", "names": {"plural": "widgets", "kind": "Gadget"}}


@pytest.mark.parametrize(
    ("established", "messages"),
    [
        (False, []),
        (
            True,
            [
                'spec.scope: Invalid value: "Cluster": field is immutable',
                'spec.names.kind: Invalid value: "Gadget": field is immutable',
            ],
        ),
    ],
)
def test_scope_and_kind_are_fixed_once_established(established: bool, messages: list[str]) -> None:
    errors = UPDATE["CustomResourceDefinition"](definition(established, **OTHER), definition(established))
    assert [error.message() for error in errors] == messages


def test_an_old_schema_that_is_not_structural_may_stay_if_unknown_fields_are_kept() -> None:
    loose = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"properties": {"a": {}}}}}]
    old = definition(True, versions=loose, preserveUnknownFields=True)
    assert UPDATE["CustomResourceDefinition"](old, old) == []
    strict = definition(True, versions=loose)
    assert UPDATE["CustomResourceDefinition"](strict, old) != []
