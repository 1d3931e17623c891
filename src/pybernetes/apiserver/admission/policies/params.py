"""The parameters of a policy: objects of any kind that a binding names or selects."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api import labels
from pybernetes.api.resources import Resource
from pybernetes.api.scheme import split_api_version
from pybernetes.store.watchers import Item

from ...registry.registry import Registry
from ...registry.resource_store import ResourceStore


class Misconfigured(Exception):
    """There are no parameters to go on with; the text says why."""


async def collect(registry: Registry, kind: Any, reference: Any, namespace: str) -> list[Any]:
    """The values of `params` for a binding's expressions, one evaluation for each. Raises Misconfigured.

    A policy without parameters is evaluated once, with None."""
    if kind is None:
        return [None]
    resource = _resource(registry, kind)
    if reference is None:
        return [None]
    store = registry.store(resource.group, resource.version, resource.plural)
    where = ""
    if resource.namespaced:
        where = reference.namespace or namespace
        if not where:
            raise Misconfigured(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
    elif reference.namespace:
        raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    found = await _find(store, reference, where)
    if not found and reference.parameter_not_found_action == "Deny":
        raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found


async def _find(store: ResourceStore, reference: Any, namespace: str) -> list[Any]:
    if reference.name:
        item = store.peek(namespace, reference.name) or await store.find(namespace, reference.name)
        return [] if item is None else [await _document(store, item)]
    if reference.selector is None:
        raise Misconfigured("one of name or selector must be provided")
    selector = labels.from_label_selector(reference.selector)
    partition = store.partition
    items = [partition.items[key] for key in partition.scan(store.scope(namespace))]
    return [await _document(store, item) for item in items if selector.matches(store.attributes(item).labels or {})]


async def _document(store: ResourceStore, item: Item) -> Any:
    if store.asks_webhook:
        await store.ready([item])
    return msgspec.json.decode(store.raw(item))


def _resource(registry: Registry, kind: Any) -> Resource:
    group, version = split_api_version(kind.api_version or "")
    for resource in registry.resources():
        if (resource.group, resource.version, resource.kind) == (group, version, kind.kind) and resource.stored:
            return resource
    shown = f"{group}/{version}, Kind={kind.kind}"
    raise Misconfigured(f"failed to find resource referenced by paramKind: '{shown}'")
