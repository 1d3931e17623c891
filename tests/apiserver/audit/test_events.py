"""What a server writes into its audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.client import Client

from tools import ApiServer, api_server, wait_until

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [
        {"level": "None", "resources": [{"resources": ["events"]}]},
        {"level": "Metadata", "resources": [{"resources": ["secrets"]}]},
        {"level": "Request", "resources": [{"resources": ["services"]}], "omitStages": ["RequestReceived"]},
        {"level": "RequestResponse", "resources": [{"resources": ["endpoints"]}], "omitManagedFields": True},
        {"level": "RequestResponse"},
    ],
}


class Log:
    """The events of a server, by the User-Agent of a test."""

    def __init__(self, server: ApiServer, file: Path) -> None:
        self.file = file
        self.client = Client(server)

    def __call__(self, agent: str) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [each for each in events if each.get("userAgent") == agent]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    folder = tmp_path_factory.mktemp("audited")
    policy = folder / "policy.json"
    policy.write_text(json.dumps(POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={folder}/audit.log", "--authorization-mode=RBAC")
    with api_server(folder, *flags) as server:
        yield Log(server, folder / "audit.log")


@pytest.fixture
def place(log: Log) -> str:
    return log.client.namespace("audited-")


def test_a_create_is_recorded_from_the_request_to_the_answer(log: Log, place: str) -> None:
    path = f"/api/v1/namespaces/{place}/configmaps"
    made = log.client.post(path, {"metadata": {"name": "a"}, "data": {"k": "v"}}, User_Agent="create", Audit_ID="mine")
    assert made.headers["Audit-Id"] == "mine"
    received, complete = log("create")
    assert list(received) == [
        "kind",
        "apiVersion",
        "level",
        "auditID",
        "stage",
        "requestURI",
        "verb",
        "user",
        "sourceIPs",
        "userAgent",
        "objectRef",
        "requestReceivedTimestamp",
        "stageTimestamp",
    ]
    assert received["stage"] == "RequestReceived"
    assert received["auditID"] == complete["auditID"] == "mine"
    assert received["user"]["username"] == "kubernetes-admin"
    assert received["sourceIPs"] == ["127.0.0.1"]
    assert complete["stage"] == "ResponseComplete"
    assert complete["requestURI"] == path
    assert complete["objectRef"] == {
        "resource": "configmaps",
        "namespace": place,
        "name": "a",
        "apiVersion": "v1",
    }
    assert complete["requestObject"] == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
        "data": {"k": "v"},
    }
    assert complete["responseObject"] == made.json
    assert complete["responseStatus"] == {"metadata": {}, "code": 201}
    assert complete["annotations"] == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}


def test_nothing_of_a_secret_is_recorded_at_the_level_of_metadata(log: Log, place: str) -> None:
    path = f"/api/v1/namespaces/{place}/secrets"
    log.client.post(path, {"metadata": {"name": "s"}, "stringData": {"k": "topsecret"}}, User_Agent="secret")
    log.client.get(f"{path}/s", User_Agent="secret")
    events = log("secret")
    assert [each["level"] for each in events] == ["Metadata"] * 4
    assert not any("requestObject" in each or "responseObject" in each for each in events)
    text = log.file.read_text()
    assert "topsecret" not in text
    assert "dG9wc2VjcmV0" not in text


def test_levels_and_stages_are_those_of_the_rule(log: Log, place: str) -> None:
    core = f"/api/v1/namespaces/{place}"
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    log.client.post(f"{core}/services", service, User_Agent="levels")
    endpoints = log.client.post(
        f"{core}/endpoints", {"metadata": {"name": "e", "labels": {"a": "b"}}}, User_Agent="levels"
    )
    log.client.get(f"{core}/endpoints", User_Agent="levels")
    log.client.get(f"{core}/events", User_Agent="levels")
    of_service, _, made, _, listed = log("levels")
    assert of_service["stage"] == "ResponseComplete"
    assert "requestObject" in of_service
    assert "responseObject" not in of_service
    assert "managedFields" in endpoints.json["metadata"]
    assert "managedFields" not in made["responseObject"]["metadata"]
    assert all("managedFields" not in each["metadata"] for each in listed["responseObject"]["items"])


def test_refusals_are_recorded_with_their_status(log: Log, place: str) -> None:
    log.client.get(f"/api/v1/namespaces/{place}/pods/none", User_Agent="refused")
    log.client.get("/api/v1/nodes", User_Agent="refused", Impersonate_User="jane")
    Client(log.client.server, token="wrong").get("/api/v1/nodes", User_Agent="unknown")
    _, missing, _, forbidden = log("refused")
    assert missing["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": 'pods "none" not found',
        "reason": "NotFound",
        "details": {"name": "none", "kind": "pods"},
        "code": 404,
    }
    assert forbidden["user"]["username"] == "kubernetes-admin"
    assert forbidden["impersonatedUser"] == {"username": "jane", "groups": ["system:authenticated"]}
    assert forbidden["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert forbidden["responseStatus"]["code"] == 403
    (unknown,) = log("unknown")
    assert (unknown["stage"], unknown["user"]) == ("ResponseStarted", {})
    assert unknown["responseStatus"]["code"] == 401


def test_the_reason_of_a_permission_is_recorded(log: Log) -> None:
    Client(log.client.server, token="").get("/healthz", User_Agent="reason")
    assert log("reason")[1]["annotations"]["authorization.k8s.io/reason"] == (
        'RBAC: allowed by ClusterRoleBinding "system:public-info-viewer" of ClusterRole '
        '"system:public-info-viewer" to Group "system:unauthenticated"'
    )


def test_a_watch_has_a_beginning_and_an_end(log: Log, place: str) -> None:
    log.client.get(f"/api/v1/namespaces/{place}/pods?watch=1&timeoutSeconds=1", User_Agent="watch")
    wait_until(lambda: len(log("watch")) == 3, "the watch has ended")
    assert [each["stage"] for each in log("watch")] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]


def test_patches_are_recorded_as_they_came(log: Log, place: str) -> None:
    path = f"/api/v1/namespaces/{place}/configmaps/p"
    log.client.post(f"/api/v1/namespaces/{place}/configmaps", {"metadata": {"name": "p"}})
    patch = [{"op": "add", "path": "/data", "value": {"a": "b"}}]
    log.client("PATCH", path, patch, Content_Type="application/json-patch+json", User_Agent="patch")
    yaml = b"apiVersion: v1\nkind: ConfigMap\ndata: {x: z}\n"
    log.client("PATCH", f"{path}?fieldManager=m", yaml, Content_Type="application/apply-patch+yaml", User_Agent="patch")
    _, json_patch, _, applied = log("patch")
    assert json_patch["requestObject"] == patch
    assert applied["requestObject"] == {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "z"}}


def test_what_is_no_object_is_recorded_without_one(log: Log, place: str) -> None:
    answer = log.client("POST", f"/api/v1/namespaces/{place}/configmaps", b"{", User_Agent="broken")
    assert answer.status == 400
    event = log("broken")[1]
    assert event["responseStatus"]["code"] == 400
    assert "requestObject" not in event


def test_addresses_of_proxies_are_recorded(log: Log) -> None:
    log.client.get("/version", User_Agent="proxied", X_Forwarded_For="1.2.3.4, bad, 5.6.7.8")
    assert log("proxied")[0]["sourceIPs"] == ["1.2.3.4", "5.6.7.8", "127.0.0.1"]


def test_events_are_counted(log: Log) -> None:
    def counted(name: str) -> float:
        lines = log.client.get("/metrics").body.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"apiserver_audit_{name}"))

    assert counted("event_total") + 2 == counted("event_total"), "two of each request"
    assert counted('level_total{level="RequestResponse"}') > 0
    assert counted("requests_rejected_total") == 0


def test_the_log_is_private(log: Log) -> None:
    assert log.file.stat().st_mode & 0o777 == 0o600


def test_what_was_sent_is_recorded_as_it_was_understood(log: Log, place: str) -> None:
    core = f"/api/v1/namespaces/{place}"
    container = {"name": "c", "image": "i"}
    log.client.post(f"{core}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [container]}}, User_Agent="sent")
    log.client.post(f"{core}/pods/p/eviction", {"metadata": {"name": "p"}}, User_Agent="sent")
    log.client.post(f"{core}/serviceaccounts", {"metadata": {"name": "a"}})
    log.client.post(f"{core}/serviceaccounts/a/token", {}, User_Agent="sent")
    log.client.put(f"/api/v1/namespaces/{place}/finalize", {"metadata": {"name": place}}, User_Agent="sent")
    pod, eviction, token, finalized = (
        each["requestObject"] for each in log("sent") if each["stage"] == "ResponseComplete"
    )
    assert (pod["kind"], pod["spec"]["restartPolicy"]) == ("Pod", "Always")
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert eviction == {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}}
    assert (token["kind"], token["metadata"], token["spec"]["expirationSeconds"]) == ("TokenRequest", {}, 3600)
    assert (finalized["kind"], finalized["status"]["phase"]) == ("Namespace", "Active")


def test_an_unread_body_is_not_recorded(log: Log, place: str) -> None:
    path = f"/api/v1/namespaces/{place}/configmaps"
    body = {"metadata": {"name": "a"}}
    assert log.client.post(path, body, User_Agent="unread", Impersonate_User="nobody").status == 403
    (complete,) = [each for each in log("unread") if each["stage"] == "ResponseComplete"]
    assert "requestObject" not in complete
    assert "name" not in complete["objectRef"]


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("POST", "/apis/none/v1/things", {"a": 1}, {}, 404),
        ("POST", "/api/v1/pods", {"a": 1}, {}, 405),
        ("PATCH", "/api/v1/namespaces/default/configmaps/a", {"a": 1}, {"Content_Type": "x/y"}, 415),
        ("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}}, {"Accept": "x/y"}, 406),
        ("POST", "/api/v1/namespaces/default/configmaps", {"kind": "Pod", "metadata": {"name": "a"}}, {}, 400),
    ],
)
def test_unreadable_bodies_are_not_recorded(
    log: Log, method: str, path: str, body: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    agent = f"unreadable-{status}"
    assert log.client(method, path, body, User_Agent=agent, **headers).status == status
    complete = log(agent)[-1]
    assert complete["responseStatus"]["code"] == status
    assert "requestObject" not in complete
    assert ("responseObject" in complete) == (status not in (404, 406)), "a page of text, and no form agreed on"


@pytest.mark.parametrize(
    ("path", "token", "kind"),
    [
        ("/apis", None, "APIGroupList"),
        ("/api/v1", None, "APIResourceList"),
        ("/nowhere", "", "Status"),
        ("/api", "nonsense", "Status"),
        ("/version", None, None),
        ("/openid/v1/jwks", None, None),
    ],
)
def test_objects_are_recorded_wherever_they_are_answered(
    log: Log, path: str, token: str | None, kind: str | None
) -> None:
    agent = f"everywhere-{path}"
    client = log.client if token is None else Client(log.client.server, token)
    client.get(path, User_Agent=agent)
    assert log(agent)[-1].get("responseObject", {}).get("kind") == kind


def test_an_answer_in_yaml_is_recorded_in_json(log: Log, place: str) -> None:
    path = f"/api/v1/namespaces/{place}/configmaps"
    log.client.post(path, {"metadata": {"name": "a"}}, User_Agent="yaml", Accept="application/yaml")
    assert log("yaml")[-1]["responseObject"]["metadata"]["name"] == "a"
    log.client.get(f"{path}/none", User_Agent="yaml-refused", Accept="application/yaml")
    assert log("yaml-refused")[-1]["responseStatus"]["reason"] == "NotFound"


@pytest.mark.parametrize("name", [True, 7, None, {"a": "b"}])
def test_a_body_that_is_no_object_is_refused_and_recorded(log: Log, place: str, name: object) -> None:
    agent = f"wrong-{name}"
    path = f"/api/v1/namespaces/{place}/configmaps"
    assert log.client.post(path, {"metadata": {"name": name}}, User_Agent=agent).status in (400, 422)
    assert [each["stage"] for each in log(agent)] == ["RequestReceived", "ResponseComplete"]


def test_what_would_have_lasted_has_begun_before_it_ends(log: Log, place: str) -> None:
    log.client.get(f"/api/v1/namespaces/{place}/pods/none/log", User_Agent="lasts")
    received, started, complete = log("lasts")
    assert (received["stage"], started["stage"], complete["stage"]) == (
        "RequestReceived",
        "ResponseStarted",
        "ResponseComplete",
    )
    assert started["responseStatus"] == complete["responseStatus"]
    assert started["responseStatus"]["code"] == 404


@pytest.mark.parametrize(
    ("forwarded", "real", "expected"),
    [
        ("1.2.3.4, 5.6.7.8", "9.9.9.9", ["1.2.3.4", "5.6.7.8", "9.9.9.9", "127.0.0.1"]),
        ("1.2.3.4, nonsense", "1.2.3.4", ["1.2.3.4", "127.0.0.1"]),
        ("1.2.3.4, 127.0.0.1", "", ["1.2.3.4", "127.0.0.1"]),
        ("", "9.9.9.9", ["9.9.9.9", "127.0.0.1"]),
        ("01.2.3.4, ::ffff:5.6.7.8, fe80::1%eth0", "2001:DB8:0::1", ["1.2.3.4", "5.6.7.8", "2001:db8::1", "127.0.0.1"]),
    ],
)
def test_where_a_request_comes_from(log: Log, forwarded: str, real: str, expected: list[str]) -> None:
    agent = f"from-{forwarded}-{real}"
    log.client.get("/version", User_Agent=agent, X_Forwarded_For=forwarded, X_Real_Ip=real)
    assert log(agent)[0]["sourceIPs"] == expected
