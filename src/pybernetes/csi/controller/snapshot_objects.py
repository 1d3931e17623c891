"""VolumeSnapshots and their kin are custom resources, so they are plain JSON here: their paths, and verbs on them."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.client.client import Client

GROUP: Final = "snapshot.storage.k8s.io"
MANAGED_BY: Final = "snapshot.storage.kubernetes.io/managed-by"
"""Upstream's label of a VolumeSnapshotContent whose snapshot is on one node."""
ROOT: Final = f"/apis/{GROUP}/v1"
Json = dict[str, Any]


def path(plural: str, name: str = "", namespace: str = "", subresource: str = "") -> str:
    """Where an object is, or without a name where its kind is."""
    parts = [ROOT, *(["namespaces", namespace] if namespace else []), plural, name, subresource]
    return "/".join(each for each in parts if each)


async def get(client: Client, plural: str, name: str, namespace: str = "") -> Json:
    """The object; raises APIError."""
    found: Json = await client.call("GET", path(plural, name, namespace))
    return found


async def create(client: Client, plural: str, obj: Json, namespace: str = "") -> Json:
    """Create an object; raises APIError."""
    made: Json = await client.call("POST", path(plural, namespace=namespace), obj)
    return made


async def patch(
    client: Client, plural: str, name: str, change: Json, namespace: str = "", subresource: str = ""
) -> Json:
    """Change an object by a merge patch; raises APIError."""
    headers = {"Content-Type": "application/merge-patch+json"}
    made: Json = await client.call("PATCH", path(plural, name, namespace, subresource), change, headers=headers)
    return made


async def delete(client: Client, plural: str, name: str, namespace: str = "") -> None:
    """Delete an object; raises APIError."""
    await client.call("DELETE", path(plural, name, namespace))
