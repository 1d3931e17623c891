"""Cases: what the server makes of an object, as data.

A file describes one kind: a `base` object and a list of `cases`, each of which edits it and says what comes out.

    name     what it is about
    do       create (the default), update, or the subresource that is updated, such as status
    before   edits that make the stored object of an update from the base
    edit     edits that make the object that is sent from the base, or from the stored object
    fixed    the object that is sent, instead of an edit
    unordered  whether errors come in any order, because upstream walks a map

and, written by `tools/record_cases.py` from the answers of an upstream server,

    errors   field errors, if it is refused as invalid
    refused  code and message, if it is refused otherwise
    result   the object that comes out
    warnings those that the client gets

An edit is a mapping from a path (`spec/containers/0/image`, with `~1` for a slash in a key) to a value, where the text
`<remove>` takes the field away and `x*63` is an x repeated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pybernetes.api import scheme
from pybernetes.api.errors import APIError
from pybernetes.api.gocompat import goencoder
from pybernetes.api.meta.validation import validate_common_create, validate_common_update
from pybernetes.apiserver.bodies import decode_json
from pybernetes.apiserver.registry.registry import strategy_for
from pybernetes.apiserver.registry.strategy import Context
from pybernetes.apiserver.user import User

UID = "8e2f1b6a-5f0e-4a0b-9b1e-3c1d7a2b4c5d"
NOW = "2024-01-02T03:04:05Z"
NAMESPACE = "cases"
USER = User("admin", "1", ("system:masters", "system:authenticated"))
VOLATILE = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink")
RECORDED = ("errors", "refused", "result", "warnings")

_REPEATED = re.compile(r"(.)\*(\d+)", re.ASCII | re.DOTALL)


class Case(NamedTuple):
    """One case of one kind."""

    kind: str
    api_version: str
    base: dict[str, Any]
    spec: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind}: {self.spec['name']}"

    @property
    def expected(self) -> dict[str, Any]:
        """What was recorded."""
        return {name: self.spec[name] for name in RECORDED if name in self.spec}

    @property
    def stored(self) -> dict[str, Any] | None:
        """The object that is there before an update."""
        if self.spec.get("do", "create") == "create":
            return None
        return edited(self.base, self.spec.get("before", {}))


def load(folder: Path) -> Iterator[Case]:
    """All cases of all files in a folder."""
    for path in sorted(folder.rglob("*.yaml")):
        document = yaml.safe_load(path.read_text())
        for spec in document["cases"]:
            yield Case(document["kind"], document["apiVersion"], document["base"], spec)


def sent(case: Case, present: dict[str, Any]) -> dict[str, Any]:
    """The object of the request."""
    if "fixed" in case.spec:
        return deepcopy(case.spec["fixed"])
    return edited(present, case.spec.get("edit", {}))


def edited(obj: dict[str, Any], edit: dict[str, Any]) -> dict[str, Any]:
    """A changed copy."""
    obj = deepcopy(obj)
    for path, value in edit.items():
        *parents, last = (part.replace("~1", "/") for part in path.split("/"))
        place: Any = obj
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value == "<remove>":
            place.pop(int(last) if isinstance(place, list) else last, None)
        elif isinstance(place, list):
            place[int(last) :] = [_expand(value), *place[int(last) + 1 :]]
        else:
            place[last] = _expand(value)
    return obj


def _expand(value: Any) -> Any:
    if isinstance(value, str) and (match := _REPEATED.fullmatch(value)):
        return match[1] * int(match[2])
    return deepcopy(value)


def outcome(case: Case) -> dict[str, Any]:
    """What our server makes of a case, in the form that is recorded."""
    try:
        return ordered(case, _outcome(case))
    except APIError as error:
        return {"refused": f"{error.code} {error.message}"}


def ordered(case: Case, outcome: dict[str, Any]) -> dict[str, Any]:
    """The outcome with its errors in a fixed order, if they come in any."""
    if case.spec.get("unordered") and "errors" in outcome:
        return {"errors": sorted(outcome["errors"])}
    return outcome


def _outcome(case: Case) -> dict[str, Any]:
    group, _, version = case.api_version.rpartition("/")
    resource = scheme.resource_for_kind(group, version, case.kind)
    assert resource is not None
    storage = scheme.storage_resource(resource)
    strategy = strategy_for(storage)
    context = Context(None, USER, NOW, NAMESPACE if resource.namespaced else "", group=group)  # type: ignore[arg-type]

    def received(body: dict[str, Any]) -> Any:
        obj = decode_json(resource, json.dumps(body).encode(), "Ignore", [])
        obj = scheme.convert(obj, resource, storage) if storage is not resource else obj
        strategy.default(obj)
        obj.metadata.namespace = NAMESPACE if resource.namespaced else None
        return obj

    def answered(obj: Any) -> dict[str, Any]:
        obj = scheme.convert(obj, storage, resource) if storage is not resource else obj
        return {"kind": case.kind, "apiVersion": case.api_version, **json.loads(goencoder.encode(obj))}

    def create(body: dict[str, Any]) -> tuple[Any, list[Any]]:
        obj = received(body)
        obj.metadata.uid, obj.metadata.creation_timestamp = UID, NOW
        strategy.prepare_for_create(obj, context)
        return obj, strategy.validate(obj, context) or validate_common_create(obj.metadata, resource.namespaced)

    if case.stored is None:
        obj, errors = create(sent(case, case.base))
        warnings = strategy.warnings_on_create(obj, context) if not errors else []
    else:
        old, errors = create(case.stored)
        assert not errors, f"the stored object is invalid: {errors}"
        obj = received(sent(case, answered(old)))
        meta, before = obj.metadata, old.metadata
        meta.uid, meta.creation_timestamp, meta.generation = before.uid, before.creation_timestamp, before.generation
        subresource = "" if case.spec["do"] == "update" else case.spec["do"]
        prepare, validate = strategy.rules(subresource)
        prepare(obj, old, context)
        errors = validate_common_update(meta, before, resource.namespaced) + validate(obj, old, context)
        warnings = [] if subresource or errors else strategy.warnings_on_update(obj, old, context)
    if errors:
        return {"errors": normalized([error.message() for error in errors], UID)}
    result: dict[str, Any] = {"result": normalized(answered(obj), UID)}
    return result | ({"warnings": warnings} if warnings else {})


def normalized(value: Any, uid: str) -> Any:
    """Without what differs from time to time, and without nulls, which say no more than nothing."""
    value = _without_nulls(json.loads(json.dumps(value).replace(uid, "<uid>")))
    if isinstance(value, dict):
        for name in VOLATILE:
            value.get("metadata", {}).pop(name, None)
        value.get("metadata", {}).pop("namespace", None)
        if isinstance(value.get("status"), dict):
            value["status"].pop("lastPhaseTransitionTime", None)  # the server's own time
        if value.get("kind") == "CustomResourceDefinition":  # controllers in the server write these at once
            value["metadata"].pop("finalizers", None)
            for name in ("conditions", "acceptedNames", "observedGeneration"):
                value["status"].pop(name, None)
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
