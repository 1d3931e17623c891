"""Discovery documents: `/api`, `/apis`, each group, each version, and all at once (v2).

Documents are made when first asked for and kept; the aggregated ones carry an ETag, so that a client with a fresh
copy is answered with 304 and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from pybernetes.api import scheme
from pybernetes.api.errors import MethodNotAllowed, PathNotFound
from pybernetes.api.resources import Group, Resource
from pybernetes.api.versions import priority
from pybernetes.net.http import Request, Response

from .negotiation import MEDIA, Format, clauses, output_format
from .pipeline.respond import write
from .registry.registry import Registry

_VERSION = "v2"  # v2beta1 is gone since 1.36
_AGGREGATED = {"g": "apidiscovery.k8s.io", "v": _VERSION, "as": "APIGroupDiscoveryList"}


class Discovery:
    """The documents by path."""

    def __init__(self, registry: Registry, address: Callable[[], str]) -> None:
        """`address` is where others reach this server."""
        self._registry = registry
        self._address = address
        self._documents: dict[str, bytes] = {}
        self._generation = 0

    async def __call__(self, request: Request) -> Response:
        if self._generation != self._registry.generation:
            self._documents.clear()
            self._generation = self._registry.generation
        path = request.info.path.rstrip("/")
        if request.method != "GET" and _routed(path) and path in self.paths:
            raise MethodNotAllowed
        media = _wants_aggregated(request.headers.get("accept", "")) if path in ("/api", "/apis") else ""
        if media:
            return self._aggregated(request, path, media)
        document = self._documents.get(path)
        if document is None:
            found = self._document(path)
            if found is None:
                raise PathNotFound
            document = msgspec.json.encode(found)
            if path != "/api":  # the address in it is the one the client came to
                self._documents[path] = document
        return write(document, output_format(request.headers, request.info.query))

    @property
    def paths(self) -> list[str]:
        """Every path that has a document."""
        named = [group for group in groups(self._registry) if group.name]
        versions = [f"/apis/{group.name}/{version}" for group in named for version in group.versions]
        return ["/api", "/api/v1", "/apis", "/apis/", *(f"/apis/{group.name}" for group in named), *versions]

    def _aggregated(self, request: Request, path: str, media: str) -> Response:
        key = f"{path} {_VERSION}"
        document = self._documents.get(key)
        if document is None:
            document = self._documents[key] = msgspec.json.encode(aggregated(path, self._registry))
        etag = f'"{hashlib.sha512(document).hexdigest().upper()}"'
        headers = [("ETag", etag), ("Vary", "Accept"), ("Cache-Control", "public")]
        if request.headers.get("if-none-match") == etag:
            return Response(b"", 304, "", headers)
        response = write(document, Format(media))
        response.content_type = f"{media};g=apidiscovery.k8s.io;v={_VERSION};as=APIGroupDiscoveryList"
        response.headers = headers
        return response

    def _document(self, path: str) -> dict[str, Any] | None:
        parts = path.strip("/").split("/")
        if parts == ["api"]:
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address()}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
        if parts == ["apis"]:
            named = [_group(group) for group in groups(self._registry) if group.name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": named}
        name, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2] if len(parts) > 2 else "")
        group = next((each for each in groups(self._registry) if each.name == name), None)
        if group is None or len(parts) > 3 or (parts[0] == "apis" and not name):
            return None
        if not version:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
        if version not in group.versions:
            return None
        resources = [entry for each in _resources(self._registry, name, version) for entry in _entries(each)]
        # Upstream's core list has no apiVersion; the others do.
        head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if name else {})}
        return {**head, "groupVersion": f"{name}/{version}" if name else version, "resources": resources}


def _routed(path: str) -> bool:
    """Whether the document is one of a version, or of the core group; the others are answered whatever the method."""
    return path.startswith("/api/") or path == "/api" or path.count("/") == 3


def _wants_aggregated(accept: str) -> str:
    """The media type to write everything at once in, if the client knows that document; where it stands is the same."""
    for media, parameters in clauses(accept):
        if media in MEDIA and all(parameters.get(name) == value for name, value in _AGGREGATED.items()):
            return media
    return ""


def groups(registry: Registry) -> list[Group]:
    """All groups: those that are built in, in their order, then those that are not, by name."""
    versions: dict[str, set[str]] = {}
    for each in registry.custom_resources():
        versions.setdefault(each.group, set()).add(each.version)
    found = []
    for group in _served_groups(registry):
        more = sorted(versions.pop(group.name, set()) - set(group.versions), key=priority)
        found.append(replace(group, versions=(*group.versions, *more)) if more else group)
    found += [Group(name, tuple(sorted(versions[name], key=priority))) for name in sorted(versions)]
    if registry.aggregated:
        from .aggregation.merging import merged

        return merged(found, registry.aggregated.values())
    return found


def _served_groups(registry: Registry) -> list[Group]:
    """Those that are built in, without what is not served."""
    if not registry.disabled:
        return list(scheme.groups())
    served = {(each.group, each.version) for each in registry.resources()}
    found = []
    for group in scheme.groups():
        pairs = zip(group.versions, group.version_priorities, strict=True)
        left = [pair for pair in pairs if (group.name, pair[0]) in served]
        if left:
            versions, priorities = zip(*left, strict=True)
            found.append(replace(group, versions=versions, version_priorities=priorities))
    return found


def _resources(registry: Registry, group: str, version: str) -> list[Resource]:
    return [each for each in registry.resources() if each.group == group and each.version == version]


def _group(group: Group) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group.name}/{version}", "version": version} for version in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _entries(resource: Resource) -> list[dict[str, Any]]:
    """A resource and its subresources as the old documents list them."""
    main = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
        "storageVersionHash": resource.storage_version_hash,
    }
    entries = [{name: value for name, value in main.items() if value not in ([], "") or name == "verbs"}]
    for sub in resource.subresources:
        entry: dict[str, Any] = {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if sub.group is not None or sub.version is not None:
            entry |= {"group": sub.group, "version": sub.version} if sub.group else {"version": sub.version}
        entries.append({**entry, "kind": sub.kind or resource.kind, "verbs": list(sub.verbs)})
    return entries


def aggregated(path: str, registry: Registry) -> dict[str, Any]:
    """Everything below `/api` or `/apis` in one document."""
    items = []
    for group in groups(registry):
        if bool(group.name) == (path == "/api"):
            continue
        versions = [
            registry.aggregated[group.name, each].entry
            if (group.name, each) in registry.aggregated
            else {
                "version": each,
                "resources": [_discovery(resource) for resource in _resources(registry, group.name, each)],
                "freshness": "Current",
            }
            for each in group.versions
        ]
        items.append({"metadata": {"name": group.name} if group.name else {}, "versions": versions})
    api_version = f"apidiscovery.k8s.io/{_VERSION}"
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _discovery(resource: Resource) -> dict[str, Any]:
    # Upstream says the group and version of built-in kinds nowhere, and of all others everywhere.
    custom = resource.package == "unstructured"
    group, version = (resource.group, resource.version) if custom else ("", "")
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": group, "version": version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {
                    "group": sub.group or group,
                    "version": sub.version or version,
                    "kind": sub.kind or resource.kind,
                },
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources
        ]
    return entry
