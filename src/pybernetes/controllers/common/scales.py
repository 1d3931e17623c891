"""Finds and changes the scale of anything that has one, also of custom resources, by kind and name.

Which resource a kind belongs to is asked of the server's discovery and remembered; what was not found, or had no scale,
is asked again each time, because it may have been defined meanwhile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pybernetes.api import errors
from pybernetes.api.autoscaling.v1 import Scale
from pybernetes.api.resources import Resource
from pybernetes.client.client import Client


class NoMatch(LookupError):
    """No resource is served whose objects are of the kind."""

    def __init__(self, kind: str, group: str, version: str = "") -> None:
        where = f'"{group}/{version}"' if group and version else f'"{version}"'
        super().__init__(
            f'no matches for kind "{kind}" in version {where}'
            if version
            else f'no matches for kind "{kind}" in group "{group}"'
        )


class Found(NamedTuple):
    """A served resource."""

    resource: Resource
    has_scale: bool


class Scales:
    """Scales of objects that are known by kind and name."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: dict[tuple[str, str, str], Found] = {}

    async def resource_of(self, api_version: str, kind: str) -> Found:
        """The resource of a kind in one version. Raises NoMatch."""
        group, _, version = api_version.rpartition("/")
        known = self._found.get((group, version, kind))
        if known is not None:
            return known
        try:
            answer = await self._client.call("GET", f"/apis/{api_version}" if group else f"/api/{version}")
        except errors.NotFound:
            raise NoMatch(kind, group, version) from None
        served: list[dict[str, Any]] = answer.get("resources") or []
        names = {each["name"] for each in served}
        for each in served:
            if each["kind"] == kind and "/" not in each["name"]:
                plural = each["name"]
                resource = Resource(group, version, plural, kind, namespaced=bool(each.get("namespaced")), stored=False)
                found = Found(resource, f"{plural}/scale" in names)
                if found.has_scale:  # one without may get one
                    self._found[group, version, kind] = found
                return found
        raise NoMatch(kind, group, version)

    async def resources_of(self, group: str, kind: str) -> list[Found]:
        """The resources of a kind in all versions of a group, the preferred one first. Raises NoMatch."""
        versions = ["v1"]
        if group:
            try:
                answer = await self._client.call("GET", f"/apis/{group}")
            except errors.NotFound:
                raise NoMatch(kind, group) from None
            preferred = (answer.get("preferredVersion") or {}).get("version")
            versions = [each["version"] for each in answer.get("versions") or []]
            versions.sort(key=lambda version: version != preferred)
        result: list[Found] = []
        for version in versions:
            try:
                result.append(await self.resource_of(f"{group}/{version}" if group else version, kind))
            except NoMatch:
                continue
        if not result:
            raise NoMatch(kind, group)
        return result

    async def get(self, resource: Resource, name: str, namespace: str) -> Scale:
        """The scale of an object."""
        return await self._client.get_scale(resource, name, namespace)

    async def update(self, resource: Resource, scale: Scale) -> Scale:
        """Write the scale of an object."""
        return await self._client.update_scale(resource, scale)
