"""The API with our kinds: `await client.get(Pod, "web", "default")`.

A refusal is raised as one of `pybernetes.api.errors` (`except errors.NotFound`); a server that cannot be reached as
`http.ConnectionFailed` or `TimeoutError`. Objects that are sent are never changed; what comes back is new and yours.
Answers of the server are decoded leniently: fields of a newer server are left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from pybernetes.api import errors, scheme
from pybernetes.api.autoscaling.v1 import Scale
from pybernetes.api.base import Kind, Struct
from pybernetes.api.meta.v1 import DeleteOptions, Preconditions
from pybernetes.api.resources import Resource

from . import codec
from .clock import Clock
from .codec import List
from .config import Config
from .keys import resource_of
from .transport import JSON, Transport, path, user_agent, with_query
from .watch import Watch

K = TypeVar("K", bound=Kind)
S = TypeVar("S", bound=Struct)

PatchType = Literal["merge", "json", "strategic", "apply"]
PropagationPolicy = Literal["Foreground", "Background", "Orphan"]

_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
PAGE = 500  # client-go's page size for lists in chunks


class Client:
    """Verbs on kinds. `for_component` gives one that calls itself differently on the same connections."""

    accept = JSON

    def __init__(
        self,
        config: Config | None = None,
        *,
        program: str = "pybernetes",
        component: str = "",
        qps: float = 0.0,
        burst: int = 0,
        clock: Clock | None = None,
        transport: Transport | None = None,
        headers: Mapping[str, str | Sequence[str]] | None = None,
    ) -> None:
        """`headers` go with every request."""
        if transport is None:
            if config is None:
                raise ValueError("a config or a transport is needed")
            transport = Transport(config, clock=clock, qps=qps, burst=burst)
        self.transport = transport
        self.program = program
        self._more_headers = headers or {}
        self._headers: dict[str, str | Sequence[str]] = {
            "User-Agent": user_agent(program, component),
            **self._more_headers,
        }

    def for_component(self, component: str) -> Client:
        """The same server, user and connections under another User-Agent."""
        return Client(transport=self.transport, program=self.program, component=component, headers=self._more_headers)

    def acting_as(self, user: str, groups: Sequence[str], program: str) -> Client:
        """Somebody else (impersonation, which must be allowed to us) on the same connections."""
        headers = {"Impersonate-User": user, "Impersonate-Group": groups}
        return Client(transport=self.transport, program=program, headers=headers)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections, of the clients made by `for_component` too."""
        await self.transport.close()

    # -- reading

    async def get(self, kind: type[K], name: str, namespace: str = "", *, resource_version: str = "") -> K:
        """One object."""
        resource = resource_of(kind)
        target = with_query(path(resource, namespace, _named(name)), {"resourceVersion": resource_version})
        return await self._send(kind, "GET", target)

    async def list(
        self,
        kind: type[K],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> List[K]:
        """The objects of a namespace, or of all of them; with a limit one page of them."""
        query = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": limit or None,
            "continue": continue_token,
            "resourceVersion": resource_version,
            "resourceVersionMatch": resource_version_match,
        }
        return await self._list(resource_of(kind), kind, namespace, query, self.accept)

    async def pages(
        self,
        kind: type[K],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
    ) -> AsyncIterator[List[K]]:
        """All objects, page by page, as of the revision of the first page."""
        token = ""
        while True:
            page = await self.list(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_token=token,
            )
            yield page
            token = page.continue_token
            if not token:
                return

    def watch(
        self,
        kind: type[K],
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 0,
        bookmarks: bool = True,
        send_initial_events: bool = False,
    ) -> Watch[K]:
        """The changes since a revision (`async with`); with `send_initial_events` first everything there is."""
        query: dict[str, str | int | bool | None] = {
            "watch": True,
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": timeout_seconds or None,
            "allowWatchBookmarks": bookmarks or None,
            "sendInitialEvents": send_initial_events or None,
            "resourceVersionMatch": "NotOlderThan" if send_initial_events else "",
        }
        return self._watch(resource_of(kind), kind, namespace, query, self.accept)

    # -- writing

    async def create(self, obj: K, *, namespace: str = "", dry_run: bool = False, field_manager: str = "") -> K:
        """A new object, in its namespace or the one given."""
        resource = resource_of(type(obj))
        metadata = obj.metadata
        where = namespace or (metadata.namespace if metadata else None) or ""
        target = with_query(path(resource, where), _options(dry_run, field_manager))
        return await self._send(type(obj), "POST", target, self._body(obj))

    async def update(self, obj: K, *, subresource: str = "", dry_run: bool = False, field_manager: str = "") -> K:
        """Replace an object by this one; `errors.Conflict` if it has changed since it was read."""
        assert obj.metadata is not None
        target = path(resource_of(type(obj)), obj.metadata.namespace, _named(obj.metadata.name or ""), subresource)
        return await self._send(type(obj), "PUT", with_query(target, _options(dry_run, field_manager)), self._body(obj))

    async def update_status(self, obj: K, *, field_manager: str = "") -> K:
        """Replace the status by this object's."""
        return await self.update(obj, subresource="status", field_manager=field_manager)

    async def patch(
        self,
        kind: type[K],
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        type: PatchType = "merge",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> K:
        """Change parts of an object. The patch is a value to be written as JSON, in the names of the wire.

        `apply` is server-side apply: it needs a field manager (the program's name unless given), and `force` takes
        fields from others.
        """
        target = path(resource_of(kind), namespace, _named(name), subresource)
        if type == "apply":
            field_manager = field_manager or self.program
        query = {**_options(dry_run, field_manager), "force": force or None}
        headers = {"Content-Type": _PATCH_TYPES[type]}
        return await self._send(kind, "PATCH", with_query(target, query), scheme.encoder.encode(patch), headers)

    async def apply(self, obj: K, *, field_manager: str = "", force: bool = False, subresource: str = "") -> K:
        """Server-side apply of the fields that are set in this object."""
        assert obj.metadata is not None
        resource = resource_of(type(obj))
        whole = msgspec.structs.replace(obj, kind=resource.kind, api_version=resource.api_version)
        return await self.patch(
            type(obj),
            obj.metadata.name or "",
            whole,
            obj.metadata.namespace or "",
            type="apply",
            field_manager=field_manager,
            force=force,
            subresource=subresource,
        )

    async def delete(
        self,
        kind: type[Kind],
        name: str,
        namespace: str = "",
        *,
        propagation_policy: PropagationPolicy | None = None,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Delete an object; with a uid or resourceVersion only that very one (`errors.Conflict` otherwise)."""
        options = _delete_options(propagation_policy, grace_period_seconds, uid, resource_version)
        await self._delete(path(resource_of(kind), namespace, _named(name)), options)

    async def delete_collection(
        self,
        kind: type[Kind],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation_policy: PropagationPolicy | None = None,
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete everything that the selectors select."""
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        options = _delete_options(propagation_policy, grace_period_seconds, None, None)
        await self._delete(with_query(path(resource_of(kind), namespace), query), options)

    # -- parts of objects

    async def get_scale(self, of: type[Kind] | Resource, name: str, namespace: str = "") -> Scale:
        """How many replicas an object has and wants; any resource with `/scale` will do."""
        return await self._send(Scale, "GET", path(_resource(of), namespace, _named(name), "scale"))

    async def update_scale(self, of: type[Kind] | Resource, scale: Scale) -> Scale:
        """Change how many replicas an object wants."""
        assert scale.metadata is not None
        target = path(_resource(of), scale.metadata.namespace, _named(scale.metadata.name or ""), "scale")
        return await self._send(Scale, "PUT", target, codec.encode(scale, "Scale", "autoscaling/v1"))

    async def bind(self, name: str, namespace: str, node: str, *, uid: str | None = None) -> None:
        """Assign a pod to a node."""
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
        }
        if uid:
            body["metadata"]["uid"] = uid
        body["target"] = {"apiVersion": "v1", "kind": "Node", "name": node}
        await self.call("POST", f"/api/v1/namespaces/{namespace}/pods/{_named(name)}/binding", body)

    async def evict(
        self, name: str, namespace: str, *, grace_period_seconds: int | None = None, uid: str | None = None
    ) -> None:
        """Delete a pod if its disruption budgets allow it; `errors.TooManyRequests` if not."""
        options = _delete_options(None, grace_period_seconds, uid, None)
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        await self.call("POST", f"/api/v1/namespaces/{namespace}/pods/{_named(name)}/eviction", body)

    async def subresource(
        self,
        method: Literal["GET", "POST", "PUT"],
        of: type[Kind] | Resource,
        name: str,
        namespace: str,
        part: str,
        body: S,
    ) -> S:
        """Any other part of an object, such as `token` of a ServiceAccount: send a body, get one of the same class."""
        target = path(_resource(of), namespace, _named(name), part)
        return await self._send(type(body), method, target, scheme.encoder.encode(body))

    async def call(
        self, method: str, target: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Any request, JSON in and out: for paths and kinds that nothing else here knows."""
        data = b"" if body is None else scheme.encoder.encode(body)
        response = await self.transport.request(method, target, body=data, headers={**self._headers, **(headers or {})})
        return msgspec.json.decode(response.body) if response.body else None

    # -- used by the metadata client too

    async def _list(
        self, resource: Resource, kind: type[K], namespace: str, query: Mapping[str, str | int | None], accept: str
    ) -> List[K]:
        target = with_query(path(resource, namespace), query)
        response = await self.transport.request("GET", target, headers={**self._headers, "Accept": accept})
        return codec.decode_list(kind, response.body)

    def _watch(
        self,
        resource: Resource,
        kind: type[K],
        namespace: str,
        query: Mapping[str, str | int | bool | None],
        accept: str,
    ) -> Watch[K]:
        target = with_query(path(resource, namespace), query)
        return Watch(self.transport, kind, target, {**self._headers, "Accept": accept})

    async def _send(
        self, kind: type[S], method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> S:
        response = await self.transport.request(
            method, target, body=body, headers={**self._headers, **headers} if headers else self._headers
        )
        return codec.decode(kind, response.body)

    async def _delete(self, target: str, options: DeleteOptions) -> None:
        body = scheme.encoder.encode(options)
        await self.transport.request("DELETE", target, body=body, headers=self._headers)

    def _body(self, obj: Kind) -> bytes:
        resource = resource_of(type(obj))
        return codec.encode(obj, resource.kind, resource.api_version)


class NameMissing(errors.NotFound, ValueError):
    """An object without a name was asked for, as a reference in another object may have it: there is none."""

    def __init__(self) -> None:
        message = "a name is needed: without one the request would mean the whole collection"
        errors.APIError.__init__(self, message, {})


def _named(name: str) -> str:
    if not name:
        raise NameMissing
    return name


def _resource(of: type[Kind] | Resource) -> Resource:
    return of if isinstance(of, Resource) else resource_of(of)


def _options(dry_run: bool, field_manager: str) -> dict[str, str | int | bool | None]:
    return {"dryRun": "All" if dry_run else None, "fieldManager": field_manager}


def _delete_options(
    policy: PropagationPolicy | None, grace: int | None, uid: str | None, resource_version: str | None
) -> DeleteOptions:
    preconditions = Preconditions(uid=uid, resource_version=resource_version) if uid or resource_version else None
    return DeleteOptions(
        kind="DeleteOptions",
        api_version="v1",
        grace_period_seconds=grace,
        propagation_policy=policy,
        preconditions=preconditions,
    )
