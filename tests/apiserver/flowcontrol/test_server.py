"""Priority and fairness of a running server: objects, headers, refusals, tables. Floods are in test_flood.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.client import Client

from tools import ApiServer, api_server, wait_until

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


@pytest.fixture(scope="module")
def fair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with api_server(tmp_path_factory.mktemp("fair")) as server:
        yield server


@pytest.fixture(scope="module")
def admin(fair: ApiServer) -> Client:
    return Client(fair)


def uid(admin: Client, path: str) -> str:
    return str(admin.get(f"{FLOW}/{path}").json["metadata"]["uid"])


def test_the_objects_of_every_cluster_are_there(admin: Client) -> None:
    schemas = {each["metadata"]["name"]: each for each in admin.get(f"{FLOW}/flowschemas").json["items"]}
    levels = {each["metadata"]["name"] for each in admin.get(f"{FLOW}/prioritylevelconfigurations").json["items"]}
    assert len(schemas) == 11
    assert levels == {
        "catch-all",
        "exempt",
        "global-default",
        "leader-election",
        "node-high",
        "system",
        "workload-high",
        "workload-low",
    }
    assert all(
        each["metadata"]["annotations"] == {"apf.kubernetes.io/autoupdate-spec": "true"} for each in schemas.values()
    )


@pytest.mark.parametrize(
    ("user", "group", "path", "schema", "level"),
    [
        ("a", "system:masters", "/api/v1/pods", "exempt", "exempt"),
        ("a", "x", "/healthz", "probes", "exempt"),
        ("a", "x", "/api/v1/pods", "global-default", "global-default"),
        ("system:node:n", "system:nodes", "/api/v1/pods", "system-nodes", "system"),
        ("system:node:n", "system:nodes", "/api/v1/nodes/n", "system-node-high", "node-high"),
        ("system:kube-scheduler", "x", "/api/v1/pods", "kube-scheduler", "workload-high"),
        (
            "system:kube-scheduler",
            "x",
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x",
            "system-leader-election",
            "leader-election",
        ),
        (
            "system:serviceaccount:kube-system:a",
            "system:serviceaccounts",
            "/api/v1/pods",
            "kube-system-service-accounts",
            "workload-high",
        ),
        ("system:serviceaccount:ns:a", "system:serviceaccounts", "/api/v1/pods", "service-accounts", "workload-low"),
    ],
)
def test_answers_name_schema_and_level(
    admin: Client, user: str, group: str, path: str, schema: str, level: str
) -> None:
    headers = admin.get(path, Impersonate_User=user, Impersonate_Group=group).headers
    assert headers["X-Kubernetes-PF-FlowSchema-UID"] == uid(admin, f"flowschemas/{schema}")
    assert headers["X-Kubernetes-PF-PriorityLevel-UID"] == uid(admin, f"prioritylevelconfigurations/{level}")


def test_every_schema_says_whether_its_level_exists(admin: Client) -> None:
    def dangling(name: str) -> Any:
        conditions = admin.get(f"{FLOW}/flowschemas/{name}").json["status"].get("conditions", [])
        return {each["type"]: (each["status"], each["reason"]) for each in conditions}.get("Dangling")

    wait_until(lambda: dangling("exempt") == ("False", "Found"), "the status is there")
    spec = {"priorityLevelConfiguration": {"name": "later"}, "matchingPrecedence": 1000}
    assert admin.post(f"{FLOW}/flowschemas", {"metadata": {"name": "dangles"}, "spec": spec}).status == 201
    wait_until(lambda: dangling("dangles") == ("True", "NotFound"), "the schema dangles")
    level = {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}
    assert (
        admin.post(f"{FLOW}/prioritylevelconfigurations", {"metadata": {"name": "later"}, "spec": level}).status == 201
    )
    wait_until(lambda: dangling("dangles") == ("False", "Found"), "the level was found")


def test_a_request_without_seats_gets_retry_after(admin: Client) -> None:
    level = {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        },
    }
    assert (
        admin.post(f"{FLOW}/prioritylevelconfigurations", {"metadata": {"name": "none"}, "spec": level}).status == 201
    )
    rule = {
        "subjects": [{"kind": "User", "user": {"name": "unwanted"}}],
        "resourceRules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
        ],
    }
    spec = {"priorityLevelConfiguration": {"name": "none"}, "matchingPrecedence": 50, "rules": [rule]}
    assert admin.post(f"{FLOW}/flowschemas", {"metadata": {"name": "unwanted"}, "spec": spec}).status == 201
    refused = admin.get("/api/v1/pods", Impersonate_User="unwanted")
    assert refused.status == 429
    assert refused.headers["Retry-After"] == "1"
    assert refused.body == b"Too many requests, please try again later.\n"
    assert refused.headers["X-Kubernetes-PF-FlowSchema-UID"] == uid(admin, "flowschemas/unwanted")
    assert admin.get("/api/v1/pods", Impersonate_User="wanted").status == 200
    metrics = admin.get("/metrics").body.decode()
    labels = 'flow_schema="unwanted",priority_level="none",reason="concurrency-limit"'
    prefix = "apiserver_flowcontrol_"
    assert f"{prefix}rejected_requests_total{{{labels}}} 1.0" in metrics
    waited = 'execute="false",flow_schema="unwanted",priority_level="none"'
    assert f"{prefix}request_wait_duration_seconds_count{{{waited}}} 1.0" in metrics
    served = 'flow_schema="global-default",priority_level="global-default"'
    for name in ("dispatched_requests_total", "work_estimated_seats_count"):
        assert re.search(rf"^{prefix}{name}\{{{served}\}} [1-9]", metrics, re.MULTILINE), name
    for name in ("executing_requests", "executing_seats", "inqueue_requests", "inqueue_seats"):
        assert f"{prefix}current_{name}{{{served}}} 0.0" in metrics
    assert f'{prefix}request_execution_seconds_count{{{served},type="regular"}}' in metrics
    for name in ("nominal", "lower", "upper", "current"):
        assert f'{prefix}{name}_limit_seats{{priority_level="none"}} 0.0' in metrics


def test_mandatory_objects_come_back_and_suggested_ones_stay_as_they_were_made(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path}/store.db"
    with api_server(tmp_path / "one", store=store) as server:
        client = Client(server)
        assert client.delete(f"{FLOW}/flowschemas/catch-all").status == 200
        assert client.get("/api/v1/pods", Impersonate_User="x").status == 200
        changed = {"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}}}
        client.patch(f"{FLOW}/flowschemas/probes", {**changed, "spec": {"matchingPrecedence": 7}})
        client.patch(f"{FLOW}/flowschemas/service-accounts", {"spec": {"matchingPrecedence": 7}})
    with api_server(tmp_path / "two", store=store) as server:
        client = Client(server)

        def precedence(name: str) -> int:
            return int(client.get(f"{FLOW}/flowschemas/{name}").json["spec"]["matchingPrecedence"])

        assert precedence("catch-all") == 10000
        assert precedence("probes") == 7
        assert precedence("service-accounts") == 9000


def test_without_it_there_is_the_limit_of_old(tmp_path: Path) -> None:
    with api_server(tmp_path, "--enable-priority-and-fairness=false") as server:
        answer = Client(server).get("/api/v1/pods")
        assert "X-Kubernetes-PF-FlowSchema-UID" not in answer.headers
        assert Client(server).get(f"{FLOW}/flowschemas").json["items"] == []


def test_what_happens_is_shown_in_upstreams_tables(admin: Client) -> None:
    admin.get("/api/v1/pods", Impersonate_User="shown")
    answer = admin.get("/debug/api_priority_and_fairness/dump_priority_levels")
    assert answer.status == 200
    head, *rows = [[cell.strip() for cell in line.split(",")] for line in answer.body.decode().splitlines()]
    assert head[:3] == ["PriorityLevelName", "ActiveQueues", "IsIdle"]
    levels = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert levels["exempt"]["ExecutingRequests"] == "1"  # this one
    assert int(levels["global-default"]["DispatchedRequests"]) >= 1
    assert levels["global-default"]["IsIdle"] == "true"
    queues = admin.get("/debug/api_priority_and_fairness/dump_queues").body.decode().splitlines()
    assert len([line for line in queues if line.startswith("global-default,")]) == 128
    assert admin.get("/debug/api_priority_and_fairness/dump_queues", Impersonate_User="shown").status == 200
    assert not any("debug" in path for path in admin.get("/").json["paths"])


def rows_of(text: str) -> list[dict[str, str]]:
    head, *rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_requests_are_shown_while_they_are_served(admin: Client) -> None:
    dump = "/debug/api_priority_and_fairness/dump_requests"
    (short,) = rows_of(admin.get(dump).body.decode())
    assert short["PriorityLevelName"] == short["FlowSchemaName"] == "exempt"
    assert (short["QueueIndex"], short["RequestIndexInQueue"]) == ("-1", "-1")
    assert (short["InitialSeats"], short["FinalSeats"], short["AdditionalLatency"]) == ("1", "0", "0s")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", short["ArriveTime"])
    assert "UserName" not in short
    (long,) = rows_of(admin.get(f"{dump}?includeRequestDetails=1", Impersonate_User="shown").body.decode())
    assert long["FlowDistingsher"] == long["UserName"] == "shown"
    assert (long["Verb"], long["APIPath"], long["Resource"]) == ("get", dump, "")
