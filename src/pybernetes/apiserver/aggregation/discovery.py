"""Converts an extension server's discovery to our own documents. Its content is not trusted. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

ACCEPT = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
_KIND = {"group": "", "version": "", "kind": ""}

Entry = dict[str, Any]
"""An APIVersionDiscovery."""


def is_aggregated(content_type: str) -> bool:
    """Whether an answer is everything in one document."""
    parts = {part.strip() for part in content_type.split(";")}
    wanted = {"g=apidiscovery.k8s.io", "as=APIGroupDiscoveryList"}
    return wanted <= parts and bool(parts & {"v=v2", "v=v2beta1"})


def from_aggregated(body: bytes) -> dict[tuple[str, str], Entry]:
    """The versions of all groups. Raises ValueError."""
    found: dict[tuple[str, str], Entry] = {}
    for group in _list(_object(msgspec.json.decode(body)).get("items")):
        name = _object(_object(group).get("metadata")).get("name") or ""
        for version in _list(_object(group).get("versions")):
            entry = _object(version)
            resources = [_with_kinds(_object(each)) for each in _list(entry.get("resources"))]
            known = str(entry.get("version") or "")
            found[str(name), known] = {"version": known, "resources": resources}
    return found


def _with_kinds(resource: Entry) -> Entry:
    """Clients of 1.26 fall over where there is no kind."""
    made = {**resource, "responseKind": resource.get("responseKind") or _KIND}
    if resource.get("subresources"):
        subresources = [_object(each) for each in _list(resource["subresources"])]
        made["subresources"] = [{**each, "responseKind": each.get("responseKind") or _KIND} for each in subresources]
    return made


def from_resource_list(body: bytes, version: str) -> Entry:
    """An APIResourceList, as servers had it before. Raises ValueError."""
    listed = [_object(each) for each in _list(_object(msgspec.json.decode(body)).get("resources"))]
    resources: dict[str, Entry] = {}
    for each in listed:
        name = str(each.get("name") or "")
        if "/" not in name:
            resources[name] = {
                "resource": name,
                "responseKind": _kind(each),
                "scope": _scope(each),
                "singularResource": str(each.get("singularName") or ""),
                "verbs": _list(each.get("verbs")),
                **{key: _list(each[key]) for key in ("shortNames", "categories") if each.get(key)},
            }
    for each in listed:
        name, slash, part = str(each.get("name") or "").partition("/")
        if not slash:
            continue
        parent = resources.get(name)
        if parent is None:
            empty: Entry = {"resource": name, "responseKind": _KIND, "scope": _scope(each)}
            parent = resources[name] = {**empty, "singularResource": "", "verbs": []}
        if parent["scope"] != _scope(each):
            raise ValueError(f"{name} is {parent['scope']}, {name}/{part} is {_scope(each)}")
        made = {"subresource": part, "responseKind": _kind(each) if each.get("kind") else _KIND}
        parent.setdefault("subresources", []).append({**made, "verbs": _list(each.get("verbs"))})
    return {"version": version, "resources": list(resources.values())}


def _scope(entry: Entry) -> str:
    return "Namespaced" if entry.get("namespaced") else "Cluster"


def _kind(entry: Entry) -> Entry:
    return {name: str(entry.get(name) or "") for name in ("group", "version", "kind")}


def _object(value: Any) -> Entry:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError("not a list")
    return value
