"""Every file in `stories/` is one object's life: requests one after the other, and who owns what after each.

A step is `create`, `update`, `patch` (a JSON merge patch) or `apply`, by a manager, at a minute of the hour. It ends in
an `error`, or in what is said of the object: `object` whole, `owns` by manager (all managers), `times` by manager.
Custom resources bring their `schema`; `schema: null` means there is none.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from pybernetes.api import managedfields, scheme
from pybernetes.api.errors import APIError
from pybernetes.api.managedfields import entries, resetfields, structural
from pybernetes.api.managedfields.paths import show

STORIES = sorted((Path(__file__).parent / "stories").glob("*.yaml"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    story = yaml.safe_load(path.read_text())
    obj: Any = None
    for step in story["steps"]:
        request = Request(story, step)
        before = deepcopy((obj, step))
        if "error" in step:
            with pytest.raises(APIError) as caught:
                request.run(obj)
            status = caught.value.status()
            assert {key: status.get(key, "") for key in step["error"] if key != "causes"} == {
                key: value for key, value in step["error"].items() if key != "causes"
            }
            if "causes" in step["error"]:
                assert caught.value.causes == step["error"]["causes"]
            assert (obj, step) == before, "the inputs were changed"
            continue
        result = request.run(obj)
        assert (obj, step) == before, "the inputs were changed"
        obj = result
        if "object" in step:
            assert visible(obj) == step["object"]
        if "owns" in step:
            assert owners(obj) == {name: sorted(fields) for name, fields in step["owns"].items()}
        if "times" in step:
            assert times(obj) == step["times"]


class Request:
    """One step, as the server would run it."""

    def __init__(self, story: dict[str, Any], step: dict[str, Any]) -> None:
        self.step = step
        self.kind, self.api_version = story["kind"], story["apiVersion"]
        self.verb = next(verb for verb in ("create", "update", "patch", "apply") if verb in step)
        self.subresource = step.get("subresource", "")
        if "schema" in story:
            self.cls = None
            self.node = structural.node_of(story["schema"])
            self.reset = resetfields.for_custom(True, self.subresource)
        else:
            self.cls = scheme.type_for(self.api_version, self.kind)
            assert self.cls is not None
            self.node = managedfields.node_of(self.cls)
            resource = scheme.resource_for_kind(*scheme.split_api_version(self.api_version), self.kind)
            assert resource is not None
            self.reset = resetfields.for_request(resource, self.subresource)

    def run(self, live: Any) -> Any:
        body = self.step[self.verb] or {}
        named = {"apiVersion": self.api_version, "kind": self.kind, **body}
        common = {
            "manager": self.step["by"],
            "api_version": self.api_version,
            "now": f"2026-01-01T00:{self.step.get('at', 0):02}:00Z",
            "subresource": self.subresource,
            "reset_fields": self.reset,
            "node": self.node,
        }
        if self.verb == "apply":
            return managedfields.apply(live, named, kind=self.kind, force=self.step.get("force", False), **common)
        new = merge_patch(live, body) if self.verb == "patch" else named
        recorded = self.record(new, live, common)
        metadata = {key: value for key, value in new.get("metadata", {}).items() if key != "managedFields"}
        if recorded:
            metadata["managedFields"] = recorded
        metadata.setdefault("uid", "1")
        return {**new, "metadata": metadata}

    def record(self, new: Any, live: Any, common: dict[str, Any]) -> list[Any]:
        plain = managedfields.record_update(new, live, **common)
        if self.cls is not None:
            # Structs take other ways to the same entries.
            typed = managedfields.record_update(self.struct(new), live and self.struct(live), **common)
            assert msgspec.json.decode(msgspec.json.encode(typed)) == plain
        return plain

    def struct(self, obj: Any) -> Any:
        return msgspec.json.decode(msgspec.json.encode(obj), type=self.cls)


def merge_patch(live: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(live) if isinstance(live, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def visible(obj: Any) -> Any:
    """The object without what every object has, and without nulls and empty structs that only fill it up."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "uid", "name")}
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    return prune({"metadata": metadata, **rest})


def prune(value: Any) -> Any:
    if isinstance(value, dict):
        pruned = {key: prune(item) for key, item in value.items()}
        return {key: item for key, item in pruned.items() if item is not None and item != {}}
    return [prune(item) for item in value] if isinstance(value, list) else value


def owners(obj: Any) -> dict[str, list[str]]:
    found = entries.decode(obj["metadata"].get("managedFields"))
    return {name(who): sorted(map(show, owned.fields)) for who, owned in found.items()}


def times(obj: Any) -> dict[str, int | None]:
    found = entries.decode(obj["metadata"].get("managedFields"))
    return {name(who): owned.time and int(owned.time[14:16]) for who, owned in found.items()}


def name(who: entries.Identity) -> str:
    return " ".join(filter(None, (who.manager, who.operation, who.subresource)))
