"""Namespaces: finalizers in the spec, and the phase that follows deletion."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from cases import NOW, USER

from pybernetes.api import scheme
from pybernetes.api.core.v1 import Namespace
from pybernetes.api.core.v1.namespace import NamespaceSpec, NamespaceStatus
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.apiserver.registry.registry import strategy_for
from pybernetes.apiserver.registry.strategy import Context, Strategy


@pytest.fixture
def strategy() -> Strategy:
    resource = scheme.resource("", "v1", "namespaces")
    assert resource is not None
    return strategy_for(resource)


@pytest.fixture
def stored(strategy: Strategy) -> Any:
    obj = Namespace(metadata=ObjectMeta(name="one", uid="u", creation_timestamp=NOW))
    strategy.default(obj)
    strategy.prepare_for_create(obj, context())
    assert strategy.validate(obj, context()) == []
    return obj


def context(subresource: str = "") -> Context:
    return Context(None, USER, NOW, subresource=subresource)  # type: ignore[arg-type]


def change(strategy: Strategy, subresource: str, new: Any, old: Any) -> list[str]:
    prepare, validate = strategy.rules(subresource)
    prepare(new, old, context(subresource))
    return [error.message() for error in validate(new, old, context(subresource))]


def test_a_new_namespace_is_active_finalized_by_kubernetes_and_labelled(stored: Any) -> None:
    assert stored.status == NamespaceStatus(phase="Active")
    assert stored.spec.finalizers == ["kubernetes"]
    assert stored.metadata.labels == {"kubernetes.io/metadata.name": "one"}


def test_a_generated_name_is_in_the_label_too(strategy: Strategy) -> None:
    obj = Namespace(metadata=ObjectMeta(generate_name="a-"))
    strategy.default(obj)
    assert obj.metadata is not None
    obj.metadata.name = "a-x7k2p"  # as the server does before it prepares
    strategy.prepare_for_create(obj, context())
    assert obj.metadata.labels == {"kubernetes.io/metadata.name": "a-x7k2p"}


def test_an_update_keeps_the_finalizers_the_status_and_the_label(strategy: Strategy, stored: Any) -> None:
    new = deepcopy(stored)
    new.spec, new.status, new.metadata.labels = NamespaceSpec(finalizers=["a/b"]), NamespaceStatus(phase="X"), None
    assert change(strategy, "", new, stored) == []
    assert (new.spec, new.status, new.metadata.labels) == (stored.spec, stored.status, stored.metadata.labels)


def test_finalize_changes_the_finalizers_only(strategy: Strategy, stored: Any) -> None:
    new = deepcopy(stored)
    new.spec.finalizers, new.status = None, NamespaceStatus(phase="X")
    assert change(strategy, "finalize", new, stored) == []
    assert new.spec.finalizers is None
    assert new.status == stored.status


def test_finalize_refuses_unknown_finalizers(strategy: Strategy, stored: Any) -> None:
    new = deepcopy(stored)
    new.spec.finalizers = ["foo"]
    assert change(strategy, "finalize", new, stored) == [
        'spec.finalizers[0]: Invalid value: "foo": name is neither a standard finalizer name nor is it fully qualified'
    ]


@pytest.mark.parametrize(
    ("deleted", "phase", "errors"),
    [
        (False, "Active", []),
        (True, "Terminating", []),
        (
            False,
            "Terminating",
            ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"],
        ),
        (
            True,
            "Active",
            ["status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"],
        ),
    ],
)
def test_the_phase_follows_deletion(
    strategy: Strategy, stored: Any, deleted: bool, phase: str, errors: list[str]
) -> None:
    stored.metadata.deletion_timestamp = NOW if deleted else None
    new = deepcopy(stored)
    new.status.phase = phase
    assert change(strategy, "status", new, stored) == errors


def test_finalizers_in_the_spec_hold_a_deleted_namespace(strategy: Strategy, stored: Any) -> None:
    assert strategy.held(stored)
    strategy.mark(stored)
    assert stored.status.phase == "Terminating"
    stored.spec.finalizers = None
    assert not strategy.held(stored)
