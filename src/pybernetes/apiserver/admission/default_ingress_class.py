"""An Ingress that names no class gets the default one."""

from __future__ import annotations

from pybernetes.api.networking.v1 import Ingress, IngressSpec

from ..registry.lister import lister
from .newest import newest_with
from .plugin import CREATE, Attributes, Plugin

_DEFAULT = ("ingressclass.kubernetes.io/is-default-class",)
_OLD_CLASS = "kubernetes.io/ingress.class"


class DefaultIngressClass(Plugin):
    """Upstream's DefaultIngressClass."""

    name = "DefaultIngressClass"
    operations = (CREATE,)
    resources = ("ingresses.networking.k8s.io",)

    def admit(self, attributes: Attributes) -> None:
        ingress: Ingress = attributes.new
        annotations = (ingress.metadata.annotations if ingress.metadata else None) or {}
        spec = ingress.spec = ingress.spec or IngressSpec()
        if spec.ingress_class_name is not None or _OLD_CLASS in annotations:
            return
        classes = lister(self.registry, "networking.k8s.io", "v1", "ingressclasses")
        spec.ingress_class_name = newest_with(classes.list(), _DEFAULT)
