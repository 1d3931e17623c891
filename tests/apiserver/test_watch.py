"""Watches: every change once, in order, from any revision that is still known."""

from __future__ import annotations

import json
import threading
import time

import pytest
import websocket
from apiserver.client import Client


@pytest.fixture
def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def version(answer: dict[str, object]) -> str:
    return str(answer["metadata"]["resourceVersion"])  # type: ignore[index]


def test_changes_arrive_in_order_with_growing_versions(client: Client, path: str) -> None:
    start = version(client.get(path).json)
    with client.watch(f"{path}?watch=true&resourceVersion={start}") as watch:
        client.post(path, {"metadata": {"name": "a"}, "data": {"x": "1"}})
        client.patch(f"{path}/a", {"data": {"x": "2"}})
        client.delete(f"{path}/a")
        events = watch.take(3)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event["object"]["data"]["x"] for event in events] == ["1", "2", "2"]
    assert all(event["object"]["kind"] == "ConfigMap" for event in events)
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_a_version_that_is_not_yet_known_is_reported_in_the_answer_if_the_state_was_asked_for(
    client: Client, path: str
) -> None:
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999"
    answer = client.get(f"{path}?{query}")
    assert (answer.status, answer.json["type"], answer.json["object"]["code"]) == (200, "ERROR", 504)
    assert answer.json["object"]["message"].startswith("Timeout: Too large resource version: 99999999, current: ")


def test_what_no_table_can_show_is_refused_at_once(client: Client, path: str) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    answer = client.get(f"{path}?watch=true&includeObject=X", Accept=accept)
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert "must be 'Metadata', 'Object', 'None', or empty" in answer.message


def test_without_a_version_the_state_comes_first(client: Client, path: str) -> None:
    for name in ("a", "b"):
        client.post(path, {"metadata": {"name": name}})
    for query in ("watch=true", "watch=1&resourceVersion=0"):
        with client.watch(f"{path}?{query}") as watch:
            assert [(e["type"], e["object"]["metadata"]["name"]) for e in watch.take(2)] == [
                ("ADDED", "a"),
                ("ADDED", "b"),
            ]


def test_a_watch_resumes_where_it_was_left(client: Client, path: str) -> None:
    made = [client.post(path, {"metadata": {"name": f"c{n}"}}).json for n in range(5)]
    with client.watch(f"{path}?watch=true&resourceVersion={version(made[1])}") as watch:
        assert [event["object"]["metadata"]["name"] for event in watch.take(3)] == ["c2", "c3", "c4"]


def test_entering_and_leaving_a_selection(client: Client, path: str) -> None:
    start = version(client.get(path).json)
    with client.watch(f"{path}?watch=true&labelSelector=pick%3Dme&resourceVersion={start}") as watch:
        client.post(path, {"metadata": {"name": "a"}})
        client.patch(f"{path}/a", {"metadata": {"labels": {"pick": "me"}}})
        client.patch(f"{path}/a", {"data": {"still": "in"}})
        left = client.patch(f"{path}/a", {"metadata": {"labels": None}, "data": {"still": "out"}}).json
        client.delete(f"{path}/a")
        client.post(path, {"metadata": {"name": "b", "labels": {"pick": "me"}}})
        events = watch.take(4)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    gone = events[2]["object"]
    assert gone["data"] == {"still": "in"}, "the last state that was selected"
    assert version(gone) == version(left), "at the revision at which it left"


def test_field_selectors_watch_one_object(client: Client, path: str) -> None:
    start = version(client.get(path).json)
    with client.watch(f"{path}?watch=true&fieldSelector=metadata.name%3Db&resourceVersion={start}") as watch:
        client.post(path, {"metadata": {"name": "a"}})
        client.post(path, {"metadata": {"name": "b"}})
        assert watch.take(1)[0]["object"]["metadata"]["name"] == "b"


def test_streaming_lists_end_with_a_marked_bookmark(client: Client, path: str) -> None:
    for name in ("a", "b"):
        client.post(path, {"metadata": {"name": name}})
    query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    with client.watch(f"{path}?{query}") as watch:
        *added, bookmark = watch.take(3)
        assert [event["type"] for event in added] == ["ADDED", "ADDED"]
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        client.delete(f"{path}/a")
        assert watch.take(1)[0]["type"] == "DELETED"


def test_a_watch_ends_after_its_timeout(client: Client, path: str) -> None:
    started = time.monotonic()
    with client.watch(f"{path}?watch=true&timeoutSeconds=1") as watch:
        assert list(watch) == []
    assert 0.9 < time.monotonic() - started < 10


