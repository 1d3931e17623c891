"""The pods of a namespace run on the nodes that the namespace, or the cluster, has for them.

A namespace says so in an annotation. The configuration has a default for all that do not, and for each namespace the
only labels that its pods may select by:

    podNodeSelectorPluginConfig:
      clusterDefaultNodeSelector: env=prod
      some-namespace: env=test,disk=ssd
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api.core.v1 import Namespace, PodSpec
from pybernetes.api.names import is_label_value, is_qualified_name

from .namespaces import NamespacedPlugin
from .plugin import CREATE, Attributes, forbidden

if TYPE_CHECKING:
    from ..registry.registry import Registry

_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT: Final = "clusterDefaultNodeSelector"
_CONFLICT: Final = "pod node label selector conflicts with its namespace node label selector"
_NOT_ALLOWED: Final = "pod node label selector labels conflict with its namespace whitelist"


class PodNodeSelector(NamespacedPlugin):
    """Upstream's PodNodeSelector."""

    name = "PodNodeSelector"
    operations = (CREATE,)
    resources = ("pods",)

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry)
        selectors = (configuration or {}).get("podNodeSelectorPluginConfig") or {}
        if not isinstance(selectors, dict):
            raise ValueError("PodNodeSelector: podNodeSelectorPluginConfig is not an object")
        self._selectors = {str(name): parse_selector(str(text or "")) for name, text in selectors.items()}

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.with_namespace(attributes, self._merge)

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.with_namespace(attributes, self._judge)

    def _merge(self, attributes: Attributes, namespace: Namespace) -> None:
        spec = attributes.new.spec = attributes.new.spec or PodSpec()
        given = self._of(namespace, attributes)
        own = spec.node_selector or {}
        if any(own.get(key, value) != value for key, value in given.items()):
            raise forbidden(attributes, _CONFLICT)
        spec.node_selector = {**given, **own} or None
        self._judge(attributes, namespace)

    def _judge(self, attributes: Attributes, namespace: Namespace) -> None:
        own = (attributes.new.spec or PodSpec()).node_selector or {}
        if any(own.get(key, value) != value for key, value in self._of(namespace, attributes).items()):
            raise forbidden(attributes, _CONFLICT)
        allowed = self._selectors.get(attributes.namespace)
        if allowed and any(allowed.get(key) != value for key, value in own.items()):
            raise forbidden(attributes, _NOT_ALLOWED)

    def _of(self, namespace: Namespace, attributes: Attributes) -> dict[str, str]:
        annotations = (namespace.metadata.annotations if namespace.metadata else None) or {}
        if _ANNOTATION not in annotations:
            return self._selectors.get(_DEFAULT, {})
        try:
            return parse_selector(annotations[_ANNOTATION])
        except ValueError as error:
            raise forbidden(attributes, f"the namespace's annotation {_ANNOTATION}: {error}") from None


def parse_selector(text: str) -> dict[str, str]:
    """Labels from `a=b,c=d`. Raises ValueError."""
    result: dict[str, str] = {}
    for part in text.split(",") if text else ():
        pieces = part.split("=")
        if len(pieces) != 2:
            raise ValueError(f"invalid selector: [{' '.join(pieces)}]")
        key, value = (piece.strip() for piece in pieces)
        problems = [*is_qualified_name(key), *is_label_value(value)]
        if problems:
            raise ValueError(f"invalid selector {part}: {'; '.join(problems)}")
        result[key] = value
    return result
