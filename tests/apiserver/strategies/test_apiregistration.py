"""APIServices that this server serves itself."""

from __future__ import annotations

from cases import NOW, USER

from pybernetes.api import scheme
from pybernetes.api.apiregistration.v1 import APIService, APIServiceSpec
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.apiserver.registry.registry import strategy_for
from pybernetes.apiserver.registry.strategy import Context


def test_a_local_api_service_is_available_at_once() -> None:
    resource = scheme.resource_for_kind("apiregistration.k8s.io", "v1", "APIService")
    assert resource is not None
    strategy = strategy_for(resource)
    context = Context(None, USER, NOW)  # type: ignore[arg-type]
    spec = APIServiceSpec(group="example.com", version="v1", group_priority_minimum=100, version_priority=10)
    obj = APIService(metadata=ObjectMeta(name="v1.example.com"), spec=spec)
    strategy.default(obj)
    strategy.prepare_for_create(obj, context)
    assert strategy.validate(obj, context) == []
    assert obj.status is not None
    (condition,) = obj.status.conditions or []
    assert (condition.type, condition.status, condition.reason) == ("Available", "True", "Local")
    assert condition.last_transition_time == NOW
