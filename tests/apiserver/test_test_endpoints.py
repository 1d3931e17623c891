"""`/debug/faults` and `/debug/state`: only where they are enabled, only for administrators, with SQLite too."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from apiserver.client import Client

import tools

MAPS = "/api/v1/namespaces/default/configmaps"
FAULTS, STATE = "/debug/faults", "/debug/state"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server with SQLite that has these paths; anonymous users may send requests, without permissions."""
    folder = tmp_path_factory.mktemp("endpoints")
    flags = ("--enable-test-endpoints", "--authorization-mode=RBAC")
    with tools.api_server(folder, *flags, store=f"sqlite://{folder}/state.db") as server:
        yield Client(server)


def test_a_server_has_them_only_where_they_are_enabled(cluster: tools.ApiServer) -> None:
    for path in (FAULTS, STATE):
        assert Client(cluster).get(path).status == 404


def test_only_administrators_are_answered(client: Client) -> None:
    stranger = Client(client.server, token="")
    for path in (FAULTS, STATE):
        assert stranger.get(path).status in (401, 403)
        assert stranger.post(path, {}).status in (401, 403)


def test_a_watch_that_runs_is_held_and_goes_on(client: Client) -> None:
    connection = client.connect()
    connection.request("GET", f"{MAPS}?watch=true&fieldSelector=metadata.name=held", headers=client._headers(None, {}))
    events = connection.getresponse()
    rule = {"action": "hold", "name": "stale", "resources": ["configmaps"], "verbs": ["watch"]}
    assert client.post(FAULTS, rule).status == 200
    client.post(MAPS, {"metadata": {"name": "held"}})
    assert connection.sock is not None
    connection.sock.settimeout(0.15)
    with pytest.raises(TimeoutError):
        events.readline()
    connection.close()
    assert client("DELETE", f"{FAULTS}?name=stale").json == {"faults": []}


def test_a_request_that_is_held_goes_on_when_the_rule_is_removed(client: Client) -> None:
    client.post(FAULTS, {"action": "hold", "name": "all", "resources": ["configmaps"], "verbs": ["create"]})
    connection = client.connect()
    body = json.dumps({"metadata": {"name": "late"}}).encode()
    connection.request("POST", MAPS, body, client._headers({}, {}))
    assert client.get(f"{MAPS}/late").status == 404
    client("DELETE", FAULTS)
    assert connection.getresponse().status == 201
    connection.close()


def test_what_is_written_past_the_checks_is_served_and_watched(client: Client) -> None:
    client.post(MAPS, {"metadata": {"name": "one"}, "data": {"a": "b"}})
    entries = {each["key"]: each["value"] for each in client.get(STATE).json["entries"]}
    key = "/registry/configmaps/default/one"
    stored = entries[key]
    assert stored["data"] == {"a": "b"}
    changed = {**stored, "data": {"a": "c"}}
    other = {**stored, "metadata": {**stored["metadata"], "name": "two", "uid": "2"}}
    body = json.dumps({"put": {key: changed, "/registry/configmaps/default/two": other}}, indent=1).encode()
    before = int(client.get(f"{MAPS}/one").json["metadata"]["resourceVersion"])
    assert client.post(STATE, body).json["revision"] > before
    assert client.get(f"{MAPS}/one").json["data"] == {"a": "c"}
    assert client.get(f"{MAPS}/two").json["metadata"]["uid"] == "2"
    client.post(STATE, {"delete": ["/registry/configmaps/default/two"]})
    assert client.get(f"{MAPS}/two").status == 404


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "Input data was truncated"),
        ({"puts": {}}, "unknown field"),
        ({"put": {"/other/a": {}}}, "'/other/a' is no key of an object"),
        ({"delete": ["/registry/pods/"]}, "'/registry/pods/' is no key of an object"),
    ],
)
def test_a_body_that_cannot_be_is_refused(client: Client, body: object, message: str) -> None:
    answer = client.post(STATE, body)
    assert answer.status == 400
    assert message in answer.message


def test_what_has_changed_since_a_revision_is_answered_in_order(client: Client) -> None:
    before = client.get(STATE).json["revision"]
    client.post(MAPS, {"metadata": {"name": "changed"}, "data": {"a": "1"}})
    client("DELETE", f"{MAPS}/changed")
    found = client.get(f"{STATE}?after={before}").json
    own = [each for each in found["changes"] if each["key"] == "/registry/configmaps/default/changed"]
    assert [each["value"] and each["value"]["data"] for each in own] == [{"a": "1"}, None]
    assert before < own[0]["revision"] < own[1]["revision"] <= found["revision"]
    rest = client.get(f"{STATE}?after={found['revision']}").json
    assert not [each for each in rest["changes"] if "changed" in each["key"]]


@pytest.mark.parametrize("after", ["", "x", "-1", "1.5", "9" * 19, "%D9%A3"])
def test_what_is_no_revision_is_refused(client: Client, after: str) -> None:
    answer = client.get(f"{STATE}?after={after}")
    assert answer.status == 400
    assert "is no revision" in answer.json["message"]
