"""Which taints the pods of a namespace tolerate by default, and which at most.

Annotations of the namespace say so, or the configuration for all namespaces without them. Besides, every pod that asks
for something tolerates a node whose memory is short, because it will be spared.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pybernetes.api.base import Struct
from pybernetes.api.core.podresources import qos_class
from pybernetes.api.core.tolerations import Covering, merge_tolerations
from pybernetes.api.core.v1 import Namespace, PodSpec, Toleration

from .configuration import check_kind
from .namespaces import NamespacedPlugin
from .plugin import CREATE, UPDATE, Attributes, forbidden

if TYPE_CHECKING:
    from ..registry.registry import Registry

_BY_DEFAULT: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
_AT_MOST: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_VERSIONS: Final = ("podtolerationrestriction.admission.k8s.io/v1alpha1",)
_PRESSURE: Final = Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule")


class _Configuration(Struct):
    default: list[Toleration] | None = None
    whitelist: list[Toleration] | None = None


class PodTolerationRestriction(NamespacedPlugin):
    """Upstream's PodTolerationRestriction."""

    name = "PodTolerationRestriction"
    operations = (CREATE, UPDATE)
    resources = ("pods",)

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry)
        self._configuration = _Configuration()
        if configuration is not None:
            fields = check_kind(configuration, "Configuration", _VERSIONS, self.name)
            try:
                self._configuration = msgspec.convert(fields, _Configuration)
            except msgspec.ValidationError as error:
                raise ValueError(f"{self.name}: {error}") from None

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.with_namespace(attributes, self._complete)

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.with_namespace(attributes, self._judge)

    def _complete(self, attributes: Attributes, namespace: Namespace) -> None:
        spec = attributes.new.spec = attributes.new.spec or PodSpec()
        more: list[Toleration] = []
        if attributes.operation == CREATE:
            said = _said(namespace, _BY_DEFAULT, attributes)
            more += (self._configuration.default or []) if said is None else said
        if qos_class(spec) != "BestEffort":
            more.append(_PRESSURE)
        if more:
            spec.tolerations = merge_tolerations(spec.tolerations or [], more)
        self._judge(attributes, namespace)

    def _judge(self, attributes: Attributes, namespace: Namespace) -> None:
        tolerations = (attributes.new.spec or PodSpec()).tolerations or []
        allowed, scope = _said(namespace, _AT_MOST, attributes), "namespace"
        if allowed is None:
            allowed, scope = self._configuration.whitelist or [], "cluster"
        covering = Covering(allowed)
        if allowed and not all(covering.covers(each) for each in tolerations):
            raise forbidden(
                attributes,
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its "
                f"{scope} whitelist",
            )


def _said(namespace: Namespace, key: str, attributes: Attributes) -> list[Toleration] | None:
    """The tolerations in an annotation; None if it is missing."""
    text = ((namespace.metadata.annotations if namespace.metadata else None) or {}).get(key)
    if not text:
        return text if text is None else []
    try:
        return msgspec.json.decode(text, type=list[Toleration])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise forbidden(attributes, f"the namespace's annotation {key}: {error}") from None
