"""A seeded sequence of odd objects of every kind: good ones with one or two values replaced by odd ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from fuzz.journey import STORED, bases
from poison import values

from pybernetes.api.resources import Resource
from pybernetes.api.schema import STRUCT, FieldInfo, fields

NAMESPACE = "poison"
BY_DESIGN = {
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
    "APIService",
    "FlowSchema",
    "ServiceCIDR",
    "CustomResourceDefinition",
}
"""Kinds whose objects may stop others as upstream documents it: refuse requests, or take a group or a range away."""


@dataclass(frozen=True)
class Odd:
    """An object to create, and the status to give it afterwards."""

    resource: Resource
    body: dict[str, Any]
    status: dict[str, Any] | None

    @property
    def collection(self) -> str:
        """The path to POST to."""
        return collection(self.resource, NAMESPACE)


def collection(resource: Resource, namespace: str = "") -> str:
    """The path of a resource; of all namespaces if none is given."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    inside = f"/namespaces/{namespace}" if resource.namespaced and namespace else ""
    return f"{root}{inside}/{resource.plural}"


def sequence(seed: int) -> Iterator[Odd]:
    """Odd objects without end; the same ones for the same seed."""
    draw = random.Random(seed)
    kinds = [each for each in STORED if each.kind not in BY_DESIGN and "create" in each.verbs]
    number = 0
    while True:
        draw.shuffle(kinds)
        for resource in kinds:
            number += 1
            yield _odd(resource, f"odd-{seed}-{number}", draw)


def _odd(resource: Resource, name: str, draw: random.Random) -> Odd:
    body = deepcopy(bases().get((resource.api_version, resource.kind), {}))
    body |= {"apiVersion": resource.api_version, "kind": resource.kind}
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        _spoil(FieldInfo("", "", STRUCT, struct=resource.type), body, draw)
    metadata = body["metadata"] if isinstance(body.get("metadata"), dict) else {}
    body["metadata"] = {**metadata, "name": name}
    body["metadata"].pop("namespace", None)
    body["metadata"].pop("generateName", None)
    if draw.random() < 0.3:
        body["metadata"]["annotations"] = {draw.choice(values.ANNOTATIONS): draw.choice(values.TEXTS) for _ in range(4)}
    if draw.random() < 0.1:
        body["metadata"]["ownerReferences"] = [
            {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": "a", "controller": True}
        ]
    info = next((each for each in fields(resource.type) if each.wire == "status"), None)
    has_status = any(each.name == "status" for each in resource.subresources)
    return Odd(resource, body, values.odd(info, draw, 4) if info and has_status else None)


def _spoil(info: FieldInfo, place: Any, draw: random.Random) -> None:
    """Replace one value somewhere below, or add a field."""
    while True:
        below = _below(info, place)
        if not below:
            return
        key, inner = draw.choice(below)
        held = place[key] if isinstance(place, list) else place.get(key)
        if not isinstance(held, (dict, list)) or not held or draw.random() < 0.15:
            place[key] = values.odd(inner, draw)
            return
        info, place = inner, held


def _below(info: FieldInfo, place: Any) -> list[tuple[Any, FieldInfo]]:
    if isinstance(place, dict) and info.struct is not None:
        known = [(each.wire, each) for each in fields(info.struct) if each.wire not in ("kind", "apiVersion", "name")]
        return [pair for pair in known if pair[0] in place] * 4 + known
    if isinstance(place, dict) and info.items is not None:
        return [(key, info.items) for key in place]
    if isinstance(place, list) and info.items is not None:
        return [(index, info.items) for index in range(len(place))]
    return []
