"""What is older than the last compaction is gone, and clients get upstream's error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from robustness.harness import CONFIGMAPS, Server, running
from store.tools import Etcd

from tools import wait_until

# Quoted from upstream's API, clients may match on them.
CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@pytest.fixture(params=["sqlite", "etcd"])
def server(request: pytest.FixtureRequest, tmp_path: Path, pki: Path) -> Iterator[Server]:
    store = f"sqlite:///{tmp_path}/store.db"
    if request.param == "etcd":
        own_etcd: Etcd = request.getfixturevalue("own_etcd")
        store = own_etcd.url
    with running(Server(tmp_path / "server", pki, store, "--etcd-compaction-interval=1s")) as server:
        yield server


def test_the_past_before_a_compaction_is_expired(server: Server) -> None:
    with server.session() as session:
        for number in range(6):
            body = {"metadata": {"name": f"c-{number}", "labels": {"even": str(number % 2 == 0).lower()}}}
            assert session("POST", CONFIGMAPS, body).status == 201
        first = session("GET", f"{CONFIGMAPS}?limit=2").json
        token, revision = first["metadata"]["continue"], first["metadata"]["resourceVersion"]
        assert session("DELETE", f"{CONFIGMAPS}/c-3").status == 200
        assert session("POST", CONFIGMAPS, {"metadata": {"name": "c-9"}}).status == 201

        # As long as the past is there, the pages are one snapshot.
        second = session("GET", f"{CONFIGMAPS}?limit=2&continue={token}").json
        assert names(second) == ["c-2", "c-3"]
        assert second["metadata"]["resourceVersion"] == revision
        exact = f"{CONFIGMAPS}?resourceVersion={revision}&resourceVersionMatch=Exact"
        assert names(session("GET", exact).json) == [f"c-{number}" for number in range(6)]

        # Compaction leaves an interval's worth of the past, so the store must go on for a while.
        def expired() -> Any:
            session("PATCH", f"{CONFIGMAPS}/c-9", {"data": {"now": str(time.time())}}, Content_Type=MERGE)
            answer = session("GET", f"{CONFIGMAPS}?limit=2&continue={token}")
            return answer if answer.status == 410 else None

        answer = wait_until(expired, "the token expires", every=0.2)
        status = answer.json
        assert (status["kind"], status["reason"], status["code"]) == ("Status", "Expired", 410)
        assert status["message"] == CONTINUE_EXPIRED

        # Its token goes on behind the last object of the first page, with what is there now.
        rest = session("GET", f"{CONFIGMAPS}?limit=2&continue={status['metadata']['continue']}").json
        assert names(rest) == ["c-2", "c-4"]
        assert int(rest["metadata"]["resourceVersion"]) > int(revision)
        last = session("GET", f"{CONFIGMAPS}?continue={rest['metadata']['continue']}").json
        assert names(last) == ["c-5", "c-9"]

        answer = session("GET", exact)
        assert (answer.status, answer.json["reason"]) == (410, "Expired")
        assert answer.json["message"] == "The resourceVersion for the provided list is too old."

        # A server remembers recent changes whatever the store forgets; one that starts anew does not.
        with server.session() as watching:
            event = next(watching.events(f"{CONFIGMAPS}?watch=true&resourceVersion={revision}"))
            assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", "c-3")
    server.kill()
    server.start()
    with server.session() as watching:
        events = list(watching.events(f"{CONFIGMAPS}?watch=true&resourceVersion={revision}&timeoutSeconds=5"))
        assert [each["type"] for each in events] == ["ERROR"]
        status = events[0]["object"]
        assert (status["kind"], status["reason"], status["code"]) == ("Status", "Expired", 410)
        assert status["message"].startswith(f"too old resource version: {revision} (")
    now = server.request("GET", CONFIGMAPS).json
    assert names(now) == ["c-0", "c-1", "c-2", "c-4", "c-5", "c-9"]


MERGE = "application/merge-patch+json"


def names(listed: Any) -> list[str]:
    return [each["metadata"]["name"] for each in listed["items"]]


def test_a_watch_that_is_open_lives_through_compactions(server: Server) -> None:
    with server.session() as session, server.session() as watching:
        events = watching.events(f"{CONFIGMAPS}?watch=true")
        made = session("POST", CONFIGMAPS, {"metadata": {"name": "lasting"}}).json
        assert next(events)["object"] == made
        # Another kind changes and is compacted meanwhile; nothing of ours does.
        path = "/api/v1/namespaces/default/secrets"
        start = session("POST", path, {"metadata": {"name": "busy"}}).json["metadata"]["resourceVersion"]

        def compacted() -> bool:
            session("PATCH", f"{path}/busy", {"stringData": {"now": str(time.time())}}, Content_Type=MERGE)
            return session("GET", f"{path}?resourceVersion={start}&resourceVersionMatch=Exact").status == 410

        wait_until(compacted, "a compaction", every=0.2)
        changed = session("PATCH", f"{CONFIGMAPS}/lasting", {"data": {"a": "b"}}, Content_Type=MERGE).json
        event = next(events)
        assert (event["type"], event["object"]) == ("MODIFIED", changed)
