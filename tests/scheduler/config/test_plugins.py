"""Which plugins run where, after a profile has had its say."""

from __future__ import annotations

import msgspec
import pytest

from pybernetes.scheduler.config.plugins import POINTS, Enabled, PluginsError, expand, merge
from pybernetes.scheduler.config.v1.types import Plugin, Plugins, PluginSet

# plugin -> the points it has
THERE = {
    "Sort": {"queueSort"},
    "Bind": {"bind"},
    "A": {"filter", "score"},
    "B": {"filter", "score"},
    "C": {"filter"},
    "Mine": {"filter", "score"},
}
DEFAULTS = Plugins(
    multi_point=PluginSet(
        enabled=[
            Plugin(name="Sort"),
            Plugin(name="A", weight=2),
            Plugin(name="B"),
            Plugin(name="C"),
            Plugin(name="Bind"),
        ]
    )
)


def run(custom: str) -> dict[str, list[Enabled]]:
    from pybernetes.api.yaml import yaml_to_json

    plugins = msgspec.json.decode(yaml_to_json(custom.encode())[0], type=Plugins)
    return expand(
        merge(DEFAULTS, plugins), THERE, lambda name, point: point in THERE.get(name, ()), "default-scheduler"
    )


def names(found: list[Enabled]) -> str:
    return " ".join(f"{each.name}:{each.weight}" for each in found)


@pytest.mark.parametrize(
    ("custom", "filters", "scores"),
    [
        ("{}", "A:2 B:1 C:1", "A:2 B:1"),
        ("score: {disabled: [{name: '*'}]}", "A:2 B:1 C:1", ""),
        ("score: {disabled: [{name: A}]}", "A:2 B:1 C:1", "B:1"),
        ("multiPoint: {disabled: [{name: A}]}", "B:1 C:1", "B:1"),
        # Enabled again: the place stays, the weight changes.
        ("multiPoint: {enabled: [{name: B, weight: 7}]}", "A:2 B:7 C:1", "A:2 B:7"),
        # Named at the point: comes first there, and its weight wins.
        ("score: {enabled: [{name: B, weight: 7}]}", "A:2 B:7 C:1", "B:7 A:2"),
        # Disabled and enabled: goes to the end.
        ("multiPoint: {disabled: [{name: A}], enabled: [{name: A, weight: 5}]}", "B:1 C:1 A:5", "B:1 A:5"),
        ("multiPoint: {enabled: [{name: Mine, weight: 4}]}", "A:2 B:1 C:1 Mine:4", "A:2 B:1 Mine:4"),
        # Only at the point: after what multiPoint brings.
        ("filter: {enabled: [{name: Mine}]}", "A:2 B:1 C:1 Mine:1", "A:2 B:1"),
        ("filter: {enabled: [{name: Mine}, {name: C}]}", "C:1 A:2 B:1 Mine:1", "A:2 B:1"),
        ("filter: {disabled: [{name: '*'}], enabled: [{name: Mine}]}", "Mine:1", "A:2 B:1"),
        ("score: {enabled: [{name: A, weight: 0}]}", "A:1 B:1 C:1", "A:1 B:1"),
    ],
)
def test_what_runs(custom: str, filters: str, scores: str) -> None:
    found = run(custom)
    assert set(found) == set(POINTS)
    assert (names(found["filter"]), names(found["score"])) == (filters, scores)


@pytest.mark.parametrize(
    ("custom", "message"),
    [
        ("score: {enabled: [{name: Nope}]}", 'ScorePlugin "Nope" does not exist'),
        ("multiPoint: {enabled: [{name: Nope}]}", 'PreFilterPlugin "Nope" does not exist'),
        ("score: {enabled: [{name: C}]}", 'plugin "C" does not extend ScorePlugin plugin'),
        (
            "score: {enabled: [{name: Mine}, {name: Mine}]}",
            'plugin "Mine" already registered as "ScorePlugin"',
        ),
        (
            "multiPoint: {enabled: [{name: Mine}, {name: Mine}]}",
            'plugin "Mine" already registered as "FilterPlugin"',
        ),
        (
            "multiPoint: {disabled: [{name: Bind}]}",
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        (
            "queueSort: {disabled: [{name: '*'}]}",
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        ),
    ],
)
def test_what_cannot_run(custom: str, message: str) -> None:
    with pytest.raises(PluginsError) as caught:
        run(custom)
    assert str(caught.value) == message


def test_weights_that_could_overflow_a_score() -> None:
    # No file can say so: a weight there has 32 bits.
    plugins = merge(DEFAULTS, Plugins(score=PluginSet(enabled=[Plugin(name="A", weight=2**62)])))
    with pytest.raises(PluginsError, match="could overflow"):
        expand(plugins, THERE, lambda name, point: point in THERE[name], "x")
