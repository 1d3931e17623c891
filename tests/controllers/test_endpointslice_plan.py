"""What to write so that a Service's slices are what its pods are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api.core.v1 import Node, Pod, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.controllers.endpointslice.endpoints import endpoint_key
from pybernetes.controllers.endpointslice.hints import Topology, zone_ratios
from pybernetes.controllers.endpointslice.plan import Plan, plan, set_trigger_time
from pybernetes.controllers.endpointslice.tracking import SliceTracker, TriggerTimes


def service(**spec: Any) -> Service:
    merged = {
        "selector": {"app": "web"},
        "clusterIP": "10.0.0.1",
        "ipFamilies": ["IPv4"],
        "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
        **spec,
    }
    metadata = {"name": "web", "namespace": "ns", "uid": "service", "labels": {"a": "b"}}
    metadata["annotations"] = merged.pop("annotations", {})
    return msgspec.convert({"metadata": metadata, "spec": merged}, Service)


def pod(number: int, *, ready: bool = True, zone: str = "a", **more: Any) -> Pod:
    return msgspec.convert(
        {
            "metadata": {
                "name": f"pod-{number}",
                "namespace": "ns",
                "uid": f"uid-{number}",
                **more.pop("metadata", {}),
            },
            "spec": {"nodeName": f"node-{zone}", **more.pop("spec", {})},
            "status": {
                "phase": "Running",
                "podIP": f"10.1.{number // 250}.{number % 250}",
                "podIPs": [{"ip": f"10.1.{number // 250}.{number % 250}"}, {"ip": f"fd00::{number:x}"}],
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                **more,
            },
        },
        Pod,
    )


def node(name: str) -> Node | None:
    if not name:
        return None
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": name.removeprefix("node-")}},
            "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
        },
        Node,
    )


def planned(of: Service, pods: list[Pod], slices: list[EndpointSlice] | None = None, **more: Any) -> Plan:
    return plan(of, pods, more.pop("node", node), slices or [], more.pop("topology", Topology()), **more)


def stored(created: list[EndpointSlice]) -> list[EndpointSlice]:
    """As the server would have them."""
    result = []
    for number, each in enumerate(created):
        copied = msgspec.json.decode(msgspec.json.encode(each), type=EndpointSlice)
        assert copied.metadata is not None
        copied.metadata.name, copied.metadata.uid = f"web-{number}", f"slice-{number}"
        result.append(copied)
    return result


def counts(slices: list[EndpointSlice]) -> list[int]:
    return [len(each.endpoints or ()) for each in slices]


def test_a_pod_is_an_endpoint_with_its_node_zone_target_and_conditions() -> None:
    (made,) = planned(service(), [pod(1)]).changes.create
    assert msgspec.to_builtins(made) == {
        "metadata": {
            "generateName": "web-",
            "namespace": "ns",
            "labels": {
                "a": "b",
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "name": "web",
                    "uid": "service",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.1.0.1"],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "nodeName": "node-a",
                "targetRef": {"kind": "Pod", "name": "pod-1", "namespace": "ns", "uid": "uid-1"},
                "zone": "a",
            }
        ],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


@pytest.mark.parametrize(
    ("ready", "deleted", "publish", "expected"),
    [
        (True, False, False, (True, True, False)),
        (False, False, False, (False, False, False)),
        (True, True, False, (False, True, True)),
        (False, True, True, (True, False, True)),
        (False, False, True, (True, False, False)),
    ],
)
def test_conditions(ready: bool, deleted: bool, publish: bool, expected: tuple[bool, bool, bool]) -> None:
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    (made,) = planned(
        service(publishNotReadyAddresses=publish), [pod(1, ready=ready, metadata=metadata)]
    ).changes.create
    assert made.endpoints
    conditions = made.endpoints[0].conditions
    assert conditions is not None
    assert (conditions.ready, conditions.serving, conditions.terminating) == expected


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_are_no_endpoints_and_a_placeholder_remains(phase: str) -> None:
    (made,) = planned(service(), [pod(1, phase=phase)]).changes.create
    assert (made.endpoints, made.ports) == ([], [])
    again = planned(service(), [], stored([made]))
    assert (again.changes.create, again.changes.update, again.changes.delete) == ([], [], [])


def test_both_families_have_slices_of_their_own() -> None:
    changes = planned(service(ipFamilies=["IPv6", "IPv4"]), [pod(1)]).changes
    assert [(each.address_type, (each.endpoints or [])[0].addresses) for each in changes.create] == [
        ("IPv6", ["fd00::1"]),
        ("IPv4", ["10.1.0.1"]),
    ]
    single = planned(service(), [pod(1)], stored(changes.create)).changes
    assert [each.address_type for each in single.delete] == ["IPv6"]
    assert (single.create, single.update) == ([], [])


def test_at_most_a_hundred_endpoints_are_in_a_slice() -> None:
    changes = planned(service(), [pod(number) for number in range(250)]).changes
    assert counts(changes.create) == [100, 100, 50]


def test_new_endpoints_go_into_the_fullest_slice_they_all_fit_in() -> None:
    slices = stored(planned(service(), [pod(number) for number in range(250)]).changes.create)
    changes = planned(service(), [pod(number) for number in range(253)], slices).changes
    assert (len(changes.create), counts(changes.update)) == (0, [53])


def test_new_endpoints_fill_slices_that_are_written_anyway() -> None:
    slices = stored(planned(service(), [pod(number) for number in range(200)]).changes.create)
    pods = [pod(number) for number in range(10, 200)] + [pod(number) for number in range(300, 320)]
    changes = planned(service(), pods, slices).changes
    assert sorted(counts(changes.create) + counts(changes.update)) == [10, 100]
    assert not changes.delete


def test_nothing_is_written_when_nothing_changes() -> None:
    pods = [pod(1), pod(2, ready=False)]
    slices = stored(planned(service(), pods).changes.create)
    changes = planned(service(), pods, slices).changes
    assert (changes.create, changes.update, changes.delete) == ([], [], [])


def test_a_pod_that_becomes_ready_is_one_update() -> None:
    slices = stored(planned(service(), [pod(1, ready=False)]).changes.create)
    changes = planned(service(), [pod(1)], slices).changes
    assert (len(changes.create), len(changes.update), len(changes.delete)) == (0, 1, 0)


def test_labels_of_the_service_are_copied_when_they_change() -> None:
    slices = stored(planned(service(), [pod(1)]).changes.create)
    changed = service()
    assert changed.metadata is not None
    changed.metadata.labels = {"a": "c", "kubernetes.io/service-name": "lie"}
    (updated,) = planned(changed, [pod(1)], slices).changes.update
    assert updated.metadata is not None
    assert updated.metadata.labels == {
        "a": "c",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }


def test_named_ports_are_looked_up_in_each_pod_and_differing_pods_get_slices_of_their_own() -> None:
    of = service(ports=[{"name": "p", "port": 80, "targetPort": "http", "protocol": "TCP"}])
    ports = [{"name": "http", "containerPort": 1, "protocol": "TCP"}]
    other = [{"name": "http", "containerPort": 2, "protocol": "TCP"}]
    pods = [
        pod(1, spec={"containers": [{"name": "c", "ports": ports}]}),
        pod(2, spec={"initContainers": [{"name": "side", "restartPolicy": "Always", "ports": other}]}),
        pod(3, spec={"initContainers": [{"name": "init", "ports": other}]}),
    ]
    changes = planned(of, pods).changes
    assert [[port.port for port in each.ports or ()] for each in changes.create] == [[1], [2], []]


def test_a_change_of_ports_reuses_the_slice() -> None:
    slices = stored(planned(service(), [pod(1)]).changes.create)
    changed = service(ports=[{"name": "http", "port": 80, "targetPort": 9090, "protocol": "TCP"}])
    changes = planned(changed, [pod(1)], slices).changes
    assert (changes.create, changes.delete) == ([], [])
    (updated,) = changes.update
    assert updated.metadata is not None
    assert (updated.metadata.name, [each.port for each in updated.ports or ()]) == ("web-0", [9090])


def test_headless_services_say_so_and_need_no_ports() -> None:
    (made,) = planned(service(clusterIP="None", ports=[]), [pod(1)]).changes.create
    assert made.metadata is not None
    assert made.metadata.labels is not None
    assert made.metadata.labels["service.kubernetes.io/headless"] == ""
    assert (counts([made]), made.ports) == ([1], [])


def test_a_pod_with_a_host_name_in_the_service_has_it_on_its_endpoint() -> None:
    (made,) = planned(service(), [pod(1, spec={"hostname": "db-0", "subdomain": "web"})]).changes.create
    assert made.endpoints
    assert made.endpoints[0].hostname == "db-0"
    (made,) = planned(service(), [pod(1, spec={"hostname": "db-0", "subdomain": "other"})]).changes.create
    assert made.endpoints
    assert made.endpoints[0].hostname is None


def test_a_pod_whose_node_is_not_known_waits_unless_unready_addresses_are_published() -> None:
    result = planned(service(), [pod(1)], node=lambda name: None)
    assert result.skipped == ["skipping Pod pod-1 for Service ns/web: Node node-a Not Found"]
    assert counts(result.changes.create) == [0]
    result = planned(service(publishNotReadyAddresses=True), [pod(1)], node=lambda name: None)
    assert (result.skipped, counts(result.changes.create)) == ([], [1])


def test_slices_of_an_earlier_service_of_the_same_name_go() -> None:
    slices = stored(planned(service(), [pod(1)]).changes.create)
    new = service()
    assert new.metadata is not None
    new.metadata.uid = "reborn"
    changes = planned(new, [pod(1)], slices).changes
    assert (len(changes.create), len(changes.delete)) == (1, 1)


@pytest.mark.parametrize(
    ("distribution", "hints"),
    [
        ("PreferClose", {"forZones": [{"name": "a"}]}),
        ("PreferSameZone", {"forZones": [{"name": "a"}]}),
        ("PreferSameNode", {"forZones": [{"name": "a"}], "forNodes": [{"name": "node-a"}]}),
    ],
)
def test_traffic_distribution_hints_ready_endpoints_at_their_own_place(distribution: str, hints: Any) -> None:
    plain = stored(planned(service(), [pod(1), pod(2, ready=False)]).changes.create)
    (updated,) = planned(service(trafficDistribution=distribution), [pod(1), pod(2, ready=False)], plain).changes.update
    assert [msgspec.to_builtins(each.hints) for each in updated.endpoints or ()] == [hints, None]
    (back,) = planned(service(), [pod(1), pod(2, ready=False)], [updated]).changes.update
    assert [each.hints for each in back.endpoints or ()] == [None, None]


def test_topology_mode_shares_endpoints_out_over_the_zones() -> None:
    topology = Topology(zone_ratios([each for each in map(node, ("node-a", "node-b")) if each]))
    of = service(annotations={"service.kubernetes.io/topology-mode": "Auto"})
    result = planned(of, [pod(number) for number in range(4)], topology=topology)
    (made,) = result.changes.create
    zones = sorted(each.hints.for_zones[0].name for each in made.endpoints or () if each.hints and each.hints.for_zones)
    assert zones == ["a", "a", "b", "b"]
    assert [each.reason for each in result.events] == ["TopologyAwareHintsEnabled"]
    result = planned(of, [pod(1)], stored([made]), topology=topology)
    assert [each.message for each in result.events] == [
        "Insufficient number of endpoints (1 endpoints, 2 zones), addressType: IPv4"
    ]


def test_the_trigger_time_is_the_oldest_change_since_the_last_write() -> None:
    times = TriggerTimes()
    of = service()
    assert of.metadata is not None
    of.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    first, second = pod(1), pod(2)
    for each, time in ((first, "2026-01-02T00:00:00Z"), (second, "2026-01-03T00:00:00Z")):
        assert each.status is not None
        assert each.status.conditions
        each.status.conditions[0].last_transition_time = time
    assert times.compute(of, []) == "2026-01-01T00:00:00Z"
    assert times.compute(of, [first, second]) == "2026-01-02T00:00:00Z"
    assert times.compute(of, [first, second]) is None
    made = EndpointSlice()
    set_trigger_time(made, "2026-01-02T00:00:00Z")
    assert made.metadata is not None
    assert made.metadata.annotations == {"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T00:00:00Z"}
    set_trigger_time(made, None)
    assert made.metadata.annotations is None


def test_a_cache_behind_our_writes_is_stale() -> None:
    tracker = SliceTracker()
    (made,) = stored(planned(service(), [pod(1)]).changes.create)
    assert made.metadata is not None
    made.metadata.generation = 2
    assert tracker.is_news(made)
    tracker.wrote(made)
    assert not tracker.is_news(made)
    assert tracker.is_stale(service(), [])
    assert not tracker.is_stale(service(), [made])
    older = msgspec.json.decode(msgspec.json.encode(made), type=EndpointSlice)
    assert older.metadata is not None
    older.metadata.generation = 1
    assert tracker.is_stale(service(), [older])
    tracker.deleted(made)
    assert tracker.is_stale(service(), [made])
    assert not tracker.is_stale(service(), [])
    assert tracker.expected(made)


def test_endpoints_of_the_same_addresses_but_other_pods_are_others() -> None:
    (a,) = planned(service(), [pod(1)]).changes.create
    (b,) = planned(service(), [pod(1, metadata={"name": "other"})]).changes.create
    assert a.endpoints
    assert b.endpoints
    assert endpoint_key(a.endpoints[0]) != endpoint_key(b.endpoints[0])
