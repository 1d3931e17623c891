"""The facts about merge keys are those of the kinds, and strategic patches follow them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from pybernetes.kubectl import strategic

TOOL = Path(__file__).parents[2] / "tools/generate_merge_keys.py"


def test_the_committed_merge_keys_are_what_the_tool_writes() -> None:
    spec = importlib.util.spec_from_file_location("generate_merge_keys", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.TARGET.read_text() == "\n".join(tool.lines()) + "\n"


def deployment(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {**spec, "template": {"spec": {"containers": list(containers)}}}}


def test_a_three_way_patch_keeps_what_others_added_and_removes_what_was_applied_before() -> None:
    cls = strategic.type_of("apps/v1", "Deployment")
    original = deployment({"name": "a", "image": "x", "env": [{"name": "OLD", "value": "1"}]}, paused=True)
    modified = deployment({"name": "a", "image": "y"})
    live = deployment(
        {"name": "a", "image": "x", "env": [{"name": "OLD", "value": "1"}], "imagePullPolicy": "Always"},
        {"name": "injected", "image": "z"},
        paused=True,
        replicas=5,
    )
    patch = strategic.three_way(original, modified, live, cls)
    after = strategic.merge(live, patch, cls)
    assert after["spec"]["replicas"] == 5
    assert "paused" not in after["spec"]
    containers = {each["name"]: each for each in after["spec"]["template"]["spec"]["containers"]}
    assert containers["a"] == {"name": "a", "image": "y", "imagePullPolicy": "Always"}
    assert containers["injected"]["image"] == "z"


@pytest.mark.parametrize(
    ("live", "conflicting"),
    [
        (deployment({"name": "a", "image": "x"}, replicas=5), False),
        (deployment({"name": "a", "image": "x"}, {"name": "injected", "image": "z"}), False),
        (deployment({"name": "a", "image": "theirs"}), True),
        (deployment({"name": "a", "image": "y"}), False),
        (deployment(replicas=1), True),
    ],
    ids=["another field", "another container", "the same field", "the same value", "what was deleted"],
)
def test_a_patch_conflicts_with_other_changes_of_what_it_changes(live: dict[str, Any], conflicting: bool) -> None:
    cls = strategic.type_of("apps/v1", "Deployment")
    assert cls is not None
    original = deployment({"name": "a", "image": "x"})
    patch = strategic.three_way(original, deployment({"name": "a", "image": "y"}), live, cls)
    assert strategic.conflicts(patch, strategic.two_way(original, live, cls), cls) is conflicting


def test_a_custom_resource_gets_a_json_merge_patch() -> None:
    patch = strategic.three_way({"spec": {"a": 1, "b": 2}}, {"spec": {"a": [1]}}, {"spec": {"a": 3, "b": 2}}, None)
    assert patch == {"spec": {"a": [1], "b": None}}
