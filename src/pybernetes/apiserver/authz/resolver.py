"""Resolves roles and bindings to a user's permissions: resolved once for each subject and namespace.

Every request asks, roles and bindings change rarely. So all that was worked out is kept until one of the four kinds
changes, and then dropped only where it could be different: a change in one namespace leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.api.errors import APIError, NotFound
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.rbac.defaults import GROUP
from pybernetes.api.rbac.v1 import ClusterRoleBinding, PolicyRule, RoleBinding, RoleRef, Subject

from ..registry.lister import lister
from ..user import User

if TYPE_CHECKING:
    from ..registry.registry import Registry

_ACCOUNT = "system:serviceaccount:"
_SUBJECTS = 4096  # remembered in a namespace, and as many namespaces; who asks with more names starts anew

Binding = ClusterRoleBinding | RoleBinding
Shape = tuple[str, str, str, str]
"""Verb, group, resource, subresource."""


class Grants:
    """The permissions of one subject in one namespace, in the order of the bindings."""

    __slots__ = ("_shapes", "errors", "sources")

    def __init__(self, sources: list[tuple[str, list[PolicyRule]]], errors: list[str]) -> None:
        self.sources = sources
        """Rules, and the binding that gives them in words."""
        self.errors = errors
        """References to roles that are not there."""
        self._shapes: dict[Shape, tuple[dict[str, str] | None, str | None]] = {}

    @property
    def rules(self) -> list[PolicyRule]:
        """All rules."""
        return [rule for _, rules in self.sources for rule in rules]

    def resource(self, shape: Shape, name: str) -> str | None:
        """Which binding lets the subject do this to the named object; None = none."""
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = self._resolve(shape)
        names, anyone = found
        return anyone if names is None else names.get(name, anyone)

    def path(self, verb: str, path: str) -> str | None:
        """Which binding lets the subject do this to a path that is no resource; None = none."""
        for source, rules in self.sources:
            for rule in rules:
                urls = rule.non_resource_urls
                if urls and _has(rule.verbs, verb) and any(_url_matches(url, path) for url in urls):
                    return source
        return None

    def _resolve(self, shape: Shape) -> tuple[dict[str, str] | None, str | None]:
        """By the names for which alone something is allowed, and else by what is allowed for all names."""
        verb, group, resource, subresource = shape
        combined = f"{resource}/{subresource}" if subresource else resource
        wanted = {"*", combined, f"*/{subresource}"} if subresource else {"*", combined}
        names: dict[str, str] = {}
        for source, rules in self.sources:
            for rule in rules:
                if (
                    _has(rule.verbs, verb)
                    and _has(rule.api_groups, group)
                    and not wanted.isdisjoint(rule.resources or ())
                ):
                    if not rule.resource_names:
                        return names or None, source
                    for name in rule.resource_names:
                        names.setdefault(name, source)
        return names or None, None


class _Scope(msgspec.Struct):
    """The bindings of one namespace (or of the cluster), and what was made of them."""

    bindings: list[Any]
    roles: list[Any]
    stamp: tuple[int, ...]
    index: dict[str, list[tuple[int, int]]]
    """By `User name` and `Group name`: which binding, and its which subject."""
    subjects: dict[tuple[str, tuple[str, ...]], Grants] = {}


class RuleResolver:
    """The rules of every subject."""

    def __init__(self, registry: Registry) -> None:
        self._kinds = [lister(registry, GROUP, "v1", plural) for plural in ("clusterroles", "roles")]
        self._cluster_bindings = lister(registry, GROUP, "v1", "clusterrolebindings")
        self._bindings = lister(registry, GROUP, "v1", "rolebindings")
        self._partitions = [each.partition for each in (*self._kinds, self._cluster_bindings, self._bindings)]
        self._cluster = _Scope([], [], (), {})
        self._namespaces: dict[str, _Scope] = {}

    def grants(self, user: User, namespace: str) -> Grants:
        """The permissions of a user in a namespace; without one, those outside of namespaces and in all of them."""
        a, b, c, d = self._partitions
        stamp = (a.changed, b.changed, c.changed, d.changed)
        scope = self._namespaces.get(namespace)
        if scope is None or scope.stamp != stamp:
            scope = self._refresh(namespace, scope, stamp)
        key = (user.name, user.groups)
        found = scope.subjects.get(key)
        if found is None:
            if len(scope.subjects) >= _SUBJECTS:
                scope.subjects.clear()
            found = scope.subjects[key] = self._grants(user, namespace, scope)
        return found

    def role_rules(self, reference: RoleRef, namespace: str) -> list[PolicyRule]:
        """The rules of the role that a binding in this namespace refers to. Raises NotFound."""
        kind, name = reference.kind or "", reference.name or ""
        if kind == "ClusterRole":
            role = self._kinds[0].get("", name)
        elif kind == "Role":
            role = self._kinds[1].get(namespace, name)
        else:
            raise APIError(f"unsupported role reference kind: {quote(kind)}")
        if role is None:
            raise NotFound(GROUP, f"{kind.lower()}s", name)
        return role.rules or []

    def _refresh(self, namespace: str, scope: _Scope | None, stamp: tuple[int, ...]) -> _Scope:
        """Look whether anything is different for this namespace. Equal lists hold the same decoded objects."""
        cluster = self._cluster
        if cluster.stamp != stamp:
            bindings, roles = self._cluster_bindings.list(), self._kinds[0].list()
            if cluster.bindings != bindings or cluster.roles != roles:
                cluster = self._cluster = _Scope(bindings, roles, stamp, _index(bindings, ""))
                self._namespaces.clear()
                scope = None
            cluster.stamp = stamp
        bindings = self._bindings.list(namespace) if namespace else []
        roles = self._kinds[1].list(namespace) if namespace else []
        if scope is None or scope.bindings != bindings or scope.roles != roles:
            if len(self._namespaces) >= _SUBJECTS:
                self._namespaces.clear()
            scope = self._namespaces[namespace] = _Scope(bindings, roles, stamp, _index(bindings, namespace))
        scope.stamp = stamp
        return scope

    def _grants(self, user: User, namespace: str, scope: _Scope) -> Grants:
        sources: list[tuple[str, list[PolicyRule]]] = []
        errors: list[str] = []
        for each, where in ((self._cluster, ""), (scope, namespace)):
            for binding, subject in _bound(user, each):
                reference = binding.role_ref or RoleRef()
                try:
                    rules = self.role_rules(reference, where)
                except NotFound as error:
                    kind = (reference.kind or "").lower()  # upstream's caches name the kind, not the resource
                    errors.append(error.message.replace(f"{kind}s.", f"{kind}.", 1))
                except APIError as error:
                    errors.append(error.message)
                else:
                    if rules:
                        sources.append((_describe(binding, subject), rules))
        return Grants(sources, errors)


def resolver(registry: Registry) -> RuleResolver:
    """The one resolver of a server."""
    if registry.rule_resolver is None:
        registry.rule_resolver = RuleResolver(registry)
    return registry.rule_resolver


def _index(bindings: Sequence[Binding], namespace: str) -> dict[str, list[tuple[int, int]]]:
    index: dict[str, list[tuple[int, int]]] = {}
    for number, binding in enumerate(bindings):
        for position, subject in enumerate(binding.subjects or ()):
            if subject.kind == "ServiceAccount":
                where = subject.namespace or namespace
                key = f"User {_ACCOUNT}{where}:{subject.name}" if where else ""
            else:
                key = f"{subject.kind} {subject.name}"
            if key:
                index.setdefault(key, []).append((number, position))
    return index


def _bound(user: User, scope: _Scope) -> Iterable[tuple[Binding, Subject]]:
    """The bindings that apply, each with the first subject that makes it so."""
    index = scope.index
    if not index:
        return
    found = list(index.get(f"User {user.name}", ()))
    for group in user.groups:
        found += index.get(f"Group {group}", ())
    last = -1
    for number, position in sorted(found):
        if number != last:
            last = number
            binding = scope.bindings[number]
            yield binding, binding.subjects[position]


def _describe(binding: Binding, subject: Subject) -> str:
    meta, reference = binding.metadata, binding.role_ref or RoleRef()
    assert meta is not None
    where = meta.namespace or ""
    who = subject.name or ""
    if subject.kind == "ServiceAccount":
        who = f"{who}/{subject.namespace or where}"
    kind, name = ("RoleBinding", f"{meta.name}/{where}") if where else ("ClusterRoleBinding", meta.name or "")
    return f"{kind} {quote(name)} of {reference.kind} {quote(reference.name or '')} to {subject.kind} {quote(who)}"


def _has(values: list[str] | None, wanted: str) -> bool:
    return values is not None and (wanted in values or "*" in values)


def _url_matches(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))
