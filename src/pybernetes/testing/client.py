"""A client for tests: plain dicts, any kind by any of its names, errors as exceptions, no event loop.

For what a client library does well there are the fixtures of those libraries; this one is for preparing a cluster and
for looking at it.
"""

from __future__ import annotations

import builtins
import contextlib
import http.client
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from pybernetes.api import errors

Object = dict[str, Any]
Condition = Callable[[Object], Any]
TIMEOUT = 60.0
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
FIELD_MANAGER = "pybernetes-testing"


class NotSo(AssertionError):
    """A condition that a test waited for did not become true; the message says what was there instead."""


class Resource:
    """Where the objects of a kind are served."""

    __slots__ = ("group", "kind", "names", "namespaced", "plural", "version")

    def __init__(self, group: str, version: str, entry: Mapping[str, Any]) -> None:
        self.group, self.version = group, version
        self.plural: str = entry["resource"]
        self.kind: str = entry["responseKind"]["kind"]
        self.namespaced = entry["scope"] == "Namespaced"
        singular = entry.get("singularResource") or self.kind.lower()
        self.names = {self.plural, singular, self.kind.lower(), *entry.get("shortNames", ())}

    @property
    def api_version(self) -> str:
        """As objects say it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """Of the URL."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(each, safe=":") for each in (name, subresource) if each]
        return "/".join(parts)


