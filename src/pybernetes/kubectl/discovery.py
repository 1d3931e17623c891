"""Which groups, versions and resources a server has, cached for six hours in upstream's files.

Layout, shared with upstream's kubectl: `<cache>/discovery/<host_port>/servergroups.json` and
`<group>/<version>/serverresources.json`. Beside them `pyb-index.json` holds all of it in one file with the ETags, so
that a warm command reads one file; it counts only while servergroups.json is the one it was made with.
"""

from __future__ import annotations

import os
import time

from pybernetes.kubectl import data
from pybernetes.kubectl.errors import CLIError, StatusError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.client import Client

_TTL = 6 * 3600
_AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


class Discovery:
    """Groups in the server's order, and the resources of each group version."""

    def __init__(self, client: Client, cache: str) -> None:
        self._client = client
        host = client.config.server.partition("://")[2]
        safe = "".join(char if char.isalnum() or char in "_/.()" else "_" for char in host)
        self.folder = os.path.join(cache, "discovery", safe)
        self.fresh = False
        self.failed: dict[str, str] = {}
        self._loaded: tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]] | None = None

    @property
    def groups(self) -> list[dict[str, Any]]:
        """APIGroups: name, versions, preferredVersion."""
        return self._load()[0]

    @property
    def resources(self) -> dict[str, list[dict[str, Any]]]:
        """APIResources by group version (`apps/v1`)."""
        return self._load()[1]

    def invalidate(self) -> None:
        """Forgets the cache: the next question goes to the server."""
        self._loaded = self._fetch()
        self.fresh = True

    def _load(self) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
        if self._loaded is None:
            self._loaded = self._from_index() or self._from_files()
            if self._loaded is None:
                self.invalidate()
        assert self._loaded is not None
        return self._loaded

    # -- the cache

    def _stamp(self) -> int:
        """The mtime of a servergroups.json that has not expired. Raises OSError."""
        status = os.stat(os.path.join(self.folder, "servergroups.json"))
        if time.time() > status.st_mtime + _TTL:
            raise OSError("expired")
        return status.st_mtime_ns

    def _index(self) -> dict[str, Any]:
        with open(os.path.join(self.folder, "pyb-index.json"), "rb") as file:
            found: dict[str, Any] = data.loads(file.read())
        return found

    def _from_index(self) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]] | None:
        try:
            stamp = self._stamp()
            index = self._index()
            if index["stamp"] == stamp:
                return index["groups"], index["resources"]
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def _from_files(self) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]] | None:
        """Read discovery from the cache files of upstream's kubectl."""
        try:
            stamp = self._stamp()
            with open(os.path.join(self.folder, "servergroups.json"), "rb") as file:
                groups = data.loads(file.read())["groups"]
            resources = {}
            for group in groups:
                for version in group["versions"]:
                    name = version["groupVersion"]
                    path = os.path.join(self.folder, name, "serverresources.json")
                    if time.time() > os.stat(path).st_mtime + _TTL:
                        return None
                    with open(path, "rb") as file:
                        resources[name] = data.loads(file.read()).get("resources") or []
        except (OSError, ValueError, KeyError, TypeError):
            return None
        self._write_index(groups, resources, stamp, {})
        return groups, resources

    def _write(
        self, groups: list[dict[str, Any]], resources: dict[str, list[dict[str, Any]]], etags: dict[str, str]
    ) -> None:
        try:
            for name, found in resources.items():
                content = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": found}
                _replace(os.path.join(self.folder, name, "serverresources.json"), data.dumps(content, sort=False))
            path = os.path.join(self.folder, "servergroups.json")
            _replace(path, data.dumps({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}, sort=False))
            self._write_index(groups, resources, os.stat(path).st_mtime_ns, etags)
        except OSError:
            pass  # a cache that cannot be written is no cache

    def _write_index(
        self,
        groups: list[dict[str, Any]],
        resources: dict[str, list[dict[str, Any]]],
        stamp: int,
        etags: dict[str, str],
    ) -> None:
        content = {"stamp": stamp, "etags": etags, "groups": groups, "resources": resources}
        try:
            _replace(os.path.join(self.folder, "pyb-index.json"), data.dumps(content, sort=False))
        except OSError:
            pass

    # -- the server

    def _fetch(self) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
        try:
            old = self._index()
            etags = old.get("etags") or {}
        except (OSError, ValueError):
            old, etags = {}, {}
        documents: list[dict[str, Any] | None] = []
        fresh_tags: dict[str, str] = {}
        for path in ("/api", "/apis"):
            headers = [("If-None-Match", etags[path])] if etags.get(path) else []
            try:
                response = self._client.open("GET", path, accept=_AGGREGATED, headers=headers)
            except StatusError as error:
                if error.reason in ("NotFound", "Forbidden"):
                    documents.append({"items": []})
                    continue
                raise
            fresh_tags[path] = response.header("etag")
            content = self._client.content(response)
            documents.append(None if response.status == 304 else data.loads(content))
        if all(document is None for document in documents):
            groups, resources = old["groups"], old["resources"]
        elif any(document is None for document in documents):
            self._forget_tags(old)
            return self._fetch()
        else:
            groups, resources = [], {}
            for document in documents:
                assert document is not None
                self._take(document, groups, resources)
        if not groups:
            raise CLIError("the server has asked for the client to provide credentials")
        self._write(groups, resources, fresh_tags)
        return groups, resources

    def _forget_tags(self, old: dict[str, Any]) -> None:
        self._write_index(old["groups"], old["resources"], 0, {})

    def _take(
        self, document: dict[str, Any], groups: list[dict[str, Any]], resources: dict[str, list[dict[str, Any]]]
    ) -> None:
        if document.get("kind") == "APIGroupDiscoveryList" or "items" in document:
            for item in document.get("items") or ():
                self._aggregated(item, groups, resources)
        elif document.get("kind") == "APIVersions":
            versions = [{"groupVersion": version, "version": version} for version in document.get("versions") or ()]
            groups.append({"name": "", "versions": versions, "preferredVersion": versions[0]})
            self._unaggregated(groups[-1], resources)
        else:
            for group in document.get("groups") or ():
                groups.append(group)
                self._unaggregated(group, resources)

    def _unaggregated(self, group: dict[str, Any], resources: dict[str, list[dict[str, Any]]]) -> None:
        """The resources of a server that does not aggregate them: one request for each version."""
        for version in group["versions"]:
            name = version["groupVersion"]
            try:
                found = self._client.get(f"/apis/{name}" if group.get("name") else f"/api/{name}")
                resources[name] = found.get("resources") or []
            except StatusError as error:
                self.failed[name] = error.message

    def _aggregated(
        self, item: dict[str, Any], groups: list[dict[str, Any]], resources: dict[str, list[dict[str, Any]]]
    ) -> None:
        name = (item.get("metadata") or {}).get("name") or ""
        versions = []
        for version in item.get("versions") or ():
            group_version = f"{name}/{version['version']}" if name else version["version"]
            if version.get("freshness") == "Stale" and not version.get("resources"):
                self.failed[group_version] = f"stale GroupVersion discovery: {group_version}"
            versions.append({"groupVersion": group_version, "version": version["version"]})
            found: list[dict[str, Any]] = []
            for resource in version.get("resources") or ():
                found += _api_resources(resource)
            resources[group_version] = found
        if versions:
            groups.append({"name": name, "versions": versions, "preferredVersion": versions[0]})


