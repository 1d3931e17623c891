"""Whatever a patch holds, the outcome is an object or a refusal, and what was patched is not changed on the way."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from fuzz import wild
from fuzz.budget import attempt, effort
from fuzz.journey import STORED, journey, refused
from hypothesis import strategies as st

from pybernetes.api import managedfields, scheme
from pybernetes.api.errors import APIError
from pybernetes.api.managedfields import resetfields, structural
from pybernetes.api.patch import json_patch, merge_patch
from pybernetes.api.patch.strategic_merge import strategic_merge
from pybernetes.api.resources import Resource
from pybernetes.apiserver.bodies import decode_json
from pybernetes.apiserver.pipeline.options import WriteOptions
from pybernetes.apiserver.verbs.patch import decode_patched, patcher

NOW = "2024-01-02T03:04:05Z"
KINDS = ("Pod", "Deployment", "Service", "ConfigMap", "ServiceAccount", "Ingress", "CustomResourceDefinition", "Node")
PATCHED = [each for each in STORED if each.kind in KINDS and each.version == "v1"]
kinds = pytest.mark.parametrize("resource", PATCHED, ids=lambda each: f"{each.api_version}/{each.kind}")

DIRECTIVES = st.sampled_from(
    [
        {"$patch": "replace"},
        {"$patch": "delete"},
        {"$patch": "merge"},
        {"$patch": "x"},
        {"$patch": None},
        {"$patch": 1},
        {"$retainKeys": ["name"]},
        {"$retainKeys": "x"},
        {"$retainKeys": [1, None]},
        {"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}]},
        {"$setElementOrder/containers": [1]},
        {"$setElementOrder/finalizers": ["a", "b"]},
        {"$setElementOrder/ports": [{"port": 1}, {}]},
        {"$setElementOrder/": []},
        {"$deleteFromPrimitiveList/finalizers": ["a", None, {}]},
        {"$deleteFromPrimitiveList/x": []},
        {"$deleteFromPrimitiveList": []},
    ]
)


def outcome(step: Any) -> Any:
    """What a step gives; a refusal is checked and becomes None."""
    try:
        return step()
    except APIError as error:
        refused(error)
        return None


def live(resource: Resource) -> dict[str, Any]:
    """A good object as it is read from the server."""
    way = journey(resource)
    obj = way.create(json.dumps(way.base()).encode())
    obj.kind, obj.api_version = resource.kind, resource.api_version
    return dict(msgspec.json.decode(scheme.encoder.encode(obj)))


def try_patch(resource: Resource, document: dict[str, Any], kind: str, body: bytes) -> None:
    """What the server does with the body of a patch."""
    options = WriteOptions()

    def run() -> None:
        patch = patcher(f"application/{kind}+json", body, resource.type)
        decode_patched(patch.apply(deepcopy(document)), patch, resource.type, resource.api_version, options, [])

    outcome(run)


@st.composite
def with_directives(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    """A patch with directives strewn into its maps."""
    patch = draw(inner)

    def strew(value: Any) -> Any:
        if isinstance(value, dict):
            value = {key: strew(each) for key, each in value.items()}
            if draw(st.integers(0, 3)) == 3:
                value |= draw(DIRECTIVES)
        elif isinstance(value, list):
            value = [strew(each) for each in value]
        return value

    return strew(patch)


@kinds
@effort
def test_strategic_merge(resource: Resource, effort: int) -> None:
    document = live(resource)
    before = deepcopy(document)
    patches = st.one_of(wild.mutated(journey(resource).base(), resource.type), wild.documents(resource.type))

    def check(patch: dict[str, Any]) -> None:
        outcome(lambda: strategic_merge(document, wild.received(patch), resource.type))
        assert document == before
        try_patch(resource, document, "strategic-merge-patch", wild.encode(patch))

    attempt(check, with_directives(patches), examples=40, effort=effort)


@kinds
@effort
def test_patches_that_are_no_patches(resource: Resource, effort: int) -> None:
    document = live(resource)
    media = st.sampled_from(("json-patch", "merge-patch", "strategic-merge-patch"))

    def check(kind: str, body: bytes) -> None:
        try_patch(resource, document, kind, body)

    attempt(check, media, wild.wild_bytes, examples=40, effort=effort)


@effort
def test_merge_patch(effort: int) -> None:
    document = live(PATCHED[0])

    def check(patch: Any) -> None:
        changes = outcome(lambda: merge_patch.check(patch))
        if changes is not None:
            # A list that takes the place of a map keeps its nulls the first time, as upstream's does.
            twice = merge_patch.apply(merge_patch.apply(document, changes), changes)
            assert merge_patch.apply(twice, changes) == twice
            try_patch(PATCHED[0], document, "merge-patch", wild.encode(patch))

    attempt(check, st.one_of(wild.values, wild.documents(PATCHED[0].type)), examples=100, effort=effort)


POINTERS = st.lists(
    st.sampled_from(
        ["metadata", "labels", "spec", "containers", "0", "-1", "-", "1", "99", "+1", "a~1b", "~", "~2", "x"]
    ),
    max_size=5,
).map(lambda parts: "".join(f"/{part}" for part in parts))
OPERATIONS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x", ""]), "path": POINTERS},
            optional={"from": POINTERS, "value": wild.values, "x": wild.values},
        ),
        wild.values,
    ),
    max_size=5,
)


@effort
def test_json_patch(effort: int) -> None:
    document = live(PATCHED[0])

    def check(patch: Any) -> None:
        operations = outcome(lambda: json_patch.check(patch))
        if operations is not None:
            json_patch.unknown_fields(operations)
            outcome(lambda: json_patch.apply(deepcopy(document), operations))
            try_patch(PATCHED[0], document, "json-patch", wild.encode(patch))

    attempt(check, st.one_of(OPERATIONS, wild.values), examples=250, effort=effort)


# -- server-side apply -------------------------------------------------------------------------------------------

OWNED = st.recursive(
    st.sampled_from([{}, None, 1, "x", [], {".": {}}]),
    lambda inner: st.dictionaries(
        st.sampled_from(
            [
                "f:a",
                "f:spec",
                "f:metadata",
                "f:labels",
                'k:{"name":"a"}',
                "k:{",
                "k:1",
                "v:1",
                "v:{",
                "i:0",
                "i:x",
                "x",
                "",
                ".",
            ]
        ),
        inner,
        max_size=3,
    ),
    max_leaves=5,
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "manager": wild.texts,
            "operation": st.sampled_from(["Apply", "Update", "", "x"]),
            "apiVersion": st.sampled_from(["v1", "apps/v1", "gone/v9", "a/b/c", ""]),
            "fieldsType": st.sampled_from(["FieldsV1", "", "x"]),
            "fieldsV1": OWNED,
            "time": st.sampled_from([NOW, "0001-01-01T00:00:00Z"]),
            "subresource": st.sampled_from(["", "status", "x"]),
        },
    ),
    max_size=3,
)


@kinds
@effort
def test_apply(resource: Resource, effort: int) -> None:
    base, present = journey(resource).base(), live(resource)
    node = managedfields.node_of(resource.type)
    configs = st.one_of(wild.mutated(base, resource.type), wild.documents(resource.type))

    def check(config: dict[str, Any], entries: Any, exists: bool, force: bool, subresource: str) -> None:
        before = deepcopy(present)
        if entries:
            before["metadata"]["managedFields"] = entries
        old = outcome(lambda: decode_json(resource, wild.encode(before), "Warn", [])) if exists else None
        config = {"kind": resource.kind, "apiVersion": resource.api_version, **config}
        config["metadata"] = {"name": "a", **(config["metadata"] if isinstance(config.get("metadata"), dict) else {})}
        result = outcome(
            lambda: managedfields.apply(
                old,
                wild.received(config),
                node=node,
                manager="fuzz",
                api_version=resource.api_version,
                kind=resource.kind,
                now=NOW,
                force=force,
                subresource=subresource,
                reset_fields=resetfields.for_request(resource, subresource),
            )
        )
        if result is not None:
            outcome(lambda: decode_json(resource, wild.encode(result), "Warn", []))

    flags = (st.booleans(), st.booleans(), st.sampled_from(["", "status"]))
    attempt(check, configs, st.one_of(st.none(), ENTRIES), *flags, examples=40, effort=effort)


SCHEMAS = st.recursive(
    st.sampled_from([{"type": kind} for kind in ("string", "integer", "boolean", "number", "object", "array", "x")]),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
                "additionalProperties": inner,
                "x-kubernetes-map-type": st.sampled_from(["atomic", "granular"]),
                "x-kubernetes-preserve-unknown-fields": st.booleans(),
                "x-kubernetes-embedded-resource": st.booleans(),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={
                "x-kubernetes-list-type": st.sampled_from(["atomic", "set", "map"]),
                "x-kubernetes-list-map-keys": st.lists(st.sampled_from("abc"), max_size=2),
            },
        ),
    ),
    max_leaves=6,
)
CUSTOM = st.dictionaries(st.sampled_from("abc"), wild.values, max_size=3)


@effort
def test_apply_and_update_of_custom_resources(effort: int) -> None:
    head = {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": "a"}}

    def check(schema: Any, config: dict[str, Any], other: dict[str, Any], force: bool) -> None:
        node = structural.node_of({"type": "object", "properties": {"spec": schema}})
        first, second = ({**head, "spec": wild.received(each)} for each in (config, other))
        how: dict[str, Any] = {"node": node, "api_version": "e.com/v1", "now": NOW}
        made = outcome(lambda: managedfields.apply(None, first, kind="Thing", manager="a", **how))
        if made is not None:
            changed = {**second, "metadata": deepcopy(made["metadata"])}
            changed["metadata"]["managedFields"] = managedfields.record_update(changed, made, manager="b", **how)
            outcome(lambda: managedfields.apply(changed, first, kind="Thing", manager="a", force=force, **how))

    attempt(check, SCHEMAS, CUSTOM, CUSTOM, st.booleans(), examples=150, effort=effort)