def test_bad_options_are_refused(client: Client, path: str) -> None:
    for query in ("sendInitialEvents=true", "resourceVersionMatch=NotOlderThan&resourceVersion=5"):
        answer = client.get(f"{path}?watch=true&{query}")
        assert (answer.status, answer.json["reason"]) == (422, "Invalid"), query


def test_the_old_watch_paths(client: Client, path: str, namespace: str) -> None:
    client.post(path, {"metadata": {"name": "a"}})
    client.post(path, {"metadata": {"name": "b"}})
    with client.watch(f"/api/v1/watch/namespaces/{namespace}/configmaps") as watch:
        assert len(watch.take(2)) == 2
    with client.watch(f"/api/v1/watch/namespaces/{namespace}/configmaps/b") as watch:
        assert watch.take(1)[0]["object"]["metadata"]["name"] == "b"


def test_many_watchers_see_the_same_order(client: Client, path: str) -> None:
    start = version(client.get(path).json)
    seen: list[list[str]] = []
    ready = threading.Barrier(9)

    def follow() -> None:
        with client.watch(f"{path}?watch=true&resourceVersion={start}") as watch:
            ready.wait()
            seen.append([version(event["object"]) for event in watch.take(60)])

    threads = [threading.Thread(target=follow) for _ in range(8)]
    for thread in threads:
        thread.start()
    ready.wait()

    def write(first: int) -> None:
        for number in range(first, 60, 4):
            client.post(path, {"metadata": {"name": f"c{number}"}})

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in [*writers]:
        thread.start()
    for thread in [*writers, *threads]:
        thread.join(30)
    assert len(seen) == 8
    assert all(each == seen[0] for each in seen)
    assert [int(each) for each in seen[0]] == sorted({int(each) for each in seen[0]})


def test_tables_can_be_watched(client: Client, path: str) -> None:
    client.post(path, {"metadata": {"name": "a"}})
    client.post(path, {"metadata": {"name": "b"}})
    connection = client.connect()
    headers = {"Authorization": f"Bearer {client.token}", "Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    connection.request("GET", f"{path}?watch=true", headers=headers)
    import json

    response = connection.getresponse()
    first, second = (json.loads(response.readline()) for _ in range(2))
    connection.close()
    assert first["object"]["kind"] == "Table"
    assert first["object"]["columnDefinitions"]
    assert first["object"]["rows"][0]["cells"][0] == "a"
    assert not second["object"].get("columnDefinitions")


def socket_to(client: Client, path: str, **options: object) -> websocket.WebSocket:
    url = f"wss://{client.address.netloc}{path}"
    trust = {"ca_certs": str(client.server.ca_file)}
    header = [f"Authorization: Bearer {client.token}"]
    return websocket.create_connection(url, sslopt=trust, header=header, timeout=30, **options)


def test_a_watch_over_websocket_has_a_message_for_each_event(client: Client, path: str) -> None:
    for name in ("a", "b"):
        client.post(path, {"metadata": {"name": name}})
    watch = socket_to(client, f"{path}?watch=true")
    try:
        client.delete(f"{path}/a")
        messages = [watch.recv_data() for _ in range(3)]
        assert {opcode for opcode, _ in messages} == {websocket.ABNF.OPCODE_TEXT}
        events = [json.loads(data) for _, data in messages]
        assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("DELETED", "a"),
        ]
        watch.ping("there?")
        client.patch(f"{path}/b", {"data": {"x": "y"}})
        opcode, data = watch.recv_data(control_frame=True)
        assert (opcode, data) == (websocket.ABNF.OPCODE_PONG, b"there?")
        assert json.loads(watch.recv())["type"] == "MODIFIED"
    finally:
        watch.close()


def test_a_watch_over_websocket_ends_when_its_time_is_up(client: Client, path: str) -> None:
    watch = socket_to(client, f"{path}?watch=true&timeoutSeconds=1")
    opcode, _ = watch.recv_data(control_frame=True)
    assert opcode == websocket.ABNF.OPCODE_CLOSE
    watch.close()


def test_a_watch_over_websocket_is_refused_as_upstream_refuses_it(client: Client, path: str) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        socket_to(client, f"{path}?watch=true", suppress_origin=True)
    assert refused.value.status_code == 403
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        socket_to(client, f"{path}?watch=true&resourceVersion=nonsense")
    assert refused.value.status_code == 400
    assert json.loads(refused.value.resp_body)["reason"] == "BadRequest"
