"""Any resource, also one made by a CustomResourceDefinition, without knowing its kind: only `metadata` is sent.

For the garbage collector, the namespace controller and quotas, which need to know of everything and care for nothing
in particular.
"""

from __future__ import annotations

from typing import Any

from pybernetes.api import scheme
from pybernetes.api.meta.v1 import PartialObjectMetadata
from pybernetes.api.resources import Resource

from .client import _PATCH_TYPES, Client, PatchType, PropagationPolicy, _delete_options, _named
from .codec import List
from .transport import path, with_query
from .watch import Watch

ONE = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
MANY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class MetadataClient:
    """Verbs on resources; answers are `PartialObjectMetadata`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, resource: Resource, name: str, namespace: str = "") -> PartialObjectMetadata:
        """One object's metadata."""
        return await self._client._send(
            PartialObjectMetadata, "GET", path(resource, namespace, _named(name)), headers={"Accept": ONE}
        )

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
    ) -> List[PartialObjectMetadata]:
        """The metadata of many."""
        query = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": limit or None,
            "continue": continue_token,
            "resourceVersion": resource_version,
        }
        return await self._client._list(resource, PartialObjectMetadata, namespace, query, MANY)

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        timeout_seconds: int = 0,
        bookmarks: bool = True,
        send_initial_events: bool = False,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Watch[PartialObjectMetadata]:
        """The changes of the metadata of many."""
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
        return self._client._watch(resource, PartialObjectMetadata, namespace, query, ONE)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        type: PatchType = "merge",
        subresource: str = "",
    ) -> PartialObjectMetadata:
        """Change an object; the answer is its metadata."""
        target = path(resource, namespace, _named(name), subresource)
        headers = {"Accept": ONE, "Content-Type": _PATCH_TYPES[type]}
        return await self._client._send(PartialObjectMetadata, "PATCH", target, scheme.encoder.encode(patch), headers)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation_policy: PropagationPolicy | None = None,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Delete an object; with a uid or resourceVersion only that very one."""
        options = _delete_options(propagation_policy, grace_period_seconds, uid, resource_version)
        await self._client._delete(path(resource, namespace, _named(name)), options)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        propagation_policy: PropagationPolicy | None = None,
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete everything in a namespace."""
        options = _delete_options(propagation_policy, grace_period_seconds, None, None)
        target = with_query(path(resource, namespace), {"labelSelector": label_selector})
        await self._client._delete(target, options)
