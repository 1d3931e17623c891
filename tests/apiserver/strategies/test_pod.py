"""How the registry treats pods: what it fills in, how long a deletion waits, what each subresource may touch."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api import scheme
from pybernetes.api.core.v1 import Pod
from pybernetes.apiserver.registry.registry import strategy_for
from pybernetes.apiserver.registry.strategy import Context, Strategy

NOW = "2025-01-01T00:00:00Z"
GATE = {"schedulingGates": [{"name": "a"}]}


@pytest.fixture
def strategy() -> Strategy:
    resource = scheme.resource("", "v1", "pods")
    assert resource is not None
    return strategy_for(resource)


@pytest.fixture
def context() -> Context:
    return Context(None, None, NOW, warnings=[])  # type: ignore[arg-type]


def pod(
    strategy: Strategy, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any
) -> Any:
    body = {
        "metadata": {"name": "p", "namespace": "n", "generation": 1, **meta},
        "spec": {"containers": [{"name": "c", "image": "x"}], **(spec or {})},
        "status": status or {},
    }
    obj = msgspec.convert(body, Pod)
    strategy.default(obj)
    return obj


def test_a_new_pod_is_pending_with_a_class_of_service_and_a_generation(strategy: Strategy, context: Context) -> None:
    new = pod(strategy, status={"phase": "Running", "podIP": "1.2.3.4"})
    strategy.prepare_for_create(new, context)
    assert new.metadata.generation == 1
    assert msgspec.to_builtins(new.status) == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_gated_pod_says_that_it_waits(strategy: Strategy, context: Context) -> None:
    new = pod(strategy, GATE)
    strategy.prepare_for_create(new, context)
    assert msgspec.to_builtins(new.status.conditions) == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": NOW,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def test_an_app_armor_annotation_becomes_a_field_and_a_warning(strategy: Strategy, context: Context) -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    new = pod(strategy, annotations={key: "localhost/foo"})
    strategy.prepare_for_create(new, context)
    profile = new.spec.containers[0].security_context.app_armor_profile
    assert (profile.type, profile.localhost_profile) == ("Localhost", "foo")
    assert context.warnings == [
        f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    ]
    assert strategy.validate(new, context) == []


def test_a_spec_that_came_before_is_completed_for_each_pod(strategy: Strategy, context: Context) -> None:
    selector = {"matchLabels": {"a": "b"}}
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    spread = {"topologySpreadConstraints": [{**constraint, "matchLabelKeys": ["app"]}]}
    signal = [{"name": "c", "image": "x", "lifecycle": {"stopSignal": "SIGUSR1"}}]
    for labels in ({}, {"app": "x"}, {"app": "y"}):
        new = pod(strategy, spread, labels=labels)
        strategy.prepare_for_create(new, context)
        assert strategy.validate(new, context) == []
        added = new.spec.topology_spread_constraints[0].label_selector.match_expressions or []
        assert [each.values for each in added] == [[each] for each in labels.values()]
        plain = pod(strategy, {"serviceAccountName": "s"}, labels=labels)
        signalled = pod(strategy, {"containers": signal, "serviceAccountName": "s"}, labels=labels)
        for each in (plain, signalled):
            strategy.prepare_for_create(each, context)
        assert signalled.spec.containers[0].lifecycle is None
        assert plain.spec == signalled.spec
        assert plain.spec.service_account == "s"


def test_a_name_set_by_admission_shows_under_its_old_name_too(strategy: Strategy, context: Context) -> None:
    new = pod(strategy)
    new.spec.service_account_name = "default"
    strategy.prepare_for_create(new, context)
    assert new.spec.service_account == "default"


@pytest.mark.parametrize(
    ("spec", "phase", "wanted", "seconds"),
    [
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 7}, "Running", None, 7),
        ({"nodeName": "n"}, "Running", 5, 5),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -3, 1),
        ({}, "Pending", None, 0),
        ({}, "Pending", 60, 0),
        ({"nodeName": "n"}, "Succeeded", None, 0),
        ({"nodeName": "n"}, "Failed", 60, 0),
    ],
)
def test_deletion_waits_for_a_kubelet_that_runs_something(
    strategy: Strategy, spec: dict[str, Any], phase: str, wanted: int | None, seconds: int
) -> None:
    assert strategy.grace_period(pod(strategy, spec, {"phase": phase}), wanted) == seconds


def test_a_change_of_the_spec_is_a_new_generation_and_of_a_label_is_not(strategy: Strategy, context: Context) -> None:
    old = pod(strategy)
    same = pod(strategy, {"nodeSelector": {}, "hostNetwork": False}, labels={"a": "b"})
    other = pod(strategy, {"activeDeadlineSeconds": 5})
    for new in (same, other):
        strategy.prepare_for_update(new, old, context)
    assert (same.metadata.generation, other.metadata.generation) == (1, 2)


def test_an_update_does_not_touch_the_status_and_a_status_update_not_the_spec(
    strategy: Strategy, context: Context
) -> None:
    old = pod(strategy, {"nodeName": "n"}, {"phase": "Running", "qosClass": "BestEffort"})
    new = pod(strategy, {"nodeName": "m"}, {"phase": "Failed"}, ownerReferences=[{"name": "x"}])
    strategy.prepare_for_update(new, old, context)
    assert new.status.phase == "Running"
    new = pod(strategy, {"nodeName": "m"}, {"phase": "Failed"}, ownerReferences=[{"name": "x"}])
    strategy.prepare_for_status_update(new, old, context)
    assert (new.spec.node_name, new.status.phase, new.status.qos_class) == ("n", "Failed", "BestEffort")
    assert new.metadata.owner_references is None


def test_addresses_in_the_status_are_warned_of_only_if_the_status_is_accepted(
    strategy: Strategy, context: Context
) -> None:
    host = {"hostIP": "010.0.0.1", "hostIPs": [{"ip": "010.0.0.1"}], "qosClass": "BestEffort"}
    old = pod(strategy, status=host)
    prepare, validate = strategy.rules("status")
    for status, warnings in (({"podIPs": [{"ip": "010.0.0.1"}]}, 0), ({}, 1)):
        new = pod(strategy, status=host | status)
        prepare(new, old, context)
        errors = validate(new, old, context)
        assert (bool(errors), len(context.warnings)) == (not warnings, warnings)


def test_observed_generations_are_not_lost_to_clients_that_do_not_know_them(
    strategy: Strategy, context: Context
) -> None:
    old = pod(
        strategy,
        status={
            "observedGeneration": 3,
            "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}],
        },
    )
    new = pod(strategy, status={"conditions": [{"type": "Ready", "status": "False"}, {"type": "x.io/y"}]})
    strategy.prepare_for_status_update(new, old, context)
    assert new.status.observed_generation == 3
    assert [each.observed_generation for each in new.status.conditions] == [2, None]


def test_resize_takes_resources_and_nothing_else(strategy: Strategy, context: Context) -> None:
    def sized(cpu: str, image: str) -> Any:
        container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
        return pod(strategy, {"containers": [container]}, labels={"image": image})

    old, new = sized("1", "a"), sized("2", "b")
    prepare, validate = strategy.rules("resize")
    prepare(new, old, context)
    container = new.spec.containers[0]
    assert (container.image, container.resources.requests, new.metadata.labels) == ("a", {"cpu": "2"}, {"image": "a"})
    assert new.metadata.generation == 2
    assert validate(new, old, context) == []


def test_features_that_are_off_leave_no_trace_in_new_pods_and_stay_in_old_ones(
    strategy: Strategy, context: Context
) -> None:
    spec = {
        "schedulingGroup": {"podGroupName": "g"},
        "volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "p"}}]}}],
    }
    new = pod(strategy, spec)
    strategy.prepare_for_create(new, context)
    assert new.spec.scheduling_group is None
    assert new.spec.volumes[0].projected.sources[0].cluster_trust_bundle is None
    old, new = pod(strategy, spec), pod(strategy, spec)
    strategy.prepare_for_update(new, old, context)
    assert new.spec.scheduling_group is not None
    assert new.spec.volumes[0].projected.sources[0].cluster_trust_bundle is not None


def test_dependents_of_a_replication_controller_are_orphaned_by_default() -> None:
    resource = scheme.resource("", "v1", "replicationcontrollers")
    assert resource is not None
    assert strategy_for(resource).default_propagation() == "Orphan"
