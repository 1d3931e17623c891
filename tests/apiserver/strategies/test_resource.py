"""What needs more than one object: access of administrators, devices that go, claims that are being deleted."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest
from cases import NOW, USER

from pybernetes.api import scheme
from pybernetes.api.core.v1 import Namespace
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.resource.v1 import ResourceClaim
from pybernetes.apiserver.registry.registry import strategy_for
from pybernetes.apiserver.registry.strategy import Context, Strategy


class Namespaces:
    """As much of a registry as is asked for: one namespace."""

    def __init__(self, labels: dict[str, str] | None) -> None:
        self._namespace = Namespace(metadata=ObjectMeta(name="team", labels=labels))

    def store(self, group: str, version: str, plural: str) -> Namespaces:
        assert (group, version, plural) == ("", "v1", "namespaces")
        return self

    def peek(self, namespace: str, name: str) -> Any:
        return self._namespace if name == "team" else None

    def decode(self, item: Any) -> Any:
        return item


def context(labels: dict[str, str] | None = None, namespace: str = "team") -> Context:
    return Context(Namespaces(labels), USER, NOW, namespace)  # type: ignore[arg-type]


@pytest.fixture
def strategy() -> Strategy:
    resource = scheme.resource_for_kind("resource.k8s.io", "v1", "ResourceClaim")
    assert resource is not None
    return strategy_for(resource)


def claim(strategy: Strategy, **more: Any) -> Any:
    exactly = {"deviceClassName": "a.b", **more}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    obj = msgspec.convert({"metadata": {"name": "c", "namespace": "team"}, "spec": spec}, ResourceClaim)
    strategy.default(obj)
    strategy.prepare_for_create(obj, context())
    return obj


def with_status(obj: Any, **status: Any) -> Any:
    obj = deepcopy(obj)
    obj.status = msgspec.convert(status, type(obj.status))
    return obj


def change(strategy: Strategy, new: Any, old: Any, asked_in: Context) -> list[str]:
    prepare, validate = strategy.rules("status")
    prepare(new, old, asked_in)
    return [error.message() for error in validate(new, old, asked_in)]


def results(*devices: str, **more: Any) -> dict[str, Any]:
    each = [{"request": "gpu", "driver": "a.b", "pool": "p", "device": device, **more} for device in devices]
    return {"devices": {"results": each}}


NEEDS_LABEL = (
    "Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label "
    "on the containing namespace"
)


def test_admin_access_needs_a_label_of_the_namespace(strategy: Strategy) -> None:
    obj = claim(strategy, adminAccess=True)
    assert [error.message() for error in strategy.validate(obj, context())] == [
        f"spec.devices.requests[0].adminAccess: {NEEDS_LABEL}"
    ]
    assert strategy.validate(obj, context({"resource.kubernetes.io/admin-access": "true"})) == []


def test_an_allocation_with_admin_access_needs_the_label_too(strategy: Strategy) -> None:
    old = claim(strategy)
    new = with_status(old, allocation=results("d", adminAccess=True))
    assert change(strategy, new, old, context()) == [f"status.allocation.devices.results[0].adminAccess: {NEEDS_LABEL}"]
    granted = deepcopy(new)
    assert change(strategy, granted, new, context()) == []


def test_an_allocation_never_changes(strategy: Strategy) -> None:
    old = with_status(claim(strategy), allocation=results("d"))
    new = with_status(old, allocation=results("e"))
    (message,) = change(strategy, new, old, context())
    assert message.startswith('status.allocation: Invalid value: {"Devices":{"Results":[{"Request":"gpu"')
    assert message.endswith("field is immutable")


def test_what_drivers_said_goes_with_the_devices(strategy: Strategy) -> None:
    said = [{"driver": "a.b", "pool": "p", "device": "d"}]
    old = with_status(claim(strategy), allocation=results("d"), devices=said)
    new = with_status(old, devices=said)
    assert change(strategy, new, old, context()) == []
    assert new.status.devices is None


def test_a_claim_that_is_being_deleted_cannot_be_reserved(strategy: Strategy) -> None:
    old = with_status(claim(strategy), allocation=results("d"))
    old.metadata.deletion_timestamp = NOW
    user = [{"resource": "pods", "name": "p", "uid": "1"}]
    new = with_status(old, allocation=results("d"), reservedFor=user)
    assert change(strategy, new, old, context()) == [
        "status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or "
        "`deletionTimestamp` are set"
    ]
