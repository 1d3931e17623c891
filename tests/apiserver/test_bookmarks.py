"""A watch with bookmarks gets one every minute, here every few milliseconds, until the time of the watch is up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from apiserver.in_process import call, serving, watching

from pybernetes.apiserver.verbs import watch

PATH = "/api/v1/namespaces/default/configmaps"
WATCH = f"{PATH}?watch=true&allowWatchBookmarks=true"
CHANGES = 10
QUIET = 20  # bookmarks in a row while nothing changes


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_EVERY", 0.0104)  # no whole number of milliseconds, which loops round to


def version(event: dict[str, Any]) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


async def test_bookmarks_come_again_and_again_also_between_changes(tmp_path: Path) -> None:
    events = []
    async with serving(tmp_path) as server, watching(server.port, WATCH) as coming:
        for number in range(CHANGES):
            status, body = await call(server.port, "POST", PATH, {"metadata": {"name": f"m{number}"}})
            assert status == 201
            made = int(json.loads(body)["metadata"]["resourceVersion"])
            async for event in coming:
                events.append(event)
                if event["type"] == "BOOKMARK" and version(event) >= made:
                    break
        for _ in range(QUIET):
            events.append(await anext(coming))
    kinds = [event["type"] for event in events]
    assert kinds.count("ADDED") == CHANGES
    assert kinds[-QUIET:] == ["BOOKMARK"] * QUIET
    assert "ADDED" in kinds[kinds.index("BOOKMARK") :], "in between"
    versions = [version(event) for event in events]
    assert versions == sorted(versions)
    for event in events:
        if event["type"] == "BOOKMARK":
            assert set(event["object"]) == {"kind", "apiVersion", "metadata"}


async def test_a_watch_with_bookmarks_ends_when_its_time_is_up(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, watching(server.port, f"{WATCH}&timeoutSeconds=1") as coming:
        assert {event["type"] async for event in coming} == {"BOOKMARK"}
