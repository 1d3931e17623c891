"""Pods stay for five minutes on a node that is not ready or out of reach, unless they say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybernetes.api.core.v1 import Pod, Toleration

from .plugin import CREATE, UPDATE, Attributes, Plugin

if TYPE_CHECKING:
    from ..registry.registry import Registry

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_EXECUTE = (None, "", "NoExecute")


class DefaultTolerationSeconds(Plugin):
    """Upstream's DefaultTolerationSeconds."""

    name = "DefaultTolerationSeconds"
    operations = (CREATE, UPDATE)
    resources = ("pods",)

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry)
        seconds = configuration or {}
        # All pods share these two objects; a toleration is never changed in place.
        self._not_ready = _toleration(NOT_READY, seconds.get("notReady", 300))
        self._unreachable = _toleration(UNREACHABLE, seconds.get("unreachable", 300))

    def admit(self, attributes: Attributes) -> None:
        pod: Pod = attributes.new
        spec = pod.spec
        if spec is None:
            return
        present = spec.tolerations
        if not present:
            spec.tolerations = [self._not_ready, self._unreachable]
            return
        keys = {each.key for each in present if each.effect in _EXECUTE}
        if None in keys or "" in keys:
            return
        added = [each for each in (self._not_ready, self._unreachable) if each.key not in keys]
        if added:
            spec.tolerations = [*present, *added]


def _toleration(key: str, seconds: int) -> Toleration:
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=seconds)
