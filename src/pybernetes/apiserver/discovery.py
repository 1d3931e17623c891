"""What is served, for clients that want to know: `/api`, `/apis`, each group, each version, and all at once (v2).

Documents are made when first asked for and kept; the aggregated ones carry an ETag, so that a client with a fresh
copy is answered with 304 and nothing else.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from pybernetes.api import scheme
from pybernetes.api.errors import PathNotFound
from pybernetes.api.resources import Group, Resource

from .http import Request, Response
from .negotiation import MEDIA, Format, clauses, output_format
from .output import write

_VERSION = "v2"  # v2beta1 is gone since 1.36
_AGGREGATED = {"g": "apidiscovery.k8s.io", "v": _VERSION, "as": "APIGroupDiscoveryList"}


class Discovery:
    """The documents by path."""

    def __init__(self) -> None:
        self._documents: dict[str, bytes] = {}

    async def __call__(self, request: Request) -> Response:
        path = request.info.path.rstrip("/")
        media = _wants_aggregated(request.headers.get("accept", "")) if path in ("/api", "/apis") else ""
        if media:
            return self._aggregated(request, path, media)
        document = self._documents.get(path)
        if document is None:
            found = _document(path, request)
            if found is None:
                raise PathNotFound
            document = msgspec.json.encode(found)
            if path != "/api":  # the address in it is the one the client came to
                self._documents[path] = document
        return write(document, output_format(request.headers, request.info.query))

    def _aggregated(self, request: Request, path: str, media: str) -> Response:
        key = f"{path} {_VERSION}"
        document = self._documents.get(key)
        if document is None:
            document = self._documents[key] = msgspec.json.encode(aggregated(path))
        etag = f'"{hashlib.sha512(document).hexdigest().upper()}"'
        headers = [("ETag", etag), ("Vary", "Accept"), ("Cache-Control", "public")]
        if request.headers.get("if-none-match") == etag:
            return Response(b"", 304, "", headers)
        response = write(document, Format(media))
        response.content_type = f"{media};g=apidiscovery.k8s.io;v={_VERSION};as=APIGroupDiscoveryList"
        response.headers = headers
        return response


def _wants_aggregated(accept: str) -> str:
    """The media type to write everything at once in, if the client knows that document; where it stands is the same."""
    for media, parameters in clauses(accept):
        if media in MEDIA and all(parameters.get(name) == value for name, value in _AGGREGATED.items()):
            return media
    return ""


def _document(path: str, request: Request) -> dict[str, Any] | None:
    parts = path.strip("/").split("/")
    if parts == ["api"]:
        address = request.headers.get("host", "")
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
    if parts == ["apis"]:
        groups = [_group(group) for group in scheme.groups() if group.name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    name, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2] if len(parts) > 2 else "")
    group = scheme.group(name)
    if group is None or len(parts) > 3 or (parts[0] == "apis" and not name):
        return None
    if not version:
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
    if version not in group.versions:
        return None
    resources = [entry for each in _resources(name, version) for entry in _entries(each)]
    # Upstream's core list has no apiVersion; the others do.
    head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if name else {})}
    return {**head, "groupVersion": f"{name}/{version}" if name else version, "resources": resources}


def _resources(group: str, version: str) -> list[Resource]:
    return [each for each in scheme.resources() if each.group == group and each.version == version]


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


def aggregated(path: str) -> dict[str, Any]:
    """Everything below `/api` or `/apis` in one document."""
    groups = [group for group in scheme.groups() if (not group.name) == (path == "/api")]
    items = []
    for group in groups:
        versions = [
            {
                "version": each,
                "resources": [_discovery(resource) for resource in _resources(group.name, each)],
                "freshness": "Current",
            }
            for each in group.versions
        ]
        items.append({"metadata": {"name": group.name} if group.name else {}, "versions": versions})
    api_version = f"apidiscovery.k8s.io/{_VERSION}"
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _discovery(resource: Resource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
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
                    "group": sub.group or "",
                    "version": sub.version or "",
                    "kind": sub.kind or resource.kind,
                },
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources
        ]
    return entry
