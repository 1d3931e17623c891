"""A plugin of a user's own, installed as a distribution: found by its entry point, told its args, asked about pods."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybernetes.api.configfile import ConfigError
from pybernetes.scheduler.config.load import load
from pybernetes.scheduler.config.spec import build

SOURCE = '''
"""Keeps pods off nodes in maintenance; likes nodes with fewer pods."""

from __future__ import annotations

from pybernetes.api.base import Struct
from pybernetes.scheduler.framework import (
    Action, ClusterEvent, EventWithHint, FilterPlugin, Normalize, Resource, ScorePlugin, Status, UNRESOLVABLE,
)


class MaintenanceArgs(Struct):
    label: str | None = None


class Maintenance(FilterPlugin, ScorePlugin):
    name = "Maintenance"
    Args = MaintenanceArgs
    normalize = Normalize.REVERSED

    def filter(self, state, pod, rows):
        snapshot = self.handle.snapshot
        return snapshot.label(self.args.label or "example.com/maintenance")[rows] != snapshot.value_id("true")

    def refusals(self, state, pod, rows):
        return [(Status(UNRESOLVABLE, "node(s) were in maintenance"), rows)]

    def score(self, state, pod, rows):
        return self.handle.snapshot.pod_count[rows]

    def events_to_register(self):
        return [EventWithHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL))]


class Raises(FilterPlugin):
    name = "Raises"

    def filter(self, state, pod, rows):
        if pod.labels.get("bad"):
            raise RuntimeError("no idea")
        return rows == rows if not isinstance(rows, slice) else self.handle.snapshot.alive[rows] | True


class Renamed(FilterPlugin):
    name = "SomethingElse"

    def filter(self, state, pod, rows):
        raise NotImplementedError


def function():
    pass
'''

ENTRY_POINTS = """[pybernetes.scheduler.plugins]
Maintenance = maintenance_plugin:Maintenance
Raises = maintenance_plugin:Raises
Renamed = maintenance_plugin:Renamed
Missing = maintenance_plugin:Missing
Function = maintenance_plugin:function
"""


@pytest.fixture(autouse=True)
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What `pip install` leaves behind: a module, and metadata with entry points."""
    (tmp_path / "maintenance_plugin.py").write_text(SOURCE)
    metadata = tmp_path / "maintenance_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: maintenance-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    (metadata / "RECORD").write_text("maintenance_plugin.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("maintenance_plugin", None)


async def test_it_filters_scores_and_wakes_pods(live: Any) -> None:
    text = """profiles:
- plugins:
    multiPoint: {enabled: [{name: Maintenance, weight: 50}]}
  pluginConfig:
  - {name: Maintenance, args: {label: broken}}
"""
    async with live(text) as h:
        await h.node("n1", labels={"broken": "true"})
        await h.pod("p")
        message = await h.refused("p")
        assert message.startswith("0/1 nodes are available: 1 node(s) were in maintenance.")
        await h.client.patch(type(await h.client.get(_node(), "n1")), "n1", {"metadata": {"labels": {"broken": None}}})
        assert await h.bound("p") == "n1"
        await h.node("n2")
        await h.pod("q")
        assert await h.bound("q") == "n2"


def _node() -> Any:
    from pybernetes.api.core.v1 import Node

    return Node


async def test_a_plugin_that_raises_fails_that_pod_only_with_an_event(live: Any) -> None:
    async with live("profiles: [{plugins: {filter: {enabled: [{name: Raises}]}}}]\n") as h:
        await h.node("n1")
        await h.pod("bad", labels={"bad": "yes"})
        await h.pod("good")
        assert await h.bound("good") == "n1"
        events = await h.until(lambda: h.events("FailedScheduling"))
        assert "no idea" in events[0].message
        assert events[0].involved_object.name == "bad"


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (
            "{plugins: {score: {enabled: [{name: Raises}]}}}",
            'creating profile for scheduler name default-scheduler: plugin "Raises" does not extend ScorePlugin plugin',
        ),
        ("{plugins: {filter: {enabled: [{name: Unknown}]}}}", 'FilterPlugin "Unknown" does not exist'),
        ("{plugins: {filter: {enabled: [{name: Missing}]}}}", 'plugin "Missing" cannot be imported: AttributeError'),
        ("{plugins: {filter: {enabled: [{name: Function}]}}}", 'plugin "Function" is no class'),
        ("{plugins: {filter: {enabled: [{name: Renamed}]}}}", 'plugin "Renamed" calls itself "SomethingElse"'),
        (
            "{plugins: {filter: {enabled: [{name: Maintenance}]}}, "
            "pluginConfig: [{name: Maintenance, args: {labell: x}}]}",
            'decoding args for plugin Maintenance: strict decoding error: unknown field "labell"',
        ),
        (
            "{plugins: {filter: {enabled: [{name: Maintenance}]}}, "
            "pluginConfig: [{name: Maintenance, args: {label: 5}}]}",
            "decoding args for plugin Maintenance: json: cannot unmarshal number",
        ),
    ],
)
def test_an_invalid_plugin_is_an_error_at_the_start(profile: str, message: str) -> None:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    with pytest.raises(ConfigError) as caught:
        build(load(f"{head}profiles: [{profile}]\n".encode()))
    assert message in str(caught.value)
