"""A pod's RuntimeClass says what its sandbox costs and on which nodes it can be had."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from pybernetes.api.core.tolerations import merge_tolerations
from pybernetes.api.core.v1 import PodSpec
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.node.v1 import RuntimeClass as Class
from pybernetes.api.quantity import parse

from ..registry.lister import lister
from .plugin import CREATE, Attributes, Plugin, forbidden

_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Plugin):
    """Upstream's RuntimeClass."""

    name = "RuntimeClass"
    operations = (CREATE,)
    resources = ("pods",)

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        spec = attributes.new.spec
        if spec is None or spec.runtime_class_name is None:
            return None
        found = self._get(spec.runtime_class_name)
        if found is None:
            return self._look_again(attributes, _complete)
        _complete(spec, found, attributes)
        return None

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        spec = attributes.new.spec
        if spec.runtime_class_name is None:
            if spec.overhead is not None:
                raise forbidden(attributes, _WITHOUT)
            return None
        found = self._get(spec.runtime_class_name)
        if found is None:
            return self._look_again(attributes, _judge)
        _judge(spec, found, attributes)
        return None

    def _get(self, name: str) -> Class | None:
        found: Class | None = lister(self.registry, "node.k8s.io", "v1", "runtimeclasses").get("", name)
        return found

    async def _look_again(self, attributes: Attributes, then: Any) -> None:
        """Another server may have made the class a moment ago."""
        name = attributes.new.spec.runtime_class_name
        found = await lister(self.registry, "node.k8s.io", "v1", "runtimeclasses").find("", name)
        if found is None:
            raise forbidden(attributes, f"pod rejected: RuntimeClass {quote(name)} not found")
        then(attributes.new.spec, found, attributes)


def _complete(spec: PodSpec, found: Class, attributes: Attributes) -> None:
    if found.overhead is not None:
        fixed = found.overhead.pod_fixed
        if spec.overhead and not _same(fixed, spec.overhead):
            raise forbidden(attributes, _MISMATCH)
        spec.overhead = dict(fixed) if fixed is not None else None
    scheduling = found.scheduling
    if scheduling is None:
        return
    selector = dict(spec.node_selector or {})
    for key, value in (scheduling.node_selector or {}).items():
        if selector.get(key, value) != value:
            raise forbidden(
                attributes,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}",
            )
        selector[key] = value
    spec.node_selector = selector or None
    spec.tolerations = merge_tolerations(spec.tolerations or [], scheduling.tolerations or []) or None


def _judge(spec: PodSpec, found: Class, attributes: Attributes) -> None:
    if found.overhead is None:
        if spec.overhead is not None:
            raise forbidden(attributes, _WITHOUT)
    elif not _same(found.overhead.pod_fixed, spec.overhead):
        raise forbidden(attributes, _MISMATCH)


def _same(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    one, other = one or {}, other or {}
    return one.keys() == other.keys() and all(parse(str(one[key])) == parse(str(other[key])) for key in one)