def _api_resources(resource: dict[str, Any]) -> list[dict[str, Any]]:
    """An APIResource of an aggregated one, and one for each subresource."""
    kind = resource.get("responseKind") or {}
    namespaced = resource.get("scope") == "Namespaced"
    found: dict[str, Any] = {
        "name": resource["resource"],
        "singularName": resource.get("singularResource") or "",
        "namespaced": namespaced,
        **({"group": kind["group"]} if kind.get("group") else {}),
        **({"version": kind["version"]} if kind.get("version") else {}),
        "kind": kind.get("kind") or "",
        "verbs": resource.get("verbs") or [],
    }
    for source in ("shortNames", "categories"):
        if resource.get(source):
            found[source] = resource[source]
    every = [found]
    for sub in resource.get("subresources") or ():
        kind = sub.get("responseKind") or {}
        every.append(
            {
                "name": f"{resource['resource']}/{sub['subresource']}",
                "singularName": "",
                "namespaced": namespaced,
                **({"group": kind["group"]} if kind.get("group") else {}),
                **({"version": kind["version"]} if kind.get("version") else {}),
                "kind": kind.get("kind") or "",
                "verbs": sub.get("verbs") or [],
            }
        )
    return every


def _replace(path: str, content: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o750, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o660), "w") as file:
        file.write(content)
    os.replace(temporary, path)
