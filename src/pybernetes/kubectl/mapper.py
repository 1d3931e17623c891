"""Names to REST resources: plural, singular and short names, `resource.version.group`, kinds, categories."""

from __future__ import annotations

import sys

from pybernetes.kubectl.errors import NoMatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.discovery import Discovery


class Mapping:
    """One resource of one group version."""

    __slots__ = ("categories", "group", "kind", "namespaced", "resource", "short_names", "singular", "verbs", "version")

    def __init__(self, group: str, version: str, entry: dict[str, Any]) -> None:
        self.group = group
        self.version = version
        self.resource: str = entry["name"]
        self.singular: str = entry.get("singularName") or entry["kind"].lower()
        self.kind: str = entry["kind"]
        self.namespaced: bool = bool(entry.get("namespaced"))
        self.verbs: list[str] = entry.get("verbs") or []
        self.short_names: list[str] = entry.get("shortNames") or []
        self.categories: list[str] = entry.get("categories") or []

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """`deployments.apps`; of the core group only `pods`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the resource, or of one object of it."""
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.resource)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


class Mapper:
    """Answers with Mappings; asks the server again when a cached answer does not know a name."""

    def __init__(self, discovery: Discovery) -> None:
        self.discovery = discovery
        self._warned: set[str] = set()

    def all(self) -> list[Mapping]:
        """Every resource of every version, subresources left out; the groups in order, preferred versions first."""
        found = []
        resources = self.discovery.resources
        for group in self.discovery.groups:
            versions = [version["version"] for version in group["versions"]]
            preferred = (group.get("preferredVersion") or {}).get("version")
            if preferred in versions:
                versions.sort(key=lambda version: version != preferred)
            for version in versions:
                name = group.get("name") or ""
                for entry in resources.get(f"{name}/{version}" if name else version) or ():
                    if "/" not in entry["name"]:
                        found.append(Mapping(name, version, entry))
        return found

    def resource(self, word: str) -> Mapping:
        """The mapping of what a user typed. Raises NoMatch."""
        found = self._find(word)
        if found is None and not self.discovery.fresh:
            self.discovery.invalidate()
            found = self._find(word)
        if found is None:
            raise NoMatch(_missing(word))
        return found

    def kind(self, api_version: str, kind: str) -> Mapping:
        """The mapping of an object's apiVersion and kind. Raises NoMatch."""
        found = self._kind(api_version, kind)
        if found is None and not self.discovery.fresh:
            self.discovery.invalidate()
            found = self._kind(api_version, kind)
        if found is None:
            raise NoMatch(f'no matches for kind "{kind}" in version "{api_version}"')
        return found

    def group_kind(self, group: str, kind: str) -> Mapping | None:
        """The preferred version of a kind."""
        return next((each for each in self.all() if each.group == group and each.kind == kind), None)

    def category(self, word: str) -> list[Mapping]:
        """The resources of a category, in the server's preferred versions."""
        found = []
        seen = set()
        for each in self.all():
            if word in each.categories and (each.group, each.resource) not in seen:
                seen.add((each.group, each.resource))
                found.append(each)
        return found

    def everything(self) -> list[Mapping]:
        """Every resource that can be listed, once each, but for events: `get everything`."""
        found: dict[tuple[str, str], Mapping] = {}
        for each in self.all():
            if "list" in each.verbs and each.resource != "events":
                found.setdefault((each.group, each.resource), each)
        return list(found.values())

    def _kind(self, api_version: str, kind: str) -> Mapping | None:
        group, _, version = api_version.rpartition("/")
        for entry in self.discovery.resources.get(api_version) or ():
            if entry["kind"] == kind and "/" not in entry["name"]:
                return Mapping(group, version, entry)
        return None

    def _find(self, word: str) -> Mapping | None:
        every = self.all()
        for resource, version, group in _readings(word.lower()):
            found = self._match(every, resource, version, group)
            if found is not None:
                return found
        for kind, version, group in _readings(word):
            for each in every:
                if (
                    kind in (each.kind, each.kind.lower())
                    and each.version == (version or each.version)
                    and (not group or each.group == group)
                ):
                    return each
        return None

    def _match(self, every: list[Mapping], resource: str, version: str, group: str) -> Mapping | None:
        for exact in (True, False):
            if not exact and not group:
                break
            inside = [
                each
                for each in every
                if (not group or (each.group == group if exact else each.group.startswith(group)))
                and (not version or each.version == version)
            ]
            for each in inside:
                if resource in (each.resource, each.singular):
                    return each
            short = [each for each in inside if resource in each.short_names]
            if short:
                self._warn(resource, short)
                return short[0]
        return None

    def _warn(self, word: str, found: list[Mapping]) -> None:
        first = found[0].group_resource
        for each in found[1:]:
            name = each.group_resource
            if name != first and name not in self._warned:
                self._warned.add(name)
                sys.stderr.write(f'Warning: short name "{word}" could also match lower priority resource {name}\n')


def _readings(word: str) -> list[tuple[str, str, str]]:
    """The ways to read `resource.version.group`: resource, version, group."""
    first, dot, rest = word.partition(".")
    if not dot:
        return [(word, "", "")]
    version, more, group = rest.partition(".")
    found = [(first, version, group)] if more else []
    return [*found, (first, "", rest), *([(first, rest, "")] if _is_version(rest) and not more else [])]


def _is_version(text: str) -> bool:
    return len(text) > 1 and text[0] == "v" and text[1].isdigit()


def _missing(word: str) -> str:
    return f'the server doesn\'t have a resource type "{word.partition(".")[0]}"'