class Client:
    """One user of one cluster. It may be used by several threads."""

    def __init__(self, server: str, tls: ssl.SSLContext, namespace: str = "default") -> None:
        """`namespace` is where namespaced objects are unless they, or a call, say another one."""
        self.namespace = namespace
        parts = urlsplit(server)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._tls = tls
        self._local = threading.local()
        self._resources: builtins.list[Resource] = []

    def in_namespace(self, namespace: str) -> Client:
        """The same client, for another namespace."""
        other = Client(f"https://{self._host}:{self._port}", self._tls, namespace)
        other._resources = self._resources
        return other

    def close(self) -> None:
        """Close this thread's connection; the next request makes a new one."""
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    # -- objects

    def get(self, resource: str, name: str, namespace: str | None = None) -> Object:
        """One object. errors.NotFound."""
        return self.request("GET", self._path(resource, namespace, name))

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        all_namespaces: bool = False,
    ) -> builtins.list[Object]:
        """The objects of a kind, with `kind` and `apiVersion`."""
        found = self.resource(resource)
        path = found.path(None if all_namespaces else namespace or self.namespace)
        answer = self.request("GET", path, query={"labelSelector": labels, "fieldSelector": fields})
        about = {"apiVersion": found.api_version, "kind": found.kind}
        return [{**about, **each} for each in answer["items"]]

    def create(self, content: Object, namespace: str | None = None) -> Object:
        """Create an object; what was stored."""
        return self.request("POST", self._place(content, namespace, named=False), content)

    def replace(self, content: Object, namespace: str | None = None) -> Object:
        """Replace an object; what was stored."""
        return self.request("PUT", self._place(content, namespace), content)

    def apply(
        self, content: Object | str | os.PathLike[str], namespace: str | None = None, *, force: bool = True
    ) -> builtins.list[Object]:
        """Server-side apply of an object, of YAML text, or of a file or folder of manifests; what was stored."""
        result = []
        for each in objects_of(content):
            path = self._place(each, namespace)
            query = {"fieldManager": FIELD_MANAGER, "force": force}
            result.append(self.request("PATCH", path, each, query=query, content_type="application/apply-patch+yaml"))
        return result

    def patch(
        self,
        resource: str,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        how: str = "",
        subresource: str = "",
    ) -> Object:
        """Patch an object; `how` is merge, strategic or json (by default a list is json, all else merge)."""
        content_type = PATCHES[how or ("json" if isinstance(patch, list) else "merge")]
        path = self._path(resource, namespace, name, subresource)
        return self.request("PATCH", path, patch, content_type=content_type)

    def delete(self, resource: str, name: str, namespace: str | None = None, *, propagation: str = "") -> Object:
        """Delete an object; it may still be there, until its finalizers are gone."""
        query = {"propagationPolicy": propagation}
        return self.request("DELETE", self._path(resource, namespace, name), query=query)

    # -- waiting

    def watch(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        fields: str = "",
        labels: str = "",
        version: str = "",
        timeout: float = TIMEOUT,
    ) -> Generator[tuple[str, Object]]:
        """Changes as (ADDED|MODIFIED|DELETED, object), beginning with what is there unless a version is given."""
        deadline = time.monotonic() + timeout
        query = {"watch": True, "resourceVersion": version, "fieldSelector": fields, "labelSelector": labels}
        connection = self._connection(timeout)
        try:
            connection.request("GET", f"{self._path(resource, namespace)}?{query_of(query)}")
            response = connection.getresponse()
            if response.status >= 400:
                raise _error(response.status, response.read())
            while (left := deadline - time.monotonic()) > 0:
                connection.sock.settimeout(left)
                line = response.readline()
                if not line:
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise errors.from_status(event["object"])
                yield event["type"], event["object"]
        except TimeoutError:
            return
        finally:
            connection.close()

    def wait_for(
        self,
        resource: str,
        name: str,
        condition: str | Condition = "Ready",
        namespace: str | None = None,
        *,
        timeout: float = TIMEOUT,
    ) -> Object:
        """Wait until an object fulfils a condition, and return it.

        The condition is a function of the object; the type of a status condition that must be True (`Ready`,
        `Available=False`); or `deleted`. NotSo after the timeout, with the object's status and events.
        """
        wanted = _condition(condition)
        last: Object | None = None
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            last = None
            try:
                last = self.get(resource, name, namespace)
            except errors.NotFound:
                if condition == "deleted":
                    return {}
            if last is not None and wanted is not None and wanted(last):
                return last
            version = last["metadata"]["resourceVersion"] if last else ""
            selector = f"metadata.name={name}"
            watch = self.watch(resource, namespace, fields=selector, version=version, timeout=left)
            with contextlib.closing(watch) as changes, contextlib.suppress(errors.APIError):
                for kind, content in changes:
                    if kind == "DELETED" and condition == "deleted":
                        return content
                    if kind != "DELETED":
                        last = content
                        if wanted is not None and wanted(content):
                            return content
        what = condition if isinstance(condition, str) else getattr(condition, "__name__", "the condition")
        raise NotSo(
            f"{resource}/{name}: not {what} within {timeout:g} s; {self._state(last, resource, name, namespace)}"
        )

    def events(self, namespace: str | None = None, **involved: str) -> builtins.list[Object]:
        """The events of a namespace, oldest first; of one object with `kind`, `name` or `uid`."""
        fields = ",".join(f"involvedObject.{key}={value}" for key, value in involved.items())
        found = self.list("events", namespace, fields=fields)
        return sorted(found, key=lambda event: event["metadata"]["creationTimestamp"])

    def assert_events(
        self, resource: str, name: str, *reasons: str, namespace: str | None = None, timeout: float = TIMEOUT
    ) -> builtins.list[Object]:
        """Wait until an object has events of these reasons in this order, others between them; its events.

        NotSo after the timeout, with the events that there are.
        """
        kind = self.resource(resource).kind
        deadline = time.monotonic() + timeout
        while True:
            found = self.events(namespace, kind=kind, name=name)
            seen = iter([event.get("reason") for event in found])
            missing = [reason for reason in reasons if reason not in seen]
            if not missing:
                return found
            if (left := deadline - time.monotonic()) <= 0:
                there = "".join(f"\n    {each.get('reason')}: {each.get('message')}" for each in found) or " none"
                raise NotSo(
                    f"{resource}/{name}: no event {missing[0]} in its turn within {timeout:g} s; there are:{there}"
                )
            with contextlib.closing(self.watch("events", namespace, timeout=min(left, 1.0))) as changes:
                for _, event in changes:
                    if event.get("reason") == missing[0] and event.get("involvedObject", {}).get("name") == name:
                        break

    def _state(self, content: Object | None, resource: str, name: str, namespace: str | None) -> str:
        if content is None:
            return "it does not exist"
        status = json.dumps(content.get("status"), indent=2)
        place = content["metadata"].get("namespace") or namespace
        events = self.events(place or "default", name=name, kind=self.resource(resource).kind)
        lines = [f"    {each.get('type')} {each.get('reason')}: {each.get('message')}" for each in events[-10:]]
        return f"its status is\n{status}\nits events:\n" + ("\n".join(lines) or "    none")

    # -- requests

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        """Send a request; the answer's JSON. Raises an `errors.APIError` for a refusal."""
        content = self.fetch(method, path, body, query=query, content_type=content_type, accept=accept)
        result: Object = json.loads(content) if content else {}
        return result

    def fetch(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        """Send a request; the answer as it came. Raises an `errors.APIError` for a refusal."""
        target = f"{path}?{query_of(query)}" if query else path
        payload = None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept, "User-Agent": FIELD_MANAGER} | ({"Content-Type": content_type} if payload else {})
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connection(TIMEOUT)
        try:
            connection.request(method, target, payload, headers)
            response = connection.getresponse()
            content = response.read()
        except (http.client.HTTPException, OSError):
            connection.close()
            self._local.connection = None
            raise
        if response.status >= 400:
            raise _error(response.status, content)
        return content

    def resource(self, word: str) -> Resource:
        """The resource with a name: plural, singular, kind or short name, also with `.GROUP`. ValueError."""
        for attempt in range(2):
            name, _, group = word.lower().partition(".")
            for each in self._resources:
                if name in each.names and (not group or each.group == group):
                    return each
            if attempt == 0:
                self._discover()
        raise ValueError(f"the server has no resource {word!r}")

    def resource_of(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind. ValueError."""
        for attempt in range(2):
            for each in self._resources:
                if each.kind == kind and each.api_version == api_version:
                    return each
            if attempt == 0:
                self._discover()
        raise ValueError(f"the server has no kind {kind!r} in {api_version!r}")

    def _discover(self) -> None:
        found = []
        for path in ("/api", "/apis"):
            for group in self.request("GET", path, accept=DISCOVERY)["items"]:
                for version in group.get("versions", ()):
                    found += [
                        Resource(group["metadata"].get("name", ""), version["version"], each)
                        for each in version.get("resources", ())
                    ]
        self._resources[:] = found

    def _path(self, resource: str, namespace: str | None, name: str = "", subresource: str = "") -> str:
        return self.resource(resource).path(namespace or self.namespace, name, subresource)

    def _place(self, content: Object, namespace: str | None, *, named: bool = True) -> str:
        metadata = content.get("metadata", {})
        if named and not (isinstance(metadata.get("name"), str) and metadata["name"]):
            raise ValueError(f"metadata.name: {metadata.get('name')!r} is no name (of a {content.get('kind')})")
        found = self.resource_of(content.get("apiVersion", ""), content.get("kind", ""))
        place = namespace or metadata.get("namespace") or self.namespace
        return found.path(place, metadata["name"] if named else "")

    def _connection(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)


def tls_of(folder: Path, user: str) -> ssl.SSLContext:
    """The TLS settings of a user whose certificate is in a cluster's folder of keys."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(folder / "ca.crt")
    context.load_cert_chain(folder / f"{user}.crt", folder / f"{user}.key")
    return context


def _condition(condition: str | Condition) -> Condition | None:
    if callable(condition):
        return condition
    if condition == "deleted":
        return None
    kind, _, status = condition.removeprefix("condition=").partition("=")
    status = status or "True"

    def holds(content: Object) -> bool:
        found = content.get("status", {}).get("conditions") or ()
        return any(each["type"].lower() == kind.lower() and each["status"].lower() == status.lower() for each in found)

    return holds


def objects_of(content: Object | str | os.PathLike[str]) -> Iterator[Object]:
    """The objects of a manifest; lists are taken apart."""
    import yaml

    if isinstance(content, Mapping):
        documents: Any = [content]
    elif isinstance(content, str) and ("\n" in content or ":" in content):
        documents = yaml.safe_load_all(content)
    else:
        path = Path(content)
        files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.suffix in _MANIFESTS)
        documents = [each for file in files for each in yaml.safe_load_all(file.read_text())]
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise ValueError(f"not a Kubernetes object: {str(document)[:100]!r}")
        yield from (
            document["items"] if document.get("kind", "").endswith("List") and "items" in document else [document]
        )


_MANIFESTS = (".yaml", ".yml", ".json")


def query_of(parameters: Mapping[str, Any]) -> str:
    """A query string of the parameters that are set."""
    pairs = [
        (key, str(value).lower() if isinstance(value, bool) else value) for key, value in parameters.items() if value
    ]
    return urlencode(pairs)


def _error(status: int, body: bytes) -> errors.APIError:
    from pybernetes.client.transport import error_of

    return error_of(status, {}, body)
