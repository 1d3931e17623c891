"""Discovers the served resources in two requests, also those that we have no kinds for."""

from __future__ import annotations

from typing import Any

from pybernetes.api import scheme
from pybernetes.api.resources import Resource, Subresource

from .client import Client

_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Discovery:
    """All resources in all versions, and which group versions could not be asked for."""

    def __init__(self, resources: list[Resource], preferred: list[Resource], stale: list[str]) -> None:
        self.resources = resources
        self.preferred = preferred
        """One version of each: the first that has it, in the order the server prefers."""
        self.stale = stale
        """Group versions whose server (an aggregated one) does not answer: what they have is unknown, not gone."""

    def with_verbs(self, *verbs: str, namespaced: bool | None = None) -> list[Resource]:
        """The preferred resources that can do all this."""
        return [
            each
            for each in self.preferred
            if set(verbs) <= set(each.verbs) and (namespaced is None or each.namespaced == namespaced)
        ]

    def for_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind, as an owner reference names it."""
        group, version = scheme.split_api_version(api_version)
        return next(
            (each for each in self.resources if (each.group, each.version, each.kind) == (group, version, kind)), None
        )


async def discover(client: Client) -> Discovery:
    """Ask the server."""
    resources: list[Resource] = []
    preferred: dict[tuple[str, str], Resource] = {}
    stale: list[str] = []
    for path in ("/api", "/apis"):
        document = await client.call("GET", path, headers={"Accept": _ACCEPT})
        for group in document.get("items") or ():
            name = (group.get("metadata") or {}).get("name") or ""
            for version in group.get("versions") or ():
                if version.get("freshness") == "Stale":
                    stale.append(f"{name}/{version['version']}" if name else version["version"])
                for entry in version.get("resources") or ():
                    resource = _resource(name, version["version"], entry)
                    if resource is not None:
                        resources.append(resource)
                        preferred.setdefault((name, resource.plural), resource)
    return Discovery(resources, list(preferred.values()), stale)


def _resource(group: str, version: str, entry: dict[str, Any]) -> Resource | None:
    """Ours if we have it: it is compared by identity."""
    known = scheme.resource(group, version, entry["resource"])
    if known is not None:
        return known
    kind = (entry.get("responseKind") or {}).get("kind")
    if not kind:
        return None  # only a place for subresources
    return Resource(
        group=group,
        version=version,
        plural=entry["resource"],
        kind=kind,
        namespaced=entry.get("scope") == "Namespaced",
        singular=entry.get("singularResource") or "",
        verbs=tuple(entry.get("verbs") or ()),
        short_names=tuple(entry.get("shortNames") or ()),
        categories=tuple(entry.get("categories") or ()),
        subresources=tuple(
            Subresource(
                each["subresource"],
                tuple(each.get("verbs") or ()),
                kind=(each.get("responseKind") or {}).get("kind"),
                group=(each.get("responseKind") or {}).get("group"),
                version=(each.get("responseKind") or {}).get("version"),
            )
            for each in entry.get("subresources") or ()
        ),
    )
