"""Defaults for Namespaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...meta.v1.objectmeta import ObjectMeta
from ..v1.namespace import Namespace, NamespaceSpec, NamespaceStatus

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Every Namespace carries its name as a label, so that selectors can name it."""


def default_namespace(obj: Namespace) -> None:
    """The label with the name, and the phase."""
    label_with_name(obj)
    if obj.spec is None:
        obj.spec = NamespaceSpec()
    if obj.status is None:
        obj.status = NamespaceStatus()
    if not obj.status.phase:
        obj.status.phase = "Active"


def label_with_name(obj: Namespace) -> None:
    """Set the label, as soon as there is a name (`generateName` gives it later)."""
    meta = obj.metadata
    if meta is None:
        meta = obj.metadata = ObjectMeta()
    if meta.name:
        if meta.labels is None:
            meta.labels = {}
        meta.labels[NAME_LABEL] = meta.name


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"Namespace": default_namespace}
